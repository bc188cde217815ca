"""Which kernels the CUDA backend launches, and with which types: recorded in the simulator, so that no list is kept."""

import importlib
import pkgutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from detops import _cuda
from detops._cuda import device

# Types as JSON can carry them: a dtype's name, ["array", dtype, ndim] or ["tuple", ...].
Described = str | list[Any]
# (module, kernel), and the types of its arguments.
Launch = tuple[str, str, tuple[Described, ...]]


def describe(value: Any) -> Described:
    """The type that Numba gives an argument of a kernel."""
    if isinstance(value, bool | np.bool_):
        return "boolean"
    if isinstance(value, int):
        return "int64"
    if isinstance(value, float) and not isinstance(value, np.floating):
        return "float64"
    if isinstance(value, np.generic):
        return value.dtype.name
    if isinstance(value, tuple):
        return ["tuple", *map(describe, value)]
    if value is None:
        return "none"
    if not value.flags.c_contiguous:
        raise TypeError(f"a kernel was given an array that is not C-contiguous: {value.shape} {value.strides}")
    return ["array", "boolean" if value.dtype == np.bool_ else value.dtype.name, value.ndim]


def modules() -> list[Any]:
    """The modules of the CUDA backend that hold kernels."""
    found = [importlib.import_module(f"detops._cuda.{info.name}") for info in pkgutil.iter_modules(_cuda.__path__)]
    return [module for module in found if module is not device]


def kernels() -> set[tuple[str, str]]:
    """(module, name) of every kernel; a device function is compiled with the kernels that call it."""
    kind = type(device.jit(lambda: None))
    return {
        (module.__name__, name)
        for module in modules()
        for name, value in vars(module).items()
        if isinstance(value, kind) and value.fn.__module__ == module.__name__ and not value._device
    }


@contextmanager
def recorded() -> Iterator[set[str]]:
    """Collect the launches inside the block, as ``repr`` of :data:`Launch`."""
    found: set[str] = set()

    def launch(kernel: Any, items: int, *arguments: Any, **settings: Any) -> None:
        types = [describe(argument) for argument in arguments]
        found.add(repr((kernel.fn.__module__, kernel.fn.__name__, types)))
        original(kernel, items, *arguments, **settings)

    original = device.launch
    holders = [module for module in modules() if getattr(module, "launch", None) is original]
    for module in holders:
        module.launch = launch
    try:
        yield found
    finally:
        for module in holders:
            module.launch = original
