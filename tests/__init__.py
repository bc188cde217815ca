"""The tests of detops. They know everything; nothing knows them."""
