# Pooling of rois with channels innermost: a map is cut into blocks of channels, a block of it is copied with its
# channels side by side, and all rois are pooled from the copy, in vector code over the channels. Where the rois of an
# image cover less than that, each copies its own window instead. The result is the same, bit for bit.
from libc.math cimport NAN
from libc.stdlib cimport calloc, free, malloc

cdef extern from *:
    """
    #define DETOPS_LANES ((Py_ssize_t) (64 / sizeof(detops_element)))
    /* A pointer to what nothing else points to while a function runs: lets the compiler use vectors. */
    typedef detops_element* __restrict detops_unaliased;
    """
    # Channels in a block: a line of the cache.
    enum: LANES "DETOPS_LANES"
    ctypedef real* unaliased "detops_unaliased"

cdef enum:
    # Bins that are pooled before they are written out.
    TILE = 256

cdef struct Window:
    # The elements that a roi needs: rows [top, bottom) and columns [left, right).
    Py_ssize_t top
    Py_ssize_t bottom
    Py_ssize_t left
    Py_ssize_t right
    # What its bins are where it needs none.
    real empty

# Where elements lie with channels innermost.
cdef struct Block:
    const real* start
    Window window
    Py_ssize_t lanes

cdef struct Pooling:
    const Rois* rois
    const void* plan
    # Pools the rows [begin, end) of a roi's bins to (bins, lanes); line has room for the window's width.
    void (*pool)(const Pooling* pooling, Py_ssize_t roi, const Block* block, Py_ssize_t begin, Py_ssize_t end,
                 unaliased line, unaliased tile) noexcept nogil
    Window* windows
    # The rois of one image after the other; those of the current one.
    Py_ssize_t* order
    Py_ssize_t first
    Py_ssize_t count
    Py_ssize_t image
    # Their common window, and its copy in which each block has its slot. NULL: each roi copies its own.
    Window window
    real* copy
    Py_ssize_t first_block
    Py_ssize_t blocks

ctypedef void (*pool_t)(const Pooling* pooling, Py_ssize_t roi, const Block* block, Py_ssize_t begin, Py_ssize_t end,
                        unaliased line, unaliased tile) noexcept nogil


cdef inline Py_ssize_t area(const Window* window) noexcept nogil:
    return max(window.bottom - window.top, 0) * max(window.right - window.left, 0)


cdef inline Py_ssize_t lanes_of(const Rois* rois, Py_ssize_t block) noexcept nogil:
    return min(rois.channels - block * LANES, LANES)


cdef void gather(const Rois* rois, Py_ssize_t image, Py_ssize_t block, const Window* window, Py_ssize_t top,
                 Py_ssize_t bottom, unaliased target) noexcept nogil:
    """Copy the rows [top, bottom) of a window, channels innermost."""
    cdef Py_ssize_t lanes = lanes_of(rois, block)
    cdef Py_ssize_t plane = rois.height * rois.width
    cdef Py_ssize_t width = window.right - window.left
    cdef const real* source = rois.features + (image * rois.channels + block * LANES) * plane + window.left
    cdef Py_ssize_t y, x, k, begin, end
    for y in range(top, bottom):
        # In runs of a line of the cache, so that the planes, often a power of two apart, do not evict each other.
        begin = 0
        while begin < width:
            end = min(begin + LANES, width)
            for k in range(lanes):
                for x in range(begin, end):
                    target[x * lanes + k] = source[k * plane + y * rois.width + x]
            begin = end
        target += width * lanes


cdef int gather_loop(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is one row of one block of the common window."""
    cdef const Pooling* pooling = <const Pooling*> arguments
    cdef const Window* window = &pooling.window
    cdef Py_ssize_t height = window.bottom - window.top
    cdef Py_ssize_t width = window.right - window.left
    cdef Py_ssize_t item, slot, y, block
    for item in range(begin, end):
        slot, y = item // height, item % height
        block = pooling.first_block + slot
        gather(pooling.rois, pooling.image, block, window, window.top + y, window.top + y + 1,
               pooling.copy + slot * height * width * LANES + y * width * lanes_of(pooling.rois, block))
    return 0


cdef void write(const Rois* rois, Py_ssize_t roi, Py_ssize_t channel, Py_ssize_t lanes, Py_ssize_t first,
                Py_ssize_t count, const real* tile) noexcept nogil:
    """Write so many bins of a roi from (bins, lanes) to (lanes, bins)."""
    cdef Py_ssize_t bins = rois.out_height * rois.out_width
    cdef unaliased target = rois.out + (roi * rois.channels + channel) * bins + first
    cdef Py_ssize_t k, b
    for k in range(lanes):
        for b in range(count):
            target[k * bins + b] = tile[b * lanes + k]


cdef int pool_loop(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is one roi in one block of channels."""
    cdef const Pooling* pooling = <const Pooling*> arguments
    cdef const Rois* rois = pooling.rois
    cdef Py_ssize_t row_count = min(max(TILE // rois.out_width, <Py_ssize_t> 1), rois.out_height)
    cdef Py_ssize_t tile_size = row_count * rois.out_width * LANES
    cdef Py_ssize_t line_size = max(pooling.window.right - pooling.window.left, 0) * LANES
    cdef Py_ssize_t own_size = 0
    cdef Py_ssize_t item, slot, roi, row, last, k
    cdef const Window* window
    cdef Block block
    cdef real* tile
    if pooling.copy == NULL:
        for item in range(pooling.count):
            own_size = max(own_size, area(&pooling.windows[pooling.order[pooling.first + item]]) * LANES)
    tile = <real*> malloc((tile_size + line_size + own_size) * sizeof(real))
    if tile == NULL:
        return -1
    cdef real* own = tile + tile_size + line_size
    for item in range(begin, end):
        slot, roi = item // pooling.count, pooling.order[pooling.first + item % pooling.count]
        window = &pooling.windows[roi]
        block.lanes = lanes_of(rois, pooling.first_block + slot)
        if pooling.copy == NULL:
            gather(rois, pooling.image, pooling.first_block + slot, window, window.top, window.bottom, own)
            block.window, block.start = window[0], own
        else:
            block.window, block.start = pooling.window, pooling.copy + slot * area(&pooling.window) * LANES
        row = 0
        while row < rois.out_height:
            last = min(row + row_count, rois.out_height)
            if area(window) > 0:
                pooling.pool(pooling, roi, &block, row, last, tile + tile_size, tile)
            else:
                for k in range((last - row) * rois.out_width * block.lanes):
                    tile[k] = window.empty
            write(rois, roi, (pooling.first_block + slot) * LANES, block.lanes, row * rois.out_width,
                  (last - row) * rois.out_width, tile)
            row = last
    free(tile)
    return 0


cdef int pool_image(Pooling* pooling, const Team* team) noexcept nogil:
    """Pool the current rois, all of one image: so many blocks at a time as there are threads."""
    cdef Py_ssize_t blocks = (pooling.rois.channels + LANES - 1) // LANES
    cdef Py_ssize_t all_areas = 0
    cdef Py_ssize_t i
    cdef int failed = 0
    cdef Window* common = &pooling.window
    cdef const Window* window
    common.top, common.bottom = pooling.rois.height, 0
    common.left, common.right = pooling.rois.width, 0
    for i in range(pooling.first, pooling.first + pooling.count):
        window = &pooling.windows[pooling.order[i]]
        if area(window) > 0:
            all_areas += area(window)
            common.top, common.bottom = min(common.top, window.top), max(common.bottom, window.bottom)
            common.left, common.right = min(common.left, window.left), max(common.right, window.right)
    pooling.first_block, pooling.blocks, pooling.copy = 0, blocks, NULL
    if all_areas <= area(common):
        return team.spread(team, pool_loop, pooling, blocks * pooling.count, 4)
    pooling.blocks = min(blocks, <Py_ssize_t> team.threads)
    pooling.copy = <real*> malloc(pooling.blocks * area(common) * min(LANES, pooling.rois.channels) * sizeof(real))
    if pooling.copy == NULL:
        return -1
    while pooling.first_block < blocks and not failed:
        pooling.blocks = min(pooling.blocks, blocks - pooling.first_block)
        failed = team.spread(team, gather_loop, pooling, pooling.blocks * (common.bottom - common.top), 8)
        failed += team.spread(team, pool_loop, pooling, pooling.blocks * pooling.count, 8)
        pooling.first_block += pooling.blocks
    free(pooling.copy)
    return -1 if failed else 0


cdef inline Py_ssize_t rank(const Pooling* pooling, Py_ssize_t roi) noexcept nogil:
    """Order of rois: by image, and by their first row, so that what one has read is in the cache for the next."""
    cdef Py_ssize_t height = pooling.rois.height
    return pooling.rois.images[roi] * (height + 1) + min(pooling.windows[roi].top, height)


cdef int pool_rois(Pooling* pooling, const Team* team) noexcept nogil:
    """Pool all rois, whose windows are known, image by image."""
    cdef const Rois* rois = pooling.rois
    cdef Py_ssize_t ranks = rois.batch * (rois.height + 1)
    cdef Py_ssize_t roi, i
    cdef int failed = 0
    # The place of the next roi of each rank: a counting sort.
    cdef Py_ssize_t* place = <Py_ssize_t*> calloc(ranks + 1, sizeof(Py_ssize_t))
    pooling.order = <Py_ssize_t*> malloc(rois.num_rois * sizeof(Py_ssize_t))
    if place == NULL or pooling.order == NULL:
        failed = -1
    else:
        for roi in range(rois.num_rois):
            place[rank(pooling, roi) + 1] += 1
        for i in range(ranks):
            place[i + 1] += place[i]
        for roi in range(rois.num_rois):
            pooling.order[place[rank(pooling, roi)]] = roi
            place[rank(pooling, roi)] += 1
        pooling.first = 0
        for pooling.image in range(rois.batch):
            i = place[(pooling.image + 1) * (rois.height + 1) - 1]
            pooling.count = i - pooling.first
            if pooling.count > 0 and not failed:
                failed = pool_image(pooling, team)
            pooling.first = i
    free(place)
    free(pooling.order)
    return failed
