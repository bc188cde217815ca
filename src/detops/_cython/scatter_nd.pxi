cdef struct Scatter:
    # (slots, row): an index tuple names a slot.
    const element* data
    # (tuples, depth)
    const long long* indices
    # (tuples, row)
    const element* updates
    # (slots, row); may be data itself.
    element* out
    # The lengths of the axes that a tuple runs over, their product being slots.
    const long long* lengths
    # Set to 1 by the check where an index is out of range.
    long long* bad
    Py_ssize_t slots
    Py_ssize_t row
    Py_ssize_t tuples
    Py_ssize_t depth
    # A Reduction.
    Py_ssize_t reduction
