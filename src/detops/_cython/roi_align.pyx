"""RoIAlign. The mean of a bin's samples is a weighted sum of elements, and its weights are products of a row's and a
column's: they are planned once for all channels, and samples that share an element cost no more than one."""

from libc.string cimport memset

include "scalar.pxi"
include "buffers.pxi"
include "parallel_for.pxi"
include "rois.pxi"
include "roi_pooling.pxi"
include "../_core/sampling.py"
include "../_core/roi.py"
include "roi_taps.pxi"


cdef inline always_inline add_scaled(
    lane_group* total, real weight, const lane_group* source, Py_ssize_t groups
) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(groups):
        total[k] = total[k] + weight * source[k]


cdef inline always_inline average_lanes(const Pooling* pooling, Py_ssize_t roi, const Block* block, Py_ssize_t lane,
                                      Py_ssize_t groups, Py_ssize_t begin, Py_ssize_t end,
                                      lane_group* tile) noexcept nogil:
    """Sum up the rows of each column that a bin needs, then its columns, for a number of groups of lanes."""
    cdef const Plan* plan = <const Plan*> pooling.plan
    cdef Py_ssize_t rows = pooling.rois.out_height
    cdef Py_ssize_t columns = pooling.rois.out_width
    cdef const Py_ssize_t* ends = plan.ends + roi * (rows + columns)
    cdef Py_ssize_t stride = (block.extent.right - block.extent.left) * block.lanes
    cdef const real* origin = block.start - block.extent.top * stride - block.extent.left * block.lanes + lane
    cdef const Tap* y
    cdef const Tap* x
    cdef const real* source
    cdef Py_ssize_t i, j, k, t, u, first
    cdef real[BLOCK_CHANNELS] zeros
    cdef lane_group[VECTORS] column
    cdef lane_group[VECTORS] total
    fill(zeros, 0, BLOCK_CHANNELS)
    for i in range(begin, end):
        first = ends[i - 1] if i > 0 else plan.first[roi]
        for j in range(columns):
            for k in range(groups):
                total[k] = (<lane_group*> zeros)[0]
            for u in range(ends[rows + j - 1], ends[rows + j]):
                x = &plan.taps[u]
                for k in range(groups):
                    column[k] = (<lane_group*> zeros)[0]
                for t in range(first, ends[i]):
                    y = &plan.taps[t]
                    source = origin + y.at * stride + x.at * block.lanes
                    add_scaled[lane_group](column, y.weight, <const lane_group*> source, groups)
                add_scaled[lane_group](total, x.weight, column, groups)
            for k in range(groups):
                tile[k] = total[k]
            tile = <lane_group*> (<real*> tile + block.lanes)


cdef void average(const Pooling* pooling, Py_ssize_t roi, const Block* block, Py_ssize_t begin, Py_ssize_t end,
                  restricted tile) noexcept nogil:
    cdef Py_ssize_t lane
    if block.lanes == BLOCK_CHANNELS:
        average_lanes[vector](pooling, roi, block, 0, VECTORS, begin, end, <vector*> tile)
    else:
        for lane in range(block.lanes):
            average_lanes[real](pooling, roi, block, lane, 1, begin, end, tile + lane)


cdef inline always_inline take_sample(restricted best, const real* above, const real* below, Py_ssize_t left,
                                    Py_ssize_t right, real dy, real dx, bint corners, bint first,
                                    Py_ssize_t lanes) noexcept nogil:
    """Raise the maximum of each lane to a sample between two rows and two columns, or to its largest corner."""
    cdef real a, b, c, d, value
    cdef Py_ssize_t k
    a, b, c, d = bilinear_weights(dy, dx)
    for k in range(lanes):
        if corners:
            value = largest_part(above[left + k], above[right + k], below[left + k], below[right + k], a, b, c, d)
        else:
            value = blend(above[left + k], above[right + k], below[left + k], below[right + k], a, b, c, d)
        best[k] = value if first else larger(best[k], value)


cdef inline always_inline maximum_lanes(const Pooling* pooling, Py_ssize_t roi, const Block* block, bint corners,
                                      Py_ssize_t begin, Py_ssize_t end, restricted tile) noexcept nogil:
    """Take the largest sample of each bin, or the largest weighted corner; a sample outside is 0."""
    cdef const Plan* plan = <const Plan*> pooling.plan
    cdef Py_ssize_t rows = pooling.rois.out_height
    cdef Py_ssize_t columns = pooling.rois.out_width
    cdef const Py_ssize_t* ends = plan.ends + roi * (rows + columns)
    cdef Py_ssize_t lanes = block.lanes
    cdef Py_ssize_t stride = (block.extent.right - block.extent.left) * lanes
    cdef const real* origin = block.start - block.extent.top * stride - block.extent.left * lanes
    cdef const Tap* y
    cdef const Tap* x
    cdef Py_ssize_t i, j, k, t, u, first, samples
    cdef Side side_y, side_x
    sides_of(pooling.rois, roi, &side_y, &side_x)
    for i in range(begin, end):
        first = ends[i - 1] if i > 0 else plan.first[roi]
        for j in range(columns):
            samples = 0
            for t in range(first, ends[i], 2):
                y = &plan.taps[t]
                for u in range(ends[rows + j - 1], ends[rows + j], 2):
                    x = &plan.taps[u]
                    take_sample(
                        tile, origin + y[0].at * stride, origin + y[1].at * stride, x[0].at * lanes, x[1].at * lanes,
                        y[1].weight, x[1].weight, corners, samples == 0, lanes)
                    samples += 1
            if samples == 0:
                fill(tile, 0, lanes)
            elif samples < side_y.grid * side_x.grid:
                for k in range(lanes):
                    tile[k] = larger(tile[k], 0)
            tile += lanes


cdef void maximum(const Pooling* pooling, Py_ssize_t roi, const Block* block, Py_ssize_t begin, Py_ssize_t end,
                  restricted tile) noexcept nogil:
    maximum_lanes(pooling, roi, block, False, begin, end, tile)


cdef void corner_maximum(const Pooling* pooling, Py_ssize_t roi, const Block* block, Py_ssize_t begin,
                         Py_ssize_t end, restricted tile) noexcept nogil:
    maximum_lanes(pooling, roi, block, True, begin, end, tile)


cdef int plan_taps(Pooling* pooling, Plan* plan, const Executor* executor) noexcept nogil:
    """Find the taps of all rois, or the first roi that has too many points; the caller frees all memory."""
    cdef const Rois* rois = pooling.rois
    cdef Py_ssize_t roi
    pooling.extents = <Extent*> allocate(rois.num_rois * sizeof(Extent))
    plan.first = <Py_ssize_t*> allocate_zeroed(rois.num_rois + 1, sizeof(Py_ssize_t))
    if pooling.extents == NULL or plan.first == NULL or executor.parallel_for(executor, measure_loop, pooling, rois.num_rois, 16):
        return -1
    for roi in range(rois.num_rois):
        if plan.first[roi + 1] == CROWDED:
            rois.crowded[0] = roi
            return 0
        plan.first[roi + 1] += plan.first[roi]
    if rois.channels == 0:
        return 0
    plan.taps = <Tap*> allocate((plan.first[rois.num_rois] + 1) * sizeof(Tap))
    plan.ends = <Py_ssize_t*> allocate(rois.num_rois * (rois.out_height + rois.out_width) * sizeof(Py_ssize_t))
    if plan.taps == NULL or plan.ends == NULL:
        return -1
    return executor.parallel_for(executor, plan_loop, pooling, rois.num_rois, 16)


cdef api int roi_align_operator(const void* arguments, const Executor* executor) noexcept nogil:
    cdef Pooling pooling
    cdef Plan plan
    cdef int failed
    memset(&pooling, 0, sizeof(Pooling))
    memset(&plan, 0, sizeof(Plan))
    pooling.rois, pooling.plan, pooling.pool = <const Rois*> arguments, &plan, average
    if pooling.rois.mode != RoiMode.AVG:
        pooling.pool = corner_maximum if pooling.rois.mode == RoiMode.CORNER_MAX else maximum
    pooling.rois.crowded[0] = -1
    failed = plan_taps(&pooling, &plan, executor)
    if not failed and pooling.rois.crowded[0] < 0 and pooling.rois.channels > 0:
        failed = order_rois(&pooling)
        while not failed and next_image(&pooling):
            failed = pool_image(&pooling, executor)
    free(pooling.order)
    free(plan.taps)
    free(plan.ends)
    free(plan.first)
    free(pooling.extents)
    return failed


def roi_align(features, rois, batch_indices, output_size, spatial_scale, Py_ssize_t sampling_ratio, bint aligned,
              int mode, out):
    """Return the first roi that has too many points, for which nothing is written; -1 where there is none."""
    cdef Rois arguments
    cdef Py_ssize_t crowded
    describe_rois(&arguments, features, rois, batch_indices, output_size, spatial_scale, out)
    arguments.ratio, arguments.aligned, arguments.mode = sampling_ratio, aligned, mode
    arguments.crowded = &crowded
    execute(roi_align_operator, &arguments)
    return crowded
