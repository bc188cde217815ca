"""The public functions, what they share, and the specification of all of them."""
