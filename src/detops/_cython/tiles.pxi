# Where the points of a grid read a map, found for a tile of points at a time and used for many channels.
cdef extern from "Python.h":
    const Py_ssize_t PY_SSIZE_T_MAX

cdef enum:
    # Points and taps at most of a tile: their taps are found together, for all channels of a block.
    POINTS = 256
    TAPS = 4096


cdef struct Tile:
    # Arrays in one struct cannot overlap; a compiler that knows turns the loops over them into vector code.
    Py_ssize_t points
    # Along each axis: the first tap of each point, and how far above a tap the point is.
    Py_ssize_t[3][POINTS] first
    real[3][POINTS] fraction
    # Whether some of a point's taps are outside the map.
    Py_ssize_t[POINTS] outside
    # One tap along one axis.
    Py_ssize_t[POINTS] axis_at
    real[POINTS] axis_weight
    # All taps of each point, tap after tap: where in a channel (below 0: nowhere) and how much.
    Py_ssize_t taps
    Py_ssize_t[TAPS + 3] at
    real[TAPS] weight


cdef struct Edge:
    # The points of a tile whose taps are not all inside the map, and their numbers there.
    Tile tile
    Py_ssize_t[POINTS] which

cdef struct Work:
    Tile tile
    Edge edge
    # Whether most points are blends of four elements of a 2-D map.
    bint blended
    bint streamed


cdef inline void locate(
    const GridSample* sample, const real* grid, Py_ssize_t axes, Py_ssize_t border, Tile* tile
) noexcept nogil:
    """First taps along all axes, a step at a time.

    Axes and border are constants where this is called: short loops without a branch become vector code.
    """
    cdef Py_ssize_t axis, i, size, taps = sample.taps
    cdef bint align_corners = sample.align_corners
    cdef real fraction
    for axis in range(axes):
        size = sample.sizes[axis]
        for i in range(tile.points):
            tile.fraction[axis][i] = unnormalize(grid[i * axes + axis], size, align_corners)
        for i in range(tile.points):
            tile.fraction[axis][i] = clip_coordinate(tile.fraction[axis][i], size, border, align_corners)
        for i in range(tile.points):
            tile.first[axis][i], fraction = first_tap(tile.fraction[axis][i], taps)
            tile.fraction[axis][i] = fraction


cdef inline void taps_of_axis(
    const GridSample* sample, Py_ssize_t axis, Py_ssize_t tap, Py_ssize_t border, Tile* tile
) noexcept nogil:
    """One of the taps along an axis."""
    cdef Py_ssize_t i, index, size = sample.sizes[axis], stride = sample.strides[axis], taps = sample.taps
    # Below 0 whatever is added for the other axes.
    cdef Py_ssize_t nowhere = -PY_SSIZE_T_MAX // 4
    cdef bint align_corners = sample.align_corners
    for i in range(tile.points):
        index = tap_index(tile.first[axis][i] + tap, size, border, align_corners)
        tile.axis_at[i] = nowhere if index < 0 else index * stride
        tile.axis_weight[i] = tap_weight(tap, taps, tile.fraction[axis][i])


cdef inline void find_taps(const GridSample* sample, Py_ssize_t border, Tile* tile) noexcept nogil:
    """All taps of the tile's points: the products of those along each axis, the fastest axis of the map first."""
    cdef Py_ssize_t axis, tap, outer, source, target, i
    tile.taps = 1
    for i in range(tile.points):
        tile.at[i] = 0
        tile.weight[i] = 1
    for axis in range(sample.axes):
        # From the last tap to the first: what has been found stays until it is used.
        for tap in range(sample.taps - 1, -1, -1):
            taps_of_axis(sample, axis, tap, border, tile)
            for outer in range(tile.taps):
                source = outer * tile.points
                target = (tap * tile.taps + outer) * tile.points
                for i in range(tile.points):
                    tile.at[target + i] = tile.at[source + i] + tile.axis_at[i]
                    tile.weight[target + i] = tile.weight[source + i] * tile.axis_weight[i]
        tile.taps *= sample.taps
    # Taps are read four at a time.
    for i in range(3):
        tile.at[tile.taps * tile.points + i] = -1


cdef Py_ssize_t split(const GridSample* sample, Tile* tile, Edge* edge) noexcept nogil:
    """Where the four elements start that a point is blended from; points with fewer inside the map are at the edge."""
    cdef Py_ssize_t i, count = 0, width = sample.sizes[0], height = sample.sizes[1]
    cdef Py_ssize_t x, y, outside = 0
    for i in range(tile.points):
        x, y = tile.first[0][i], tile.first[1][i]
        tile.outside[i] = (x < 0) | (x > width - 2) | (y < 0) | (y > height - 2)
        tile.at[i] = 0 if tile.outside[i] else y * width + x
        outside |= tile.outside[i]
    # Points are read four at a time.
    for i in range(tile.points, (tile.points + 3) // 4 * 4):
        tile.at[i] = 0
    if outside:
        for i in range(tile.points):
            # Written in any case, and overwritten unless it is counted.
            edge.which[count] = i
            count += tile.outside[i]
    edge.tile.points = count
    for i in range(count):
        edge.tile.first[0][i], edge.tile.first[1][i] = tile.first[0][edge.which[i]], tile.first[1][edge.which[i]]
        edge.tile.fraction[0][i] = tile.fraction[0][edge.which[i]]
        edge.tile.fraction[1][i] = tile.fraction[1][edge.which[i]]
    return count


cdef inline void find(const GridSample* sample, const real* grid, Py_ssize_t border, Work* work) noexcept nogil:
    """Where and how much to read for the points of a tile; the border is a constant where this is called."""
    if sample.axes == 2:
        locate(sample, grid, 2, border, &work.tile)
    else:
        locate(sample, grid, 3, border, &work.tile)
    if not work.blended:
        find_taps(sample, border, &work.tile)
    elif split(sample, &work.tile, &work.edge) > 0:
        find_taps(sample, border, &work.edge.tile)
