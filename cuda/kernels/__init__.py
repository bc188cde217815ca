"""CUDA kernels. Importing this package gives Numba's CUDA target the functions of the shared core."""

from detops._core import jit

jit.register()
