cdef struct SoftNms:
    const real* boxes
    const real* scores
    # (count, 5) and (count,), of which found says how many rows are written.
    real* dets
    long long* selected
    long long* found
    Py_ssize_t count
    Py_ssize_t limit
    double iou_threshold
    # A SoftNmsMethod.
    Py_ssize_t method
    double sigma
    double min_score
    double offset
