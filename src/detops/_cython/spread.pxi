# The team of NumPy callers: detops' own threads, see threads.pyx.
from cpython.pycapsule cimport PyCapsule_GetPointer

from detops._cython import threads
from detops.runtime._threads import of_call

include "team.pxi"


cdef spread_t spread_threads = <spread_t> PyCapsule_GetPointer(threads.spread, NULL)


cdef inline int execute(operator_t operator, const void* arguments) except -1:
    """Run an operator on as many threads as the user allows."""
    cdef Team team
    cdef int failed
    team.spread = spread_threads
    team.pool = NULL
    team.threads = of_call()
    with nogil:
        failed = operator(arguments, &team)
    if failed:
        raise MemoryError("not enough memory for the scratch space of a kernel")
    return 0
