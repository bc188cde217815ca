"""Numba kernels. Importing this package gives Numba the functions of the shared core."""

from detops._core import jit

jit.register()
