"""What this installation can do, for bug reports."""

from pathlib import Path
from typing import Any, Literal, overload

import numpy as np

from detops._version import __version__
from detops.operators import _checks
from detops.runtime import _memory, _registry, _threads

# What detops works with where it is installed.
_OPTIONAL = ("numba", "numba-cuda", "onnx", "onnxruntime", "pillow", "rich", "distributed", "hypothesis")


def _config() -> dict[str, str]:
    # Not above: importing detops should cost little more than importing numpy.
    import importlib.metadata
    import platform

    found = {
        "detops": __version__,
        "path": str(Path(__file__).parent),
        "python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        "processor": _processor(),
        "numpy": np.__version__,
    }
    for package in _OPTIONAL:
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
    if cpu := _registry.part("cpu"):
        found["compiler"] = cpu.compiler()
        found["instruction set"] = _registry.instruction_set()
    found["threads"] = str(_threads.get_num_threads())
    found["kept memory"] = f"at most {_memory.keep_mib} MiB"
    return found


def _processor() -> str:
    """The model of the processor where Linux tells it, else what Python knows."""
    import platform

    cpus = Path("/proc/cpuinfo")
    for line in cpus.read_text(encoding="utf-8", errors="replace").splitlines() if cpus.exists() else ():
        name, _, model = line.partition(":")
        if name.strip() == "model name":
            return model.strip()
    return platform.processor() or "unknown"


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


@overload
def show_config(mode: Literal["stdout"] = ...) -> None: ...
@overload
def show_config(mode: Literal["dicts"]) -> dict[str, str]: ...
def show_config(mode: Literal["stdout", "dicts"] = "stdout") -> dict[str, str] | None:
    """Print versions, backends, the processor, the vector instruction set in use and the number of threads.

    Parameters
    ----------
    mode : {"stdout", "dicts"}, default "stdout"
        Whether to print, or to return the same as a dict; the words are those of ``numpy.show_config``.

    Returns
    -------
    dict of str or None
        A text for each name, with ``mode="dicts"``.

    Raises
    ------
    ValueError
        If `mode` is another word.

    Examples
    --------
    >>> import detops
    >>> detops.show_config()
    detops...
    >>> detops.show_config("dicts")["detops"] == detops.__version__
    True
    """
    if _checks.choice("mode", mode, ("stdout", "dicts")) == "dicts":
        return _config()
    rows = _config()
    width = max(map(len, rows))
    for name, value in rows.items():
        print(f"{name:<{width}}  {value}")
    return None


def add_parsers(subparsers: Any) -> None:
    """Add the command ``detops config``."""
    command = subparsers.add_parser("config", help="print versions, backends and the number of threads")
    command.set_defaults(run=_run)


def _run(arguments: Any) -> int:
    show_config()
    return 0
