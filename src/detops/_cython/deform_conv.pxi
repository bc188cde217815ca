cdef struct DeformConv:
    # (images, channels, height, width).
    const real* x
    # (images, offset_groups, taps, 2, out_height, out_width): y, then x.
    const real* offset
    # (images, offset_groups, taps, out_height, out_width); NULL for ones.
    const real* mask
    # (outputs, channels / groups, kernel_height, kernel_width).
    const real* weight
    # (outputs); NULL for zeros.
    const real* bias
    # (images, outputs, out_height, out_width).
    real* out
    Py_ssize_t images
    Py_ssize_t channels
    Py_ssize_t height
    Py_ssize_t width
    Py_ssize_t outputs
    Py_ssize_t out_height
    Py_ssize_t out_width
    Py_ssize_t kernel_height
    Py_ssize_t kernel_width
    # Along y, then x; padding at the top and at the left.
    Py_ssize_t[2] stride
    Py_ssize_t[2] padding
    Py_ssize_t[2] dilation
    Py_ssize_t groups
    Py_ssize_t offset_groups
    # Images that are copied at a time; 0 for as many as the cache holds.
    Py_ssize_t im2col_step
