# Loops, operators and teams. A loop is a C function over the items [begin, end) of its arguments and knows no thread.
# An operator is a C function that runs one or more loops on a team. NumPy callers bring detops' own threads, ONNX
# Runtime's custom operators bring the session's pool; both run the same operators. All return 0, or -1 where
# memory ran out.
ctypedef int (*loop_t)(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil

cdef struct Team

# Calls the loop over all items, at least grain of them at a time.
ctypedef int (*spread_t)(
    const Team* team, loop_t loop, const void* arguments, Py_ssize_t items, Py_ssize_t grain) noexcept nogil

cdef struct Team:
    spread_t spread
    void* pool
    int threads

ctypedef int (*operator_t)(const void* arguments, const Team* team) noexcept nogil
