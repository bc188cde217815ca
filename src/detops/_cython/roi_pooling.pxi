# Pooling of rois in vector code over channels: a map is cut into blocks of channels, a block of it is copied with its
# channels side by side, and all rois are pooled from the copy. Where the rois of an image cover little, they are pooled
# from the map as it is, a channel at a time. The result is the same, bit for bit.
from libc.math cimport NAN

include "allocate.pxi"
include "transpose.pxi"
include "block_channels.pxi"

cdef enum:
    # Bins that are pooled before they are written out.
    TILE = 256
    # How often the rois of an image must cover the elements that are copied, so that the copy is worth its cost.
    COVER = 2

cdef struct Extent:
    # The elements that a roi needs: rows [top, bottom) and columns [left, right).
    Py_ssize_t top
    Py_ssize_t bottom
    Py_ssize_t left
    Py_ssize_t right
    # The value of its bins where it needs no elements.
    real empty

# Some channels of an extent, innermost.
cdef struct Block:
    const real* start
    Extent extent
    Py_ssize_t lanes

cdef struct Pooling:
    const Rois* rois
    const void* plan
    # Pools the rows [begin, end) of a roi's bins to (bins, lanes).
    void (*pool)(const Pooling* pooling, Py_ssize_t roi, const Block* block, Py_ssize_t begin, Py_ssize_t end,
                 restricted tile) noexcept nogil
    Extent* extents
    # The rois of one image after the other; those of the current one.
    Py_ssize_t* order
    Py_ssize_t first
    Py_ssize_t count
    Py_ssize_t image
    # Their common extent, and its copy in which each block has its slot; NULL: no copy, and a block is one channel.
    Extent extent
    real* copy
    Py_ssize_t first_block
    Py_ssize_t blocks


cdef inline const real* box_of(const Rois* rois, Py_ssize_t roi) noexcept nogil:
    """x1, y1, x2, y2 of a roi."""
    return rois.rois + roi * rois.roi_columns + rois.roi_columns - 4


cdef inline Py_ssize_t area(const Extent* extent) noexcept nogil:
    return max(extent.bottom - extent.top, 0) * max(extent.right - extent.left, 0)


cdef inline const real* plane_of(const Pooling* pooling, Py_ssize_t channel) noexcept nogil:
    cdef const Rois* rois = pooling.rois
    return rois.features + (pooling.image * rois.channels + channel) * rois.height * rois.width


cdef inline Py_ssize_t lanes_of(const Pooling* pooling, Py_ssize_t block) noexcept nogil:
    return min(pooling.rois.channels - block * BLOCK_CHANNELS, BLOCK_CHANNELS)


cdef inline real* slot_of(const Pooling* pooling, Py_ssize_t block) noexcept nogil:
    return pooling.copy + (block - pooling.first_block) * area(&pooling.extent) * BLOCK_CHANNELS


cdef inline void fill(real* target, real value, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(count):
        target[k] = value


cdef int gather_loop(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is one row of one block of the common extent."""
    cdef const Pooling* pooling = <const Pooling*> arguments
    cdef const Extent* extent = &pooling.extent
    cdef Py_ssize_t height = extent.bottom - extent.top
    cdef Py_ssize_t width = extent.right - extent.left
    cdef Py_ssize_t map_width = pooling.rois.width
    cdef Py_ssize_t plane = pooling.rois.height * map_width
    cdef Py_ssize_t item, block, lanes, y, left, right
    cdef const real* source
    cdef real* target
    for item in range(begin, end):
        block, y = pooling.first_block + item // height, item % height
        lanes = lanes_of(pooling, block)
        source = plane_of(pooling, block * BLOCK_CHANNELS) + (extent.top + y) * map_width + extent.left
        target = slot_of(pooling, block) + y * width * lanes
        # In runs of a line of the cache, so that the planes, often a power of two apart, do not evict each other.
        left = 0
        while left < width:
            right = min(left + BLOCK_CHANNELS, width)
            transpose(source + left, plane, target + left * lanes, lanes, lanes, right - left)
            left = right
    return 0


cdef int pool_loop(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is one roi in one block of channels."""
    cdef const Pooling* pooling = <const Pooling*> arguments
    cdef const Rois* rois = pooling.rois
    cdef Py_ssize_t bins = rois.out_height * rois.out_width
    cdef Py_ssize_t row_count = min(max(TILE // rois.out_width, <Py_ssize_t> 1), rois.out_height)
    cdef Py_ssize_t item, number, roi, channel, row, last
    cdef Block block
    cdef real* tile = <real*> allocate(row_count * rois.out_width * BLOCK_CHANNELS * sizeof(real))
    if tile == NULL:
        return -1
    block.extent = pooling.extent
    for item in range(begin, end):
        number, roi = pooling.first_block + item // pooling.count, pooling.order[pooling.first + item % pooling.count]
        if pooling.copy == NULL:
            channel, block.lanes = number, 1
            block.start = plane_of(pooling, channel)
        else:
            channel, block.lanes = number * BLOCK_CHANNELS, lanes_of(pooling, number)
            block.start = slot_of(pooling, number)
        row = 0
        while row < rois.out_height:
            last = min(row + row_count, rois.out_height)
            if area(&pooling.extents[roi]) > 0:
                pooling.pool(pooling, roi, &block, row, last, tile)
            else:
                fill(tile, pooling.extents[roi].empty, (last - row) * rois.out_width * block.lanes)
            transpose(tile, block.lanes, rois.out + (roi * rois.channels + channel) * bins + row * rois.out_width, bins,
                      (last - row) * rois.out_width, block.lanes)
            row = last
    free(tile)
    return 0


cdef Py_ssize_t find_common_extent(Pooling* pooling) noexcept nogil:
    """Find what the current rois need together; return the sum of what each needs."""
    cdef Py_ssize_t needed = 0
    cdef Py_ssize_t i
    cdef Extent* common = &pooling.extent
    cdef const Extent* extent
    common.top, common.bottom = pooling.rois.height, 0
    common.left, common.right = pooling.rois.width, 0
    for i in range(pooling.first, pooling.first + pooling.count):
        extent = &pooling.extents[pooling.order[i]]
        if area(extent) > 0:
            needed += area(extent)
            common.top, common.bottom = min(common.top, extent.top), max(common.bottom, extent.bottom)
            common.left, common.right = min(common.left, extent.left), max(common.right, extent.right)
    return needed


cdef int pool_image(Pooling* pooling, const Executor* executor) noexcept nogil:
    """Pool the current rois, all of one image: twice as many blocks at a time as there are threads."""
    cdef Py_ssize_t channels = pooling.rois.channels
    cdef Py_ssize_t blocks = (channels + BLOCK_CHANNELS - 1) // BLOCK_CHANNELS
    cdef Py_ssize_t needed = find_common_extent(pooling)
    cdef Extent* common = &pooling.extent
    cdef int failed = 0
    pooling.first_block, pooling.copy = 0, NULL
    if channels == 1 or needed < COVER * area(common) or needed == 0:
        common.top, common.bottom, common.left, common.right = 0, pooling.rois.height, 0, pooling.rois.width
        return executor.parallel_for(executor, pool_loop, pooling, channels * pooling.count, 32)
    pooling.blocks = min(blocks, 2 * <Py_ssize_t> executor.threads)
    pooling.copy = <real*> allocate(pooling.blocks * area(common) * min(channels, BLOCK_CHANNELS) * sizeof(real))
    if pooling.copy == NULL:
        return -1
    while pooling.first_block < blocks and not failed:
        pooling.blocks = min(pooling.blocks, blocks - pooling.first_block)
        failed = executor.parallel_for(executor, gather_loop, pooling, pooling.blocks * (common.bottom - common.top), 8)
        failed += executor.parallel_for(executor, pool_loop, pooling, pooling.blocks * pooling.count, 8)
        pooling.first_block += pooling.blocks
    free(pooling.copy)
    return -1 if failed else 0


cdef inline Py_ssize_t rank(const Pooling* pooling, Py_ssize_t roi) noexcept nogil:
    """Order of rois: by image, and by their first row, so that what one has read is in the cache for the next."""
    cdef Py_ssize_t height = pooling.rois.height
    return pooling.rois.images[roi] * (height + 1) + min(pooling.extents[roi].top, height)


cdef int order_rois(Pooling* pooling) noexcept nogil:
    """Sort the rois, whose extents are known, by rank; the caller frees the memory."""
    cdef const Rois* rois = pooling.rois
    cdef Py_ssize_t ranks = rois.batch * (rois.height + 1)
    cdef Py_ssize_t roi, i
    # Where the next roi of each rank goes: a counting sort.
    cdef Py_ssize_t* next = <Py_ssize_t*> allocate_zeroed(ranks + 1, sizeof(Py_ssize_t))
    pooling.order = <Py_ssize_t*> allocate(rois.num_rois * sizeof(Py_ssize_t))
    if next == NULL or pooling.order == NULL:
        free(next)
        return -1
    for roi in range(rois.num_rois):
        next[rank(pooling, roi) + 1] += 1
    for i in range(ranks):
        next[i + 1] += next[i]
    for roi in range(rois.num_rois):
        pooling.order[next[rank(pooling, roi)]] = roi
        next[rank(pooling, roi)] += 1
    free(next)
    return 0


cdef bint next_image(Pooling* pooling) noexcept nogil:
    """Turn to the rois of the next image that has some; begin with a pooling that has turned to none."""
    cdef const Rois* rois = pooling.rois
    cdef const Py_ssize_t* order
    pooling.first += pooling.count
    pooling.count = 0
    if pooling.first == rois.num_rois:
        return False
    order = pooling.order + pooling.first
    pooling.image = rois.images[order[0]]
    while pooling.first + pooling.count < rois.num_rois and rois.images[order[pooling.count]] == pooling.image:
        pooling.count += 1
    return True


cdef void describe_rois(
    Rois* arguments, features, rois, batch_indices, output_size, double spatial_scale, out
) except *:
    arguments.features = <const real*> address(features)
    arguments.batch, arguments.channels, arguments.height, arguments.width = features.shape
    arguments.rois = <const real*> address(rois)
    arguments.num_rois, arguments.roi_columns = rois.shape
    arguments.images = <const long long*> address(batch_indices)
    arguments.out_height, arguments.out_width = output_size
    arguments.spatial_scale = spatial_scale
    arguments.out = <real*> mutable(out)
