"""Which kernel serves an operator on a backend. Names only: nothing is imported before it is asked for."""

import functools
import importlib
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import ModuleType
from typing import Any, Literal, get_args

import numpy as np

from detops._extras import hint
from detops._messages import shown
from detops._specification import KERNELS

Backend = Literal["cython", "numba", "cuda"]
BACKENDS: tuple[Backend, ...] = get_args(Backend)

_default: ContextVar[str | None] = ContextVar("detops_backend", default=None)


class BackendError(ImportError):
    """A backend that was asked for is not installed, or cannot run here.

    The message says which, why, and what installs it.

    Examples
    --------
    >>> import detops
    >>> issubclass(detops.BackendError, ImportError)
    True
    """

    # Where users find it, and so what a traceback says.
    __module__ = "detops"


@contextmanager
def use_backend(name: Backend | None) -> Iterator[None]:
    """Make a backend the default inside a ``with`` block, for the calling thread or task.

    Parameters
    ----------
    name : {"cython", "numba", "cuda"} or None
        The backend for calls that pass no ``backend=``; None restores the usual choice: CUDA where an input
        lives on a GPU, else Cython.

    Raises
    ------
    ValueError
        If there is no backend of this name.
    BackendError
        If the backend is not installed, or cannot run here; the message names the extra that brings it. It is an
        ImportError.

    Examples
    --------
    >>> import detops
    >>> import numpy as np
    >>> with detops.use_backend("cython"):
    ...     detops.cummax(np.array([1.0, 3.0, 2.0])).indices
    array([0, 1, 1])
    """
    if name is not None:
        require(name)
    token = _default.set(name)
    try:
        yield
    finally:
        _default.reset(token)


def choose(asked: str | None, on_gpu: bool) -> str:
    """Return the backend of a call: what was asked for, else the default, else what suits the inputs."""
    asked = _default.get() if asked is None else asked
    if asked is not None:
        require(asked)
        return asked
    if on_gpu:
        require("cuda")
        return "cuda"
    return _cpu_backend()


@functools.cache
def _cpu_backend() -> str:
    try:
        require("cython")
    except BackendError as compiled:
        try:
            require("numba")
        except BackendError as jit:
            raise BackendError(f"no CPU backend: {compiled}; {jit}") from None
        warnings.warn(f"{compiled}: detops uses its Numba backend", RuntimeWarning, stacklevel=_caller())
        return "numba"
    return "cython"


def _caller() -> int:
    """Return the ``stacklevel`` of the code that called detops, for a warning of the function that calls this."""
    level = 1
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("detops."):
        frame = frame.f_back
        level += 1
    return level


def require(backend: str) -> None:
    """Raise ValueError for an unknown backend, BackendError for one that cannot run here."""
    if not isinstance(backend, str) or backend not in BACKENDS:
        raise ValueError(f"backend: expected one of {', '.join(map(repr, BACKENDS))} or None, got {shown(backend)}")
    _load_backend(backend)


@functools.cache
def _load_backend(backend: str) -> None:
    try:
        importlib.import_module(f"detops._{backend}")
        if backend == "cython":
            importlib.import_module("detops._cython.cpu")
        elif backend == "cuda":
            importlib.import_module("detops._cuda.device").can_run()
    except ImportError as error:
        if backend == "cython":
            raise BackendError(f"backend 'cython': the compiled modules are missing ({error})") from error
        raise BackendError(f"backend {backend!r} cannot be loaded: {error}; {hint(backend)}") from error


def available(backend: str) -> bool:
    """Whether a backend can be loaded here."""
    try:
        require(backend)
    except BackendError:
        return False
    return True


@functools.cache
def instruction_set() -> str:
    """The vector instruction set of the compiled kernels: the best of this machine, or ``DETOPS_ISA``."""
    usable = importlib.import_module("detops._cython.cpu").instruction_sets()
    asked = os.environ.get("DETOPS_ISA", "").strip()
    if asked and asked not in usable:
        raise ValueError(f"DETOPS_ISA: expected one of {', '.join(usable)}, got {asked!r}")
    return asked or usable[0]


def part(name: str) -> ModuleType | None:
    """Return a compiled module that is no kernel; None where it is missing, for other backends work without."""
    try:
        return importlib.import_module(f"detops._cython.{name}")
    except ImportError:
        return None


def of_backend(backend: str, name: str) -> ModuleType:
    """Return a module of a backend that is no kernel."""
    return importlib.import_module(f"detops._{backend}.{name}")


@functools.cache
def kernel(name: str, backend: str, dtype: np.dtype) -> Callable[..., Any]:
    """Return a kernel; ``dtype`` is the type of its elements."""
    if backend == "cython":
        return getattr(compiled(name, dtype), name)
    found = getattr(of_backend(backend, KERNELS[name].module), name)
    return _with_room(found) if backend == "numba" else found


def _with_room(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that is called again where memory ran out, once what is kept has been given back.

    Compiled kernels make room for their scratch space themselves. Of Numba's, those that ask for some read nothing that
    they write.
    """
    store = part("memory")
    if store is None:
        return kernel
    return functools.wraps(kernel)(functools.partial(store.with_room, kernel))


def compiled(name: str, dtype: np.dtype) -> ModuleType:
    """Return the compiled module that holds a kernel for elements of this dtype."""
    module = KERNELS[name].module
    element = "uint8" if dtype == np.bool_ else dtype.name
    # A kernel that gains nothing from vectors is compiled for the baseline alone.
    for isa in dict.fromkeys((instruction_set(), "baseline")):
        path = f"detops._cython.{element}_{isa}.{module}"
        try:
            return importlib.import_module(path)
        except ModuleNotFoundError as error:
            if error.name is None or not path.startswith(error.name):
                raise
    raise BackendError(f"backend 'cython': the compiled module {module} for {element} is missing")
