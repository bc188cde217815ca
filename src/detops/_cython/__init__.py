"""Compiled kernels: for each element type and vector instruction set a package, such as ``float32_avx2``."""
