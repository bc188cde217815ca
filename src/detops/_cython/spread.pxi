# The team of NumPy callers: OpenMP threads.
from cython.parallel cimport prange

from detops._threads import openmp_threads

include "team.pxi"


cdef inline int spread_openmp(
    const Team* team, loop_t loop, const void* arguments, Py_ssize_t items, Py_ssize_t grain
) noexcept nogil:
    cdef Py_ssize_t size = max(grain, <Py_ssize_t> 1)
    cdef Py_ssize_t parts = (items + size - 1) // size
    cdef Py_ssize_t part, begin
    cdef int failed = 0
    if team.threads < 2 or parts < 2:
        return loop(arguments, 0, items) if items > 0 else 0
    for part in prange(parts, schedule="dynamic", num_threads=<int> min(parts, <Py_ssize_t> team.threads)):
        begin = part * size
        failed += loop(arguments, begin, min(begin + size, items))
    return -1 if failed else 0


cdef inline int execute(operator_t operator, const void* arguments) except -1:
    """Run an operator on as many threads as the user allows."""
    cdef Team team
    cdef int failed
    team.spread = spread_openmp
    team.pool = NULL
    team.threads = openmp_threads()
    with nogil:
        failed = operator(arguments, &team)
    if failed:
        raise MemoryError("not enough memory for the scratch space of a kernel")
    return 0
