"""The shared indexing core: one formula, written once, compiled by Cython, Numba and CUDA.

Every module here is plain Python in a small subset of the language (``tests/test_core_subset.py`` says which):
scalars in, scalars or a tuple out; no array, no loop over data, no allocation. The ``.pyx`` kernels include these
files as text, so the decorators and annotations become static inline C. Numba and CUDA get the same functions
through :func:`detops._core.jit.register`.

Without Cython the name ``cython`` that the files import is the stand-in ``_shim``, which does nothing.
"""

import importlib
import pkgutil
import sys
from collections.abc import Callable
from types import FunctionType, ModuleType

from detops._core import _shim

# What is no formula: the stand-in, what registers functions with Numba, and the functions of C's library.
_HELPERS = {"_shim", "jit", "scalar"}
MODULES = tuple(sorted({module.name for module in pkgutil.iter_modules(__path__)} - _HELPERS))


def _load() -> tuple[ModuleType, ...]:
    # The stand-in is used even where Cython is installed, so that what runs never depends on that.
    real = sys.modules.get("cython")
    sys.modules["cython"] = _shim
    try:
        return tuple(importlib.import_module(f"detops._core.{name}") for name in MODULES)
    finally:
        if real is None:
            del sys.modules["cython"]
        else:
            sys.modules["cython"] = real


_LOADED = _load()


def defined(module: ModuleType) -> dict[str, Callable]:
    """The functions that a module defines, by name."""
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, FunctionType) and value.__module__ == module.__name__
    }


def functions() -> dict[str, Callable]:
    """All functions of the core by name."""
    return {name: value for module in _LOADED for name, value in defined(module).items()}
