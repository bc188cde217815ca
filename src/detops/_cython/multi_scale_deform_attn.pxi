cdef struct Attention:
    # (images, keys, heads, channels), the keys being the elements of the maps of all levels.
    const real* value
    # (levels, 2): height and width of each map, which lies within the keys.
    const long long* shapes
    # (levels,): the key that is the first of each map.
    const long long* starts
    # (images, queries, heads, levels, points, 2): x and y, 0 and 1 at the edges of a map.
    const real* locations
    # (images, queries, heads, levels, points).
    const real* weights
    # (images, queries, heads, channels).
    real* out
    Py_ssize_t images
    Py_ssize_t keys
    Py_ssize_t heads
    Py_ssize_t channels
    Py_ssize_t queries
    Py_ssize_t levels
    Py_ssize_t points
