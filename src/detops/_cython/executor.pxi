# Loops, operators and executors. A loop is a C function over the items [begin, end) of its arguments and knows no thread.
# An operator is a C function that runs one or more loops on an executor. NumPy callers bring detops' own threads, ONNX
# Runtime's custom operators bring the session's pool; both run the same operators. All return 0, or -1 where
# memory ran out.
ctypedef int (*loop_t)(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil

cdef struct Executor

# Calls the loop over all items, at least grain of them at a time.
ctypedef int (*parallel_for_t)(
    const Executor* executor, loop_t loop, const void* arguments, Py_ssize_t items, Py_ssize_t grain) noexcept nogil

cdef struct Executor:
    parallel_for_t parallel_for
    void* pool
    int threads

ctypedef int (*operator_t)(const void* arguments, const Executor* executor) noexcept nogil
