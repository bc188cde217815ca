"""How many threads a CPU kernel may use."""

import os

from detops import _environment

# More would only exhaust the machine.
MAX_THREADS = 4096


def _usable_cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_num_threads = _environment.number("DETOPS_NUM_THREADS", _usable_cpus(), at_least=1, at_most=MAX_THREADS)


def get_num_threads() -> int:
    """Return how many threads a CPU kernel may use.

    Returns
    -------
    int
        The number set by :func:`set_num_threads`; before that the environment variable ``DETOPS_NUM_THREADS``,
        and without it the number of CPUs that this process may use.

    Examples
    --------
    >>> import detops
    >>> detops.get_num_threads() >= 1
    True
    """
    return _num_threads


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
    from detops import _checks

    global _num_threads
    _num_threads = _checks.integer("n", n, at_least=1, at_most=MAX_THREADS)
