"""What tests share and no test is."""
