"""How many threads a CPU kernel may use."""

import functools
import os
from collections.abc import Callable
from pathlib import Path

from detops.runtime import _environment, _registry

# More would only exhaust the machine.
MAX_THREADS = 4096


def _quota(root: Path) -> int:
    """Return the processors' worth of time that control groups of Linux allow, rounded up; MAX_THREADS for no limit.

    Version 2 writes quota and period to ``cpu.max``, version 1 to files of their own; groups further up count too.
    """
    least = MAX_THREADS
    try:
        groups = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return least
    for line in groups:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = root / "sys/fs/cgroup" / ("cpu" if controllers else "")
        group = top / path.strip("/")
        for folder in (group, *group.parents):
            least = min(least, _quota_of(folder, bool(controllers)))
            if folder == top:
                break
    return least


def _quota_of(folder: Path, first_version: bool) -> int:
    try:
        if first_version:
            quota, period = ((folder / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        else:
            quota, period = (folder / "cpu.max").read_text().split()
        # "max" and -1 stand for no limit.
        return max(-(-int(quota) // int(period)), 1) if int(quota) > 0 else MAX_THREADS
    except (OSError, ValueError, ZeroDivisionError):
        return MAX_THREADS


@functools.cache
def _look() -> Callable[[bool], int]:
    """Return a function that counts the processors this thread may use at present; the compiled one is quickest."""
    told = getattr(os, "process_cpu_count", None)
    if not hasattr(os, "sched_getaffinity") or (told is not None and told() != len(os.sched_getaffinity(0))):
        # PYTHON_CPU_COUNT and -X cpu_count stand above the system.
        return lambda afresh: (told or os.cpu_count)() or 1
    threads = _registry.part("threads")
    # More processors than the C library's masks hold are not told there.
    if threads is None or not threads.usable_cpus(True):
        return lambda afresh: len(os.sched_getaffinity(0))
    return threads.usable_cpus


# DETOPS_MOVE_THREADS: whether a worker's affinity may be moved for the moment of waking, see ``_cython/affinity.pxi``.
move_threads = bool(_environment.number("DETOPS_MOVE_THREADS", 1, at_least=0, at_most=1))

_most_by_quota = _quota(Path("/"))
# None where nobody has said.
_num_threads: int | None = _environment.number("DETOPS_NUM_THREADS", 0, at_least=1, at_most=MAX_THREADS) or None


def get_num_threads() -> int:
    """Return how many threads a CPU kernel may use.

    Returns
    -------
    int
        The number set by :func:`set_num_threads`; before that the environment variable ``DETOPS_NUM_THREADS``,
        and without it the number of CPUs that the calling thread may use at present (``os.sched_setaffinity``), or
        those that a control group's quota (``cpu.max``) was worth at import, rounded up, where that is less.

    Examples
    --------
    >>> import detops
    >>> detops.get_num_threads() >= 1
    True
    """
    return _num_threads or min(_look()(True), _most_by_quota)


def of_call() -> int:
    """Return how many threads a kernel that is called now may use; an affinity may count a few milliseconds late."""
    if _num_threads:
        return _num_threads
    found = _look()(False)
    return found if found < _most_by_quota else _most_by_quota


def set_number(n: int) -> None:
    """Set how many threads every kernel may use from now on."""
    global _num_threads
    _num_threads = n
