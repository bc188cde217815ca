"""Memory for results: what large ones have left is used again, see ``_cython/memory.pyx``."""

import functools
from collections.abc import Callable, Sequence

import numpy as np

from detops import _environment

MIB = 1 << 20

# DETOPS_KEEP_MIB: how much memory that nobody uses is kept, in MiB; 0 keeps none.
keep_mib = _environment.number("DETOPS_KEEP_MIB", 256, at_least=0, at_most=1 << 20)


@functools.cache
def _allocator() -> Callable[[Sequence[int], np.dtype], np.ndarray]:
    # Compiled modules are loaded when they are needed, and other backends work without them.
    try:
        from detops._cython import memory
    except ImportError:
        return np.empty
    return memory.empty


def empty(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """Return a new C-contiguous array, like `numpy.empty`."""
    return _allocator()(shape, dtype)
