"""RoIPool: maxima of whole elements."""

from libc.string cimport memset

include "scalar.pxi"
include "buffers.pxi"
include "parallel_for.pxi"
include "rois.pxi"
include "roi_pooling.pxi"
include "../_core/roi.py"


cdef inline bint is_placed(const Rois* rois, Py_ssize_t roi) noexcept nogil:
    """Whether a roi lies at a finite place on the map."""
    cdef const real* box = box_of(rois, roi)
    cdef Py_ssize_t side
    cdef bint finite = True
    for side in range(4):
        finite = finite and is_finite(box[side] * <real> rois.spatial_scale)
    return finite


cdef int place_loop(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is one roi: find the elements that it needs."""
    cdef const Pooling* pooling = <const Pooling*> arguments
    cdef const Rois* rois = pooling.rois
    cdef const real* box
    cdef Py_ssize_t roi, start, size
    cdef Extent* extent
    for roi in range(begin, end):
        extent = &pooling.extents[roi]
        extent.top = extent.bottom = extent.left = extent.right = 0
        extent.empty = 0
        if is_placed(rois, roi):
            box = box_of(rois, roi)
            start, size = pool_side(box[1], box[3], <real> rois.spatial_scale)
            extent.top, extent.bottom = pool_range(start, size, 1, 0, rois.height)
            start, size = pool_side(box[0], box[2], <real> rois.spatial_scale)
            extent.left, extent.right = pool_range(start, size, 1, 0, rois.width)
        else:
            extent.empty = <real> NAN
    return 0


cdef void largest(const Pooling* pooling, Py_ssize_t roi, const Block* block, Py_ssize_t begin, Py_ssize_t end,
                  restricted tile) noexcept nogil:
    """Take the largest element of each bin: row by row, so that neighboring steps raise different bins."""
    cdef const Rois* rois = pooling.rois
    cdef const real* box = box_of(rois, roi)
    cdef Py_ssize_t lanes = block.lanes
    cdef Py_ssize_t stride = (block.extent.right - block.extent.left) * lanes
    cdef const real* origin = block.start - block.extent.top * stride - block.extent.left * lanes
    cdef const real* source
    cdef restricted best
    cdef Py_ssize_t i, j, k, y, x, start_y, size_y, start_x, size_x, top, bottom, left, right
    start_y, size_y = pool_side(box[1], box[3], <real> rois.spatial_scale)
    start_x, size_x = pool_side(box[0], box[2], <real> rois.spatial_scale)
    for i in range(begin, end):
        top, bottom = pool_range(start_y, size_y, rois.out_height, i, rois.height)
        if top >= bottom:
            fill(tile, 0, rois.out_width * lanes)
        for y in range(top, bottom):
            for j in range(rois.out_width):
                left, right = pool_range(start_x, size_x, rois.out_width, j, rois.width)
                best = tile + j * lanes
                if left >= right:
                    fill(best, 0, lanes)
                for x in range(left, right):
                    source = origin + y * stride + x * lanes
                    if y == top and x == left:
                        for k in range(lanes):
                            best[k] = source[k]
                    else:
                        for k in range(lanes):
                            best[k] = larger(best[k], source[k])
        tile += rois.out_width * lanes


cdef api int roi_pool_operator(const void* arguments, const Executor* executor) noexcept nogil:
    cdef Pooling pooling
    cdef int failed = -1
    memset(&pooling, 0, sizeof(Pooling))
    pooling.rois, pooling.pool = <const Rois*> arguments, largest
    pooling.extents = <Extent*> allocate(pooling.rois.num_rois * sizeof(Extent))
    if pooling.extents != NULL:
        failed = executor.parallel_for(executor, place_loop, &pooling, pooling.rois.num_rois, 1024) or order_rois(&pooling)
        while not failed and next_image(&pooling):
            failed = pool_image(&pooling, executor)
    free(pooling.order)
    free(pooling.extents)
    return failed


def roi_pool(features, rois, batch_indices, output_size, spatial_scale, out):
    cdef Rois arguments
    describe_rois(&arguments, features, rois, batch_indices, output_size, spatial_scale, out)
    if out.size > 0:
        execute(roi_pool_operator, &arguments)
