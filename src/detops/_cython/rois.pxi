cdef struct Rois:
    # (batch, channels, height, width)
    const real* features
    # (num_rois, columns): the box is in the last four of 4 or 5 columns.
    const real* rois
    # The image of each roi: not checked again.
    const long long* images
    # (num_rois, channels, rows, columns)
    real* out
    Py_ssize_t batch
    Py_ssize_t channels
    Py_ssize_t height
    Py_ssize_t width
    Py_ssize_t num_rois
    Py_ssize_t roi_columns
    Py_ssize_t out_height
    Py_ssize_t out_width
    double spatial_scale
    # These are of roi_align alone. It sets `crowded` to the first roi that has too many points, and writes nothing
    # then; else to -1.
    Py_ssize_t* crowded
    # Samples of a bin along a side; 0 for as many as a bin has elements.
    Py_ssize_t ratio
    int mode
    bint aligned
