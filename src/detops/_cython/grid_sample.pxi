cdef struct GridSample:
    # (images, channels, depth, height, width); a 4-D map has a depth of 1.
    const real* x
    # (images, points, axes): x, y and for three axes z.
    const real* grid
    # (images, channels, points).
    real* out
    Py_ssize_t images
    Py_ssize_t channels
    Py_ssize_t points
    # Width, height, depth: in the order of the grid's coordinates.
    Py_ssize_t[3] sizes
    # Elements from one to the next along each of these axes, and from channel to channel.
    Py_ssize_t[4] strides
    Py_ssize_t axes
    # A GridMode: the elements that a sample weighs along an axis.
    Py_ssize_t taps
    # A Border.
    Py_ssize_t border
    bint align_corners
