cdef struct Boxes:
    const real* subject
    const real* anchors
    real* out
    Py_ssize_t count
    # Anchors repeat after the last of them.
    Py_ssize_t anchor_count
    # Boxes in a row that share an anchor.
    Py_ssize_t classes
    # Boxes whose first coordinates lie side by side, then their second ones, and so on; 1 for (boxes, 4).
    Py_ssize_t inner
    double[4] scales
    double[4] means
    # An AnchorForm.
    Py_ssize_t form
    double offset
    double lower_clip
    double decode_clip
