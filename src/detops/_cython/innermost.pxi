# Sampling where there are many channels: blocks of them are copied with the channels innermost, so that one wide load
# brings an element of all channels of a block, and what was sampled is transposed back. The result is the same, bit for
# bit, as from the planes.
cdef enum:
    # Pixels that are copied together.
    RUN = 128
    # Runs that are worth another thread.
    COPY_GRAIN = 16
    # Bytes of copies at a time, but at least one block.
    COPY_BYTES = 1 << 21
    # What a block may take for each tap of a point: above it a copy leaves the caches before it is used.
    TAP_BYTES = 1 << 20
    # Bytes of a line of the cache: an element of all channels of a block.
    LINE = 64

cdef extern from *:
    """
    #define DETOPS_OF_TILE (256 * DETOPS_BLOCK_CHANNELS)
    """
    # POINTS of all channels of a block.
    enum: TILE_ELEMENTS "DETOPS_OF_TILE"


cdef struct Copies:
    const GridSample* sample
    # Some blocks of channels, counted over all images: (count, pixels + 1, BLOCK_CHANNELS). The last pixel is zero: what lies outside.
    real* start
    Py_ssize_t first
    Py_ssize_t count
    Py_ssize_t pixels
    # Of one image.
    Py_ssize_t blocks

cdef struct Block:
    # One of the copies, and the first of its channels, counted over all images.
    real* copy
    Py_ssize_t image
    Py_ssize_t channel
    Py_ssize_t lanes


cdef inline Py_ssize_t runs_of(const Copies* copies) noexcept nogil:
    return (copies.pixels + RUN - 1) // RUN


cdef inline Block block_of(const Copies* copies, Py_ssize_t slot) noexcept nogil:
    cdef Block block
    cdef Py_ssize_t number = copies.first + slot, first = number % copies.blocks * BLOCK_CHANNELS
    block.copy = copies.start + slot * (copies.pixels + 1) * BLOCK_CHANNELS
    block.image = number // copies.blocks
    block.channel = block.image * copies.sample.channels + first
    block.lanes = min(<Py_ssize_t> BLOCK_CHANNELS, copies.sample.channels - first)
    return block


cdef int copy_loop(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is a run of pixels of one block."""
    cdef const Copies* copies = <const Copies*> arguments
    cdef Py_ssize_t runs = runs_of(copies), width = BLOCK_CHANNELS * <Py_ssize_t> sizeof(real)
    cdef Py_ssize_t item, pixel, count
    cdef real* target
    cdef Block block
    for item in range(begin, end):
        block = block_of(copies, item // runs)
        pixel = item % runs * RUN
        count = min(<Py_ssize_t> RUN, copies.pixels - pixel)
        target = block.copy + pixel * BLOCK_CHANNELS
        if block.lanes < BLOCK_CHANNELS:
            memset(target, 0, count * width)
        transpose(copies.sample.x + block.channel * copies.pixels + pixel, copies.pixels, target, BLOCK_CHANNELS, block.lanes, count)
        if pixel + count == copies.pixels:
            memset(target + count * BLOCK_CHANNELS, 0, width)
    return 0


cdef inline always_inline weigh_taps(const Tile* tile, Py_ssize_t point, const Block* block, Py_ssize_t nowhere,
                                   vector* out) noexcept nogil:
    """The weighted sum of a point's taps, in the order of `gather`."""
    cdef real[BLOCK_CHANNELS] zeros
    cdef vector[VECTORS] total
    cdef const vector* source
    cdef Py_ssize_t tap, at, k
    cdef real weight
    for k in range(BLOCK_CHANNELS):
        zeros[k] = 0
    for k in range(VECTORS):
        total[k] = (<vector*> zeros)[0]
    for tap in range(tile.taps):
        at = tile.at[tap * tile.points + point]
        weight = tile.weight[tap * tile.points + point]
        source = <const vector*> (block.copy + (nowhere if at < 0 else at) * BLOCK_CHANNELS)
        for k in range(VECTORS):
            total[k] = total[k] + weight * source[k]
    for k in range(VECTORS):
        out[k] = total[k]


cdef inline always_inline blend_corners(const Tile* tile, Py_ssize_t point, const Block* block, Py_ssize_t width,
                                      restricted out) noexcept nogil:
    """The blend of four elements inside the map."""
    cdef const real* top = block.copy + tile.at[point] * BLOCK_CHANNELS
    cdef const real* bottom = top + width * BLOCK_CHANNELS
    cdef Py_ssize_t k
    cdef real a, b, c, d
    a, b, c, d = bilinear_weights(tile.fraction[1][point], tile.fraction[0][point])
    for k in range(BLOCK_CHANNELS):
        out[k] = blend(top[k], top[BLOCK_CHANNELS + k], bottom[k], bottom[BLOCK_CHANNELS + k], a, b, c, d)


cdef void sample_block(const Copies* copies, const Work* work, const Block* block, restricted values) noexcept nogil:
    """The points of a tile in a block of channels: (points, BLOCK_CHANNELS)."""
    cdef Py_ssize_t i, width = copies.sample.sizes[0]
    if not work.blended:
        for i in range(work.tile.points):
            weigh_taps(&work.tile, i, block, copies.pixels, <vector*> (values + i * BLOCK_CHANNELS))
        return
    for i in range(work.tile.points):
        blend_corners(&work.tile, i, block, width, values + i * BLOCK_CHANNELS)
    for i in range(work.edge.tile.points):
        weigh_taps(&work.edge.tile, i, block, copies.pixels, <vector*> (values + work.edge.which[i] * BLOCK_CHANNELS))


cdef void sample_tile(const Copies* copies, const Work* work, const Block* block, real* out) noexcept nogil:
    """The points of a tile, in the planes of a block's channels from their first point on."""
    cdef real[TILE_ELEMENTS] values, planes
    cdef Py_ssize_t lane, points = work.tile.points
    cdef real* target
    sample_block(copies, work, block, values)
    # Not at once to planes that are far apart, often by a power of two, where they would evict each other.
    transpose(values, BLOCK_CHANNELS, planes, POINTS, points, BLOCK_CHANNELS)
    for lane in range(block.lanes):
        target = out + lane * copies.sample.points
        if work.streamed:
            stream(target, planes + lane * POINTS, points * sizeof(real))
        else:
            memcpy(target, planes + lane * POINTS, points * sizeof(real))


cdef int innermost_loop(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is one tile of points in one block of channels."""
    cdef const Copies* copies = <const Copies*> arguments
    cdef const GridSample* sample = copies.sample
    cdef Py_ssize_t tiles = tiles_of_image(sample)
    cdef Py_ssize_t item, point
    cdef Block block
    cdef Work* work = begin_work(sample)
    if work == NULL:
        return -1
    for item in range(begin, end):
        block = block_of(copies, item // tiles)
        point = item % tiles * points_of_tile(sample)
        find_points(sample, block.image, point, work)
        sample_tile(copies, work, &block, sample.out + block.channel * sample.points + point)
    free(work)
    stream_end()
    return 0


cdef bint copies_pay(const GridSample* sample) noexcept nogil:
    """Whether blocks have enough channels, and elements that are read often enough, to be worth their copies."""
    cdef Py_ssize_t pixels = sample.strides[3], taps = taps_of_point(sample)
    cdef Py_ssize_t fewest = BLOCK_CHANNELS if taps == 1 else BLOCK_CHANNELS // 2
    cdef Py_ssize_t lanes = (sample.channels + BLOCK_CHANNELS - 1) // BLOCK_CHANNELS * BLOCK_CHANNELS
    return (pixels > 0 and sample.channels >= fewest
            and taps * sample.points * sample.channels >= pixels * lanes and pixels * LINE <= taps * TAP_BYTES)


cdef int sample_innermost(const GridSample* sample, const Executor* executor) noexcept nogil:
    """Copy as many blocks as there is room for and sample them, until all are done."""
    cdef Copies copies
    cdef Py_ssize_t total, bytes
    cdef void* memory
    cdef int failed = 0
    copies.sample, copies.first, copies.pixels = sample, 0, sample.strides[3]
    copies.blocks = (sample.channels + BLOCK_CHANNELS - 1) // BLOCK_CHANNELS
    total = sample.images * copies.blocks
    bytes = (copies.pixels + 1) * BLOCK_CHANNELS * sizeof(real)
    copies.count = min(total, max(COPY_BYTES // bytes, <Py_ssize_t> 1))
    memory = allocate(copies.count * bytes + LINE)
    if memory == NULL:
        return -1
    copies.start = <real*> ((<size_t> memory + LINE - 1) // LINE * LINE)
    while copies.first < total and not failed:
        copies.count = min(copies.count, total - copies.first)
        failed = executor.parallel_for(executor, copy_loop, &copies, copies.count * runs_of(&copies), COPY_GRAIN)
        if not failed:
            failed = executor.parallel_for(executor, innermost_loop, &copies, copies.count * tiles_of_image(sample), GRAIN)
        copies.first += copies.count
    free(memory)
    return failed
