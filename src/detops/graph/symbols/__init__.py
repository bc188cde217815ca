"""What a proof computes with: exact polynomials, normal forms of arrays, and sizes as expressions."""
