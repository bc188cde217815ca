cdef struct Boxes:
    const real* subject
    const real* anchors
    real* out
    Py_ssize_t count
    # So many boxes in a row share an anchor.
    Py_ssize_t classes
    # Whether the coordinates lie in four planes, rather than side by side.
    bint planes
    double[4] scales
    double[4] means
    double decode_clip
