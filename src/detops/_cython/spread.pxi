# Spreading a hot loop over threads. A loop is a C function over the items [begin, end) of its arguments: it knows no
# thread, so that ONNX Runtime can spread the same loop over its own pool. It returns 0, or -1 where memory ran out.
from cython.parallel cimport prange

from detops._threads import get_num_threads

ctypedef int (*loop_t)(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil


cdef inline int _run(
    loop_t loop, const void* arguments, Py_ssize_t items, Py_ssize_t grain, int threads
) noexcept nogil:
    cdef Py_ssize_t parts = (items + grain - 1) // grain
    cdef Py_ssize_t part, begin
    cdef int failed = 0
    if threads < 2 or parts < 2:
        return loop(arguments, 0, items) if items > 0 else 0
    for part in prange(parts, schedule="dynamic", num_threads=<int> min(parts, <Py_ssize_t> threads)):
        begin = part * grain
        failed += loop(arguments, begin, min(begin + grain, items))
    return failed


cdef inline int spread(loop_t loop, const void* arguments, Py_ssize_t items, Py_ssize_t grain) except -1:
    """Run the loop over all items, at least ``grain`` of them at a time, on as many threads as the user allows."""
    cdef int threads = get_num_threads()
    cdef int failed
    with nogil:
        failed = _run(loop, arguments, items, max(grain, <Py_ssize_t> 1), threads)
    if failed:
        raise MemoryError("not enough memory for the scratch space of a kernel")
    return 0
