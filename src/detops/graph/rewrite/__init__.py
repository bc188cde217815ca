"""Writes one node, and the function behind it, in place of a proved subgraph."""
