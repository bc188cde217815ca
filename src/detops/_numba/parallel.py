"""Spreading a compiled loop over threads: the counterpart of ``_cython/parallel_for.pxi``."""

import functools
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import numba
import numpy as np
from numba.extending import overload

from detops.runtime._threads import of_call

# Division by zero gives inf or NaN, as in C; loops hold no Python object, so they run without the GIL. What is not set
# here Numba takes from the code that calls: a user's fastmath would change our results.
OPTIONS: Any = {"nogil": True, "error_model": "numpy", "fastmath": False}

# For functions that compiled code alone calls: without the wrappers for Python and C a first call takes a fifth less.
# Python that calls one of them crashes: a test looks for such calls. All have the same options, down to those that mean
# nothing here: what they call, of NumPy too, Numba compiles once for each set of options.
_INNER: Any = {"error_model": "numpy", "fastmath": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
inner = numba.njit(**_INNER)

# For functions that are written into their caller, and cost no compilation of their own.
inlined = numba.njit(inline="always")


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that Python calls; where compiled code calls it, it is an inner one."""
    compiled = numba.njit(**OPTIONS)(function)

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        return compiled(*args)

    call.__wrapped__ = compiled
    overload(call, jit_options=_INNER, strict=False)(lambda *args, **kwargs: function)
    return call


# Where a count or an index begins that a function is called with: for a 0 in the text Numba would compile it once more.
ZERO = np.int64(0)

_lock = threading.Lock()
_pools: dict[int, ThreadPoolExecutor] = {}


def _after_fork() -> None:
    # The child has the parent's pools but not their threads, and the lock as it was at that moment.
    global _lock
    _lock = threading.Lock()
    _pools.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _block_signals() -> None:
    """As ``_cython/signals.pxi``: one that the program blocks, to wait for it, must find no worker."""
    if hasattr(signal, "pthread_sigmask"):
        own = {getattr(signal, f"SIG{name}", 0) for name in ("SEGV", "BUS", "FPE", "ILL", "ABRT", "TRAP", "SYS")}
        signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals() - own)


def _pool(workers: int) -> ThreadPoolExecutor:
    with _lock:
        if workers not in _pools:
            _pools[workers] = ThreadPoolExecutor(workers, thread_name_prefix="detops", initializer=_block_signals)
        return _pools[workers]


def read_only(value: Any) -> Any:
    """Return an array as one that may not be written to, anything else as it is.

    Numba has a type of its own for such arrays, and compiles anew for every mixture: so all inputs are of that type.
    """
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    return value


def parallel_for(
    loop: Callable[..., None], items: int, grain: int, reads: tuple[Any, ...], *writes: np.ndarray
) -> None:
    """Call ``loop(begin, end, *reads, *writes)`` over all items, at least ``grain`` of them at a time.

    Numba's own parallel loops are not used: their default threading layer must not be entered by two threads at once.
    """
    arguments = (*map(read_only, reads), *writes)
    parts = -(-items // max(grain, 1))
    threads = of_call()
    if min(threads, parts) < 2:
        if items > 0:
            loop(0, items, *arguments)
        return
    tasks = [
        _pool(threads).submit(loop, part * grain, min((part + 1) * grain, items), *arguments) for part in range(parts)
    ]
    # Also after an error: a result must not be written to when the call has ended.
    wait(tasks)
    for task in tasks:
        task.result()
