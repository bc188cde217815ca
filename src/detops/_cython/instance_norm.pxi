cdef struct InstanceNorm:
    # (instances, size), instances being images times channels.
    const element* x
    # One for each channel; NULL for 1 and 0.
    const element* scale
    const element* bias
    element* out
    Py_ssize_t instances
    Py_ssize_t channels
    Py_ssize_t size
    double epsilon
