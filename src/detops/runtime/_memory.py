"""Memory for results: what large ones have left is used again, see ``_cython/memory.pyx``."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from detops.runtime import _environment, _registry

MIB = 1 << 20

# DETOPS_KEEP_MIB: how much memory that nobody uses is kept, in MiB; 0 keeps none.
keep_mib = _environment.number("DETOPS_KEEP_MIB", 256, at_least=0, at_most=1 << 20)


_Made = TypeVar("_Made")


@functools.cache
def _store() -> Any:
    return _registry.part("memory")


def empty() -> Callable[[Sequence[int], np.dtype], np.ndarray]:
    """Return what makes new C-contiguous arrays, as `numpy.empty` does."""
    store = _store()
    return np.empty if store is None else store.empty


def with_room(make: Callable[..., _Made], *arguments: Any, **options: Any) -> _Made:
    """Return what ``make`` returns; where memory runs out, give back what is kept and call it once more."""
    store = _store()
    return make(*arguments, **options) if store is None else store.with_room(make, *arguments, **options)
