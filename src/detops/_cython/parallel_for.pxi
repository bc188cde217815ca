# The executor of NumPy callers: detops' own threads, see threads.pyx.
from cpython.pycapsule cimport PyCapsule_GetPointer

from detops._cython import threads
from detops.runtime._threads import of_call

include "executor.pxi"


cdef parallel_for_t parallel_for_threads = <parallel_for_t> PyCapsule_GetPointer(threads.parallel_for, NULL)


cdef inline int execute(operator_t operator, const void* arguments) except -1:
    """Run an operator on as many threads as the user allows."""
    cdef Executor executor
    cdef int failed
    executor.parallel_for = parallel_for_threads
    executor.pool = NULL
    executor.threads = of_call()
    with nogil:
        failed = operator(arguments, &executor)
    if failed:
        raise MemoryError("not enough memory for the scratch space of a kernel")
    return 0
