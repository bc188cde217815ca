"""Sampling of maps at the points of a grid."""

from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

include "scalar.pxi"
include "buffers.pxi"
include "spread.pxi"
include "grid_sample.pxi"
include "../_core/sampling.py"

cdef extern from "Python.h":
    const Py_ssize_t PY_SSIZE_T_MAX

cdef enum:
    # Points whose taps are found together, for all channels of a block; no more than so many taps.
    POINTS = 256
    TAPS = 4096
    # A block of channels stays in the second-level cache while all points of an image are sampled.
    BLOCK_BYTES = 1 << 20
    BLOCK_CHANNELS = 16


cdef struct Tile:
    # Arrays in one struct cannot overlap; a compiler that knows turns the loops over them into vector code.
    Py_ssize_t points
    # Along each axis: the first tap of each point, and how far above a tap the point is.
    Py_ssize_t[3][POINTS] first
    real[3][POINTS] fraction
    # One tap along one axis.
    Py_ssize_t[POINTS] axis_at
    real[POINTS] axis_weight
    # All taps of each point, tap after tap: where in a channel (below 0: nowhere) and how much.
    Py_ssize_t taps
    Py_ssize_t[TAPS] at
    real[TAPS] weight


cdef inline void locate(const GridSample* sample, const real* grid, Py_ssize_t border, Tile* tile) noexcept nogil:
    """First taps along all axes, a step at a time.

    The border is a constant where this is called: short loops without a branch become vector code.
    """
    cdef Py_ssize_t axis, i, size, taps = sample.taps
    cdef bint align_corners = sample.align_corners
    cdef real fraction
    for axis in range(sample.axes):
        size = sample.sizes[axis]
        for i in range(tile.points):
            tile.fraction[axis][i] = unnormalise(grid[i * sample.axes + axis], size, align_corners)
        for i in range(tile.points):
            tile.fraction[axis][i] = confine(tile.fraction[axis][i], size, border, align_corners)
        for i in range(tile.points):
            tile.first[axis][i], fraction = first_tap(tile.fraction[axis][i], taps)
            tile.fraction[axis][i] = fraction


cdef inline void place(const GridSample* sample, Py_ssize_t axis, Py_ssize_t tap, Py_ssize_t border,
                       Tile* tile) noexcept nogil:
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
            place(sample, axis, tap, border, tile)
            for outer in range(tile.taps):
                source = outer * tile.points
                target = (tap * tile.taps + outer) * tile.points
                for i in range(tile.points):
                    tile.at[target + i] = tile.at[source + i] + tile.axis_at[i]
                    tile.weight[target + i] = tile.weight[source + i] * tile.axis_weight[i]
        tile.taps *= sample.taps


cdef bint find_corners(const GridSample* sample, Tile* tile) noexcept nogil:
    """Whether every point is to be blended from four elements inside a 2-D map; then where the first of them are."""
    cdef Py_ssize_t i, outside = 0, width = sample.sizes[0], height = sample.sizes[1]
    if sample.taps != 2 or sample.axes != 2:
        return False
    for i in range(tile.points):
        outside |= (tile.first[0][i] < 0) | (tile.first[0][i] > width - 2)
        outside |= (tile.first[1][i] < 0) | (tile.first[1][i] > height - 2)
    for i in range(tile.points):
        tile.at[i] = tile.first[1][i] * width + tile.first[0][i]
    return outside == 0


cdef void gather_corners(const real* plane, Py_ssize_t width, const Tile* tile, real* out) noexcept nogil:
    """The same as gather, bit for bit, where find_corners found what it needs."""
    cdef real[POINTS] total
    cdef Py_ssize_t at, i
    cdef real a, b, c, d
    for i in range(tile.points):
        at = tile.at[i]
        a, b, c, d = bilinear_weights(tile.fraction[1][i], tile.fraction[0][i])
        total[i] = blend(plane[at], plane[at + 1], plane[at + width], plane[at + width + 1], a, b, c, d)
    memcpy(out, total, tile.points * sizeof(real))


cdef void gather(const real* plane, const Tile* tile, real* out) noexcept nogil:
    """The weighted sum of each point's taps in one channel."""
    # A local array, which no pointer can reach, for the same reason as the struct.
    cdef real[POINTS] total
    cdef Py_ssize_t points = tile.points, tap, start, i
    for i in range(points):
        total[i] = 0
    for tap in range(tile.taps):
        start = tap * points
        for i in range(points):
            total[i] += tile.weight[start + i] * (plane[tile.at[start + i]] if tile.at[start + i] >= 0 else 0)
    memcpy(out, total, points * sizeof(real))


cdef Py_ssize_t taps_of_point(const GridSample* sample) noexcept nogil:
    return sample.taps * sample.taps * (sample.taps if sample.axes == 3 else 1)


cdef Py_ssize_t points_of_tile(const GridSample* sample) noexcept nogil:
    return min(<Py_ssize_t> POINTS, TAPS // taps_of_point(sample))


cdef Py_ssize_t channels_of_block(const GridSample* sample) noexcept nogil:
    cdef Py_ssize_t plane = sample.strides[3] * sizeof(real)
    return min(sample.channels, max(<Py_ssize_t> BLOCK_CHANNELS, BLOCK_BYTES // max(plane, <Py_ssize_t> 1)))


cdef inline bint find(const GridSample* sample, const real* grid, Py_ssize_t border, Tile* tile) noexcept nogil:
    locate(sample, grid, border, tile)
    if find_corners(sample, tile):
        return True
    find_taps(sample, border, tile)
    return False


cdef bint find_tile(const GridSample* sample, const real* grid, Tile* tile) noexcept nogil:
    """Where and how much to read for the points of a tile; whether gather_corners can do it."""
    if sample.border == 0:
        return find(sample, grid, 0, tile)
    if sample.border == 1:
        return find(sample, grid, 1, tile)
    return find(sample, grid, 2, tile)


cdef int sample_loop(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is one tile of points in one block of channels of one image."""
    cdef const GridSample* sample = <const GridSample*> arguments
    cdef Py_ssize_t length = points_of_tile(sample), width = channels_of_block(sample)
    cdef Py_ssize_t tiles = (sample.points + length - 1) // length
    cdef Py_ssize_t blocks = (sample.channels + width - 1) // width
    cdef Py_ssize_t plane = sample.strides[3]
    cdef Py_ssize_t item, image, channel, first, point
    cdef const real* grid
    cdef real* out
    cdef bint plain
    cdef Tile* tile = <Tile*> malloc(sizeof(Tile))
    if tile == NULL:
        return -1
    for item in range(begin, end):
        image = item // (tiles * blocks)
        first = item // tiles % blocks * width
        point = item % tiles * length
        tile.points = min(length, sample.points - point)
        grid = sample.grid + (image * sample.points + point) * sample.axes
        plain = find_tile(sample, grid, tile)
        for channel in range(image * sample.channels + first,
                             image * sample.channels + min(first + width, sample.channels)):
            out = sample.out + channel * sample.points + point
            if plain:
                gather_corners(sample.x + channel * plane, sample.sizes[0], tile, out)
            else:
                gather(sample.x + channel * plane, tile, out)
    free(tile)
    return 0


cdef api int grid_sample_operator(const void* arguments, const Team* team) noexcept nogil:
    cdef const GridSample* sample = <const GridSample*> arguments
    cdef Py_ssize_t length = points_of_tile(sample), width = channels_of_block(sample)
    cdef Py_ssize_t tiles = (sample.points + length - 1) // length
    if sample.channels == 0:
        return 0
    return team.spread(team, sample_loop, sample, sample.images * tiles * ((sample.channels + width - 1) // width), 1)


def grid_sample(x, grid, Py_ssize_t taps, Py_ssize_t border, bint align_corners, out):
    cdef GridSample sample
    sample.x = <const real*> data(x)
    sample.grid = <const real*> data(grid)
    sample.out = <real*> mutable(out)
    sample.images, sample.channels, sample.sizes[2], sample.sizes[1], sample.sizes[0] = x.shape
    sample.strides = 1, x.shape[4], x.shape[3] * x.shape[4], x.shape[2] * x.shape[3] * x.shape[4]
    sample.points, sample.axes = grid.shape[1:]
    sample.taps = taps
    sample.border = border
    sample.align_corners = align_corners
    execute(grid_sample_operator, &sample)
