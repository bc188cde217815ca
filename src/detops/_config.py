"""What this installation can do, for bug reports."""

from typing import Any

import numpy as np

from detops._version import __version__
from detops.operators import _checks
from detops.runtime import _memory, _registry, _threads


def config() -> dict[str, str]:
    """Return what :func:`show_config` prints, by name."""
    # Not above: importing detops should cost little more than importing numpy.
    import importlib.metadata
    import platform

    found = {
        "detops": __version__,
        "python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        "numpy": np.__version__,
    }
    for package in ("numba", "numba-cuda", "onnx", "onnxruntime"):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    for backend in _registry.BACKENDS:
        try:
            _registry.require(backend)
            found[f"backend {backend}"] = "available"
        except _registry.BackendError as error:
            found[f"backend {backend}"] = f"not available: {error}"
    if _registry.available("cython"):
        found["instruction set"] = _registry.instruction_set()
    found["threads"] = str(_threads.get_num_threads())
    found["kept memory"] = f"at most {_memory.keep_mib} MiB"
    return found


def set_num_threads(n: int) -> None:
    """Set how many threads a CPU kernel may use, in the whole process.

    Results never depend on it.

    Parameters
    ----------
    n : int
        From 1 to 4096.

    Raises
    ------
    TypeError
        If ``n`` is not an integer.
    ValueError
        If ``n`` is below 1 or above 4096.

    Examples
    --------
    >>> import detops
    >>> before = detops.get_num_threads()
    >>> detops.set_num_threads(1)
    >>> detops.get_num_threads()
    1
    >>> detops.set_num_threads(before)
    """
    _threads.set_number(_checks.integer("n", n, at_least=1, at_most=_threads.MAX_THREADS))


def show_config() -> None:
    """Print versions, backends, the vector instruction set in use and the number of threads.

    Examples
    --------
    >>> import detops
    >>> detops.show_config()  # doctest: +ELLIPSIS
    detops...
    """
    rows = config()
    width = max(map(len, rows))
    for name, value in rows.items():
        print(f"{name:<{width}}  {value}")


def add_parsers(subparsers: Any) -> None:
    """Add the command ``detops config``."""
    command = subparsers.add_parser("config", help="print versions, backends and the number of threads")
    command.set_defaults(run=_run)


def _run(arguments: Any) -> int:
    show_config()
    return 0
