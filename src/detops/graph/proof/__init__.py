"""The proof that a subgraph is a box decode, and its parameters."""
