"""RoIAlign. The mean of a bin's samples is a weighted sum of elements, and its weights are products of a row's and a
column's: they are planned once for all channels, and samples that share an element cost no more than one."""

include "scalar.pxi"
include "buffers.pxi"
include "spread.pxi"
include "rois.pxi"
include "windows.pxi"
include "../_core/sampling.py"
include "../_core/roi.py"
include "roi_taps.pxi"


cdef inline specialized add_scaled(
    lane_group* total, real weight, const lane_group* source, Py_ssize_t groups
) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(groups):
        total[k] = total[k] + weight * source[k]


cdef inline specialized average_lanes(const Pooling* pooling, Py_ssize_t roi, const Block* block, Py_ssize_t lane,
                                      Py_ssize_t groups, Py_ssize_t begin, Py_ssize_t end,
                                      lane_group* tile) noexcept nogil:
    """Sum up the rows of each column that a bin needs, then its columns, for a number of groups of lanes."""
    cdef const Plan* plan = <const Plan*> pooling.plan
    cdef Py_ssize_t rows = pooling.rois.out_height
    cdef Py_ssize_t columns = pooling.rois.out_width
    cdef const Py_ssize_t* ends = plan.ends + roi * (rows + columns)
    cdef Py_ssize_t stride = (block.window.right - block.window.left) * block.lanes
    cdef const real* origin = block.start - block.window.top * stride - block.window.left * block.lanes + lane
    cdef const Tap* y
    cdef const Tap* x
    cdef const real* source
    cdef Py_ssize_t i, j, k, t, u, first
    cdef real[LANES] zeros
    cdef lane_group[VECTORS] column
    cdef lane_group[VECTORS] total
    fill(zeros, 0, LANES)
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
                  unaliased tile) noexcept nogil:
    cdef Py_ssize_t lane
    if block.lanes == LANES:
        average_lanes[vector](pooling, roi, block, 0, VECTORS, begin, end, <vector*> tile)
    else:
        for lane in range(block.lanes):
            average_lanes[real](pooling, roi, block, lane, 1, begin, end, tile + lane)


cdef inline specialized take_sample(unaliased best, const real* above, const real* below, Py_ssize_t left,
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


cdef inline specialized maximum_lanes(const Pooling* pooling, Py_ssize_t roi, const Block* block, bint corners,
                                      Py_ssize_t begin, Py_ssize_t end, unaliased tile) noexcept nogil:
    """Take the largest sample of each bin, or the largest weighted corner; a sample outside is 0."""
    cdef const Plan* plan = <const Plan*> pooling.plan
    cdef Py_ssize_t rows = pooling.rois.out_height
    cdef Py_ssize_t columns = pooling.rois.out_width
    cdef const Py_ssize_t* ends = plan.ends + roi * (rows + columns)
    cdef Py_ssize_t lanes = block.lanes
    cdef Py_ssize_t stride = (block.window.right - block.window.left) * lanes
    cdef const real* origin = block.start - block.window.top * stride - block.window.left * lanes
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
                  unaliased tile) noexcept nogil:
    maximum_lanes(pooling, roi, block, False, begin, end, tile)


cdef void corner_maximum(const Pooling* pooling, Py_ssize_t roi, const Block* block, Py_ssize_t begin,
                         Py_ssize_t end, unaliased tile) noexcept nogil:
    maximum_lanes(pooling, roi, block, True, begin, end, tile)


cdef int plan_and_pool(Pooling* pooling, Plan* plan, const Team* team) noexcept nogil:
    """All of roi_align, with memory for the windows and for where the taps of each roi begin, which is 0."""
    cdef const Rois* rois = pooling.rois
    cdef Py_ssize_t roi
    cdef int failed = team.spread(team, measure_loop, pooling, rois.num_rois, 16)
    for roi in range(rois.num_rois):
        plan.first[roi + 1] += plan.first[roi]
    plan.taps = <Tap*> allocate((plan.first[rois.num_rois] + 1) * sizeof(Tap))
    plan.ends = <Py_ssize_t*> allocate(rois.num_rois * (rois.out_height + rois.out_width) * sizeof(Py_ssize_t))
    if plan.taps == NULL or plan.ends == NULL:
        failed = -1
    if not failed:
        failed = team.spread(team, plan_loop, pooling, rois.num_rois, 16)
    if not failed:
        failed = pool_rois(pooling, team)
    free(plan.taps)
    free(plan.ends)
    return failed


cdef api int roi_align_operator(const void* arguments, const Team* team) noexcept nogil:
    cdef Pooling pooling
    cdef Plan plan
    cdef int failed = -1
    pooling.rois, pooling.plan = <const Rois*> arguments, &plan
    pooling.pool = average
    if pooling.rois.mode != RoiMode.AVG:
        pooling.pool = corner_maximum if pooling.rois.mode == RoiMode.CORNER_MAX else maximum
    pooling.windows = <Window*> allocate(pooling.rois.num_rois * sizeof(Window))
    plan.first = <Py_ssize_t*> allocate_zeroed(pooling.rois.num_rois + 1, sizeof(Py_ssize_t))
    if pooling.windows != NULL and plan.first != NULL:
        failed = plan_and_pool(&pooling, &plan, team)
    free(plan.first)
    free(pooling.windows)
    return failed


cdef int points_loop(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is one roi."""
    cdef const Rois* rois = <const Rois*> arguments
    cdef Py_ssize_t roi
    cdef Side y, x
    for roi in range(begin, end):
        rois.points[roi] = (
            grid_points(y.grid * y.bins, x.grid * x.bins) if sides_of(rois, roi, &y, &x) else 0)
    return 0


cdef api int roi_align_points_operator(const void* arguments, const Team* team) noexcept nogil:
    return team.spread(team, points_loop, arguments, (<const Rois*> arguments).num_rois, 4096)


def roi_align_points(rois, output_size, spatial_scale, Py_ssize_t sampling_ratio, bint aligned, points):
    cdef Rois arguments
    describe_rois(&arguments, rois, output_size, spatial_scale)
    arguments.sampling_ratio, arguments.aligned = sampling_ratio, aligned
    arguments.points = <long long*> mutable(points)
    execute(roi_align_points_operator, &arguments)


def roi_align(features, rois, batch_indices, output_size, spatial_scale, Py_ssize_t sampling_ratio, bint aligned,
              int mode, out):
    cdef Rois arguments
    describe_rois(&arguments, rois, output_size, spatial_scale)
    describe_maps(&arguments, features, batch_indices, out)
    arguments.sampling_ratio, arguments.aligned, arguments.mode = sampling_ratio, aligned, mode
    if out.size > 0:
        execute(roi_align_operator, &arguments)
