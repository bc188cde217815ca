"""Benchmarks of each operator over backend, dtype and size."""
