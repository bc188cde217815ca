"""Tells Numba, for the CPU and for CUDA alike, that the core's functions may be called from compiled code."""

import functools
import math
from collections.abc import Callable

from numba.extending import overload, register_jitable

from detops import _core
from detops._core import scalar

# Without the wrappers for C that Numba would make; and written into the caller, always: a loop with a call in it does
# not become vectors, and functions of several branches are more than LLVM writes into a caller on its own.
_register = register_jitable(no_cfunc_wrapper=True, forceinline=True)


@functools.cache
def register() -> None:
    """Register every function of the core, once."""
    for name, function in _core.defined(scalar).items():
        if hasattr(math, name):
            _by_math(function)
        else:
            _register(function)
    for function in _core.functions().values():
        _register(function)


def _by_math(function: Callable) -> None:
    """Compile a scalar function as the one of ``math``.

    Python's own ``math`` raises where C gives inf or NaN, so plain Python asks NumPy; but Numba's CUDA target knows
    few functions of NumPy, and all of ``math``.
    """
    known = getattr(math, function.__name__)
    overload(function, jit_options={"no_cpython_wrapper": True, "no_cfunc_wrapper": True})(lambda x: lambda x: known(x))
