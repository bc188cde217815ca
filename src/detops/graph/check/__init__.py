"""Compares a proved subgraph with its replacement in a real runtime."""
