"""Sampling of maps at the points of a grid."""

from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

include "scalar.pxi"
include "buffers.pxi"
include "spread.pxi"
include "prefetch.pxi"
include "stream.pxi"
include "grid_sample.pxi"
include "../_core/sampling.py"

cdef extern from "Python.h":
    const Py_ssize_t PY_SSIZE_T_MAX

cdef enum:
    # Points whose taps are found together, for all channels of a block; no more than so many taps.
    POINTS = 256
    TAPS = 4096
    # Channels whose elements are asked for before their turn.
    AHEAD = 2
    # Tiles that are worth another thread.
    GRAIN = 8
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
    Py_ssize_t[POINTS] outside
    Py_ssize_t[POINTS] axis_at
    real[POINTS] axis_weight
    # All taps of each point, tap after tap: where in a channel (below 0: nowhere) and how much.
    Py_ssize_t taps
    Py_ssize_t[TAPS] at
    real[TAPS] weight


cdef struct Rest:
    # The points of a tile whose taps are not all inside the map, and their numbers there.
    Tile tile
    Py_ssize_t[POINTS] which

cdef struct Work:
    Tile tile
    Rest rest
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
            tile.fraction[axis][i] = unnormalise(grid[i * axes + axis], size, align_corners)
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


cdef Py_ssize_t split(const GridSample* sample, Tile* tile, Rest* rest) noexcept nogil:
    """Where the four elements start that a point is blended from; points with fewer inside the map are the rest."""
    cdef Py_ssize_t i, count = 0, width = sample.sizes[0], height = sample.sizes[1]
    cdef Py_ssize_t x, y, outside = 0
    for i in range(tile.points):
        x, y = tile.first[0][i], tile.first[1][i]
        tile.outside[i] = (x < 0) | (x > width - 2) | (y < 0) | (y > height - 2)
        tile.at[i] = 0 if tile.outside[i] else y * width + x
        outside |= tile.outside[i]
    if outside:
        for i in range(tile.points):
            # Written in any case, and overwritten unless it is counted.
            rest.which[count] = i
            count += tile.outside[i]
    rest.tile.points = count
    for i in range(count):
        rest.tile.first[0][i], rest.tile.first[1][i] = tile.first[0][rest.which[i]], tile.first[1][rest.which[i]]
        rest.tile.fraction[0][i] = tile.fraction[0][rest.which[i]]
        rest.tile.fraction[1][i] = tile.fraction[1][rest.which[i]]
    return count


cdef void gather_corners(const real* plane, Py_ssize_t width, const Tile* tile, real* out) noexcept nogil:
    """The same as gather, bit for bit, for points that are blended from four elements inside the map."""
    cdef real[2 * POINTS] upper, lower
    cdef real[POINTS] total
    cdef Py_ssize_t i
    cdef real a, b, c, d
    for i in range(tile.points):
        # Neighbours are loaded in pairs, which are half as many loads.
        memcpy(&upper[2 * i], plane + tile.at[i], 2 * sizeof(real))
        memcpy(&lower[2 * i], plane + tile.at[i] + width, 2 * sizeof(real))
    for i in range(tile.points):
        a, b, c, d = bilinear_weights(tile.fraction[1][i], tile.fraction[0][i])
        total[i] = blend(upper[2 * i], upper[2 * i + 1], lower[2 * i], lower[2 * i + 1], a, b, c, d)
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


cdef inline void find(const GridSample* sample, const real* grid, Py_ssize_t border, Work* work) noexcept nogil:
    """Where and how much to read for the points of a tile; the border is a constant where this is called."""
    if sample.axes == 2:
        locate(sample, grid, 2, border, &work.tile)
    else:
        locate(sample, grid, 3, border, &work.tile)
    if not work.blended:
        find_taps(sample, border, &work.tile)
    elif split(sample, &work.tile, &work.rest) > 0:
        find_taps(sample, border, &work.rest.tile)


cdef inline void fetch_ahead(const real* plane, Py_ssize_t width, const Tile* tile) noexcept nogil:
    """Ask for what gather_corners will read, where neighbouring points read neighbouring elements."""
    cdef Py_ssize_t i = 0
    while i < tile.points:
        prefetch(plane + tile.at[i])
        prefetch(plane + tile.at[i] + width)
        i += 64 // <Py_ssize_t> sizeof(real)


cdef inline void sample_channel(const GridSample* sample, const Work* work, const real* plane, real* out) noexcept nogil:
    cdef real[POINTS] values, patches
    cdef Py_ssize_t i
    if not work.blended:
        gather(plane, &work.tile, values)
    else:
        gather_corners(plane, sample.sizes[0], &work.tile, values)
        if work.rest.tile.points > 0:
            gather(plane, &work.rest.tile, patches)
            for i in range(work.rest.tile.points):
                values[work.rest.which[i]] = patches[i]
    if work.streamed:
        stream(out, values, work.tile.points * sizeof(real))
    else:
        memcpy(out, values, work.tile.points * sizeof(real))


cdef int sample_loop(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is one tile of points in one block of channels of one image."""
    cdef const GridSample* sample = <const GridSample*> arguments
    cdef Py_ssize_t length = points_of_tile(sample), width = channels_of_block(sample)
    cdef Py_ssize_t tiles = (sample.points + length - 1) // length
    cdef Py_ssize_t blocks = (sample.channels + width - 1) // width
    cdef Py_ssize_t plane = sample.strides[3]
    cdef Py_ssize_t item, image, channel, first, point, start, stop
    cdef const real* grid
    cdef Work* work = <Work*> malloc(sizeof(Work))
    if work == NULL:
        return -1
    work.blended = sample.taps == 2 and sample.axes == 2 and sample.sizes[0] > 1 and sample.sizes[1] > 1
    work.streamed = sample.images * sample.channels * sample.points * <Py_ssize_t> sizeof(real) >= STREAM_FROM_BYTES
    for item in range(begin, end):
        image = item // (tiles * blocks)
        first = item // tiles % blocks * width
        point = item % tiles * length
        work.tile.points = min(length, sample.points - point)
        grid = sample.grid + (image * sample.points + point) * sample.axes
        if sample.border == 0:
            find(sample, grid, 0, work)
        elif sample.border == 1:
            find(sample, grid, 1, work)
        else:
            find(sample, grid, 2, work)
        start = image * sample.channels + first
        stop = image * sample.channels + min(first + width, sample.channels)
        for channel in range(start - AHEAD, stop):
            if work.blended and channel + AHEAD < stop:
                fetch_ahead(sample.x + (channel + AHEAD) * plane, sample.sizes[0], &work.tile)
            if channel >= start:
                sample_channel(sample, work, sample.x + channel * plane, sample.out + channel * sample.points + point)
    free(work)
    stream_end()
    return 0


cdef api int grid_sample_operator(const void* arguments, const Team* team) noexcept nogil:
    cdef const GridSample* sample = <const GridSample*> arguments
    cdef Py_ssize_t length = points_of_tile(sample), width = channels_of_block(sample)
    cdef Py_ssize_t tiles = (sample.points + length - 1) // length
    if sample.channels == 0:
        return 0
    return team.spread(team, sample_loop, sample, sample.images * tiles * ((sample.channels + width - 1) // width),
                       GRAIN)


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
