"""Tells Numba, for the CPU and for CUDA alike, that the core's functions may be called from compiled code."""

import functools

from numba.extending import register_jitable

from detops import _core
from detops._core import scalar


@functools.cache
def register() -> None:
    """Register every function of the core, once."""
    for function in (scalar.typed, scalar.exp, scalar.fmod, scalar.log, *_core.functions().values()):
        register_jitable(function)
