"""Finds what may be a box decode, and tries to prove it."""
