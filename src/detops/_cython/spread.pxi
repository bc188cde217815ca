# Who does the work. A loop is a C function over the items [begin, end) of its arguments and knows no thread. An
# operator is a C function that runs one or more loops on a team. NumPy callers bring a team of OpenMP threads, ONNX
# Runtime's custom operators bring the session's own pool; both run the same operators. All return 0, or -1 where
# memory ran out.
from cython.parallel cimport prange

from detops._threads import get_num_threads

ctypedef int (*loop_t)(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil

cdef struct Team:
    # Calls the loop over all items, at least grain of them at a time.
    int (*spread)(const Team* team, loop_t loop, const void* arguments, Py_ssize_t items, Py_ssize_t grain) noexcept nogil
    void* pool
    int threads

ctypedef int (*operator_t)(const void* arguments, const Team* team) noexcept nogil


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
    team.threads = get_num_threads()
    with nogil:
        failed = operator(arguments, &team)
    if failed:
        raise MemoryError("not enough memory for the scratch space of a kernel")
    return 0
