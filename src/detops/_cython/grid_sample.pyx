"""Sampling of maps at the points of a grid."""

from libc.string cimport memcpy, memset

include "scalar.pxi"
include "buffers.pxi"
include "parallel_for.pxi"
include "allocate.pxi"
include "prefetch.pxi"
include "stream.pxi"
include "pairs.pxi"
include "grid_sample.pxi"
include "../_core/sampling.py"
include "transpose.pxi"
include "block_channels.pxi"
include "tiles.pxi"


cdef enum:
    # Channels whose elements are asked for before their turn.
    AHEAD = 2
    # Tiles that are worth another thread.
    GRAIN = 8
    # A block of channels stays in the second-level cache while all points of an image are sampled.
    BLOCK_BYTES = 1 << 20
    LEAST_CHANNELS = 16


cdef void gather_corners(const real* plane, Py_ssize_t width, const Tile* tile, real* out) noexcept nogil:
    """The same as gather, bit for bit, for points that are blended from four elements inside the map."""
    cdef real[POINTS] top_left, top_right, bottom_left, bottom_right, total
    cdef Py_ssize_t i
    cdef real a, b, c, d
    for i in range(0, tile.points, 4):
        split_pairs(plane, &tile.at[i], &top_left[i], &top_right[i])
        split_pairs(plane + width, &tile.at[i], &bottom_left[i], &bottom_right[i])
    for i in range(tile.points):
        a, b, c, d = bilinear_weights(tile.fraction[1][i], tile.fraction[0][i])
        total[i] = blend(top_left[i], top_right[i], bottom_left[i], bottom_right[i], a, b, c, d)
    memcpy(out, total, tile.points * sizeof(real))


cdef void gather(const real* plane, const Tile* tile, real* out) noexcept nogil:
    """The weighted sum of each point's taps in one channel."""
    # Local arrays, which no pointer can reach, for the same reason as the struct.
    cdef real[POINTS] total, values
    cdef Py_ssize_t points = tile.points, tap, start, i
    for i in range(points):
        total[i] = 0
    for tap in range(tile.taps):
        start = tap * points
        for i in range(0, points, 4):
            collect(plane, &tile.at[start + i], &values[i])
        for i in range(points):
            total[i] += tile.weight[start + i] * values[i]
    memcpy(out, total, points * sizeof(real))


cdef Py_ssize_t taps_of_point(const GridSample* sample) noexcept nogil:
    return sample.taps * sample.taps * (sample.taps if sample.axes == 3 else 1)


cdef Py_ssize_t points_of_tile(const GridSample* sample) noexcept nogil:
    return min(<Py_ssize_t> POINTS, TAPS // taps_of_point(sample))


cdef Py_ssize_t channels_of_block(const GridSample* sample) noexcept nogil:
    cdef Py_ssize_t plane = sample.strides[3] * sizeof(real)
    return min(sample.channels, max(<Py_ssize_t> LEAST_CHANNELS, BLOCK_BYTES // max(plane, <Py_ssize_t> 1)))


cdef inline void fetch_ahead(const real* plane, Py_ssize_t width, const Tile* tile) noexcept nogil:
    """Ask for what gather_corners will read, where neighboring points read neighboring elements."""
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
        if work.edge.tile.points > 0:
            gather(plane, &work.edge.tile, patches)
            for i in range(work.edge.tile.points):
                values[work.edge.which[i]] = patches[i]
    if work.streamed:
        stream(out, values, work.tile.points * sizeof(real))
    else:
        memcpy(out, values, work.tile.points * sizeof(real))


cdef inline Py_ssize_t tiles_of_image(const GridSample* sample) noexcept nogil:
    cdef Py_ssize_t length = points_of_tile(sample)
    return (sample.points + length - 1) // length


cdef Work* begin_work(const GridSample* sample) noexcept nogil:
    """Memory for the tiles of a loop, and how they are sampled; NULL: none is left."""
    cdef Work* work = <Work*> allocate(sizeof(Work))
    if work != NULL:
        work.blended = sample.taps == 2 and sample.axes == 2 and sample.sizes[0] > 1 and sample.sizes[1] > 1
        work.streamed = (
            sample.images * sample.channels * sample.points * <Py_ssize_t> sizeof(real) >= STREAM_FROM_BYTES)
    return work


cdef void find_points(const GridSample* sample, Py_ssize_t image, Py_ssize_t point, Work* work) noexcept nogil:
    """Where and how much to read for the tile of an image that begins at a point."""
    cdef const real* grid = sample.grid + (image * sample.points + point) * sample.axes
    work.tile.points = min(points_of_tile(sample), sample.points - point)
    # The compiler makes a loop per constant border.
    if sample.border == Border.ZEROS:
        find(sample, grid, Border.ZEROS, work)
    elif sample.border == Border.BORDER:
        find(sample, grid, Border.BORDER, work)
    elif sample.border == Border.REFLECTION:
        find(sample, grid, Border.REFLECTION, work)
    else:
        find(sample, grid, Border.REFLECT_FIRST, work)


cdef int planes_loop(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is one tile of points in one block of channels of one image."""
    cdef const GridSample* sample = <const GridSample*> arguments
    cdef Py_ssize_t width = channels_of_block(sample), tiles = tiles_of_image(sample)
    cdef Py_ssize_t blocks = (sample.channels + width - 1) // width
    cdef Py_ssize_t plane = sample.strides[3]
    cdef Py_ssize_t item, image, channel, first, point, start, stop
    cdef Work* work = begin_work(sample)
    if work == NULL:
        return -1
    for item in range(begin, end):
        image = item // (tiles * blocks)
        first = item // tiles % blocks * width
        point = item % tiles * points_of_tile(sample)
        find_points(sample, image, point, work)
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


include "innermost.pxi"


cdef api int grid_sample_operator(const void* arguments, const Executor* executor) noexcept nogil:
    cdef const GridSample* sample = <const GridSample*> arguments
    cdef Py_ssize_t width = channels_of_block(sample)
    if sample.channels == 0:
        return 0
    if copies_pay(sample):
        return sample_innermost(sample, executor)
    return executor.parallel_for(executor, planes_loop, sample,
                       sample.images * tiles_of_image(sample) * ((sample.channels + width - 1) // width), GRAIN)


def grid_sample(x, grid, Py_ssize_t taps, Py_ssize_t border, bint align_corners, out):
    cdef GridSample sample
    sample.x = <const real*> address(x)
    sample.grid = <const real*> address(grid)
    sample.out = <real*> mutable(out)
    sample.images, sample.channels, sample.sizes[2], sample.sizes[1], sample.sizes[0] = x.shape
    sample.strides = 1, x.shape[4], x.shape[3] * x.shape[4], x.shape[2] * x.shape[3] * x.shape[4]
    sample.points, sample.axes = grid.shape[1:]
    sample.taps = taps
    sample.border = border
    sample.align_corners = align_corners
    execute(grid_sample_operator, &sample)
