cdef struct Cumulative:
    const element* x
    element* values
    long long* indices
    # The arrays are (outer, length, inner).
    Py_ssize_t outer
    Py_ssize_t length
    Py_ssize_t inner
    bint smallest
