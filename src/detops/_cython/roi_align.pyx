"""RoIAlign. The mean of a bin's samples is a weighted sum of elements, and its weights are products of a row's and a
column's: they are planned once for all channels, and samples that share an element cost no more than one."""

include "scalar.pxi"
include "buffers.pxi"
include "spread.pxi"
include "rois.pxi"
include "windows.pxi"
include "../_core/sampling.py"
include "../_core/roi.py"

cdef enum:
    AVG = 0
    MAX = 1
    CORNER_MAX = 2

cdef struct Tap:
    Py_ssize_t at
    real weight

cdef struct Side:
    real start
    real length
    Py_ssize_t bins
    Py_ssize_t grid
    # Elements of the map along this side.
    Py_ssize_t size

# Which elements the bins of each roi take, and how much of them: first those of its rows, then those of its columns,
# bin after bin. For the mean an element stands once in a bin; for a maximum each sample that is not outside has a pair.
cdef struct Plan:
    Tap* taps
    # Where the taps of each roi begin (num_rois + 1,), and where those of each bin end (num_rois, rows + columns).
    Py_ssize_t* first
    Py_ssize_t* ends


cdef bint sides_of(const Rois* rois, Py_ssize_t roi, Side* y, Side* x) noexcept nogil:
    """Place a roi on the map; false where that is no finite place."""
    cdef const real* box = box_of(rois, roi)
    y.start, y.length = roi_side(box[1], box[3], <real> rois.spatial_scale, rois.aligned)
    x.start, x.length = roi_side(box[0], box[2], <real> rois.spatial_scale, rois.aligned)
    y.bins, x.bins = rois.out_height, rois.out_width
    y.size, x.size = rois.height, rois.width
    y.grid = roi_grid(y.length, y.bins, rois.sampling_ratio)
    x.grid = roi_grid(x.length, x.bins, rois.sampling_ratio)
    return is_finite(y.start) and is_finite(y.length) and is_finite(x.start) and is_finite(x.length)


cdef Py_ssize_t add_tap(Tap* taps, Py_ssize_t first, Py_ssize_t end, Py_ssize_t at, real weight) noexcept nogil:
    """Add a weight to the tap of an element; the samples of a bin go one way, so that it is one of the last three."""
    cdef Py_ssize_t i
    for i in range(end - 1, max(end - 4, first - 1), -1):
        if taps[i].at == at:
            taps[i].weight += weight
            return end
    taps[end].at, taps[end].weight = at, weight
    return end + 1


cdef Py_ssize_t measure_side(const Side* side, bint mean, Py_ssize_t* begin, Py_ssize_t* end) noexcept nogil:
    """Find the range of elements that a side needs; return how many taps it has at most."""
    cdef Py_ssize_t most = 0
    cdef Py_ssize_t i, sample, low, high, lowest, highest, samples
    cdef real fraction
    cdef bint counts
    begin[0], end[0] = side.size, 0
    for i in range(side.bins):
        lowest, highest, samples = side.size, 0, 0
        for sample in range(side.grid):
            counts, low, high, fraction = bilinear_taps(
                sample_position(side.start, side.length, side.bins, i, side.grid, sample), side.size)
            if counts:
                lowest, highest = min(lowest, low), max(highest, high + 1)
                samples += 1
        begin[0], end[0] = min(begin[0], lowest), max(end[0], highest)
        most += min(2 * samples, highest - lowest) if mean and samples > 0 else 2 * samples
    return most


cdef Py_ssize_t plan_side(const Side* side, bint mean, Tap* taps, Py_ssize_t end, Py_ssize_t* ends) noexcept nogil:
    """Append the taps of a side's bins and set where they end; return the end of all."""
    cdef Py_ssize_t i, sample, first, low, high, t
    cdef real fraction
    cdef bint counts
    for i in range(side.bins):
        first = end
        for sample in range(side.grid):
            counts, low, high, fraction = bilinear_taps(
                sample_position(side.start, side.length, side.bins, i, side.grid, sample), side.size)
            if counts and mean:
                end = add_tap(taps, first, end, low, typed(1, fraction) - fraction)
                end = add_tap(taps, first, end, high, fraction)
            elif counts:
                taps[end].at, taps[end].weight = low, typed(1, fraction) - fraction
                taps[end + 1].at, taps[end + 1].weight = high, fraction
                end += 2
        if mean:
            for t in range(first, end):
                taps[t].weight /= typed(side.grid, fraction)
        ends[i] = end
    return end


cdef int measure_loop(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is one roi."""
    cdef const Pooling* pooling = <const Pooling*> arguments
    cdef const Rois* rois = pooling.rois
    cdef const Plan* plan = <const Plan*> pooling.plan
    cdef Py_ssize_t roi
    cdef Window* window
    cdef Side y, x
    for roi in range(begin, end):
        window = &pooling.windows[roi]
        window.top = window.bottom = window.left = window.right = 0
        window.empty = 0
        if not sides_of(rois, roi, &y, &x):
            window.empty = <real> NAN
        elif y.grid > 0 and x.grid > 0:
            plan.first[roi + 1] = (
                measure_side(&y, rois.mode == AVG, &window.top, &window.bottom)
                + measure_side(&x, rois.mode == AVG, &window.left, &window.right))
    return 0


cdef int plan_loop(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is one roi."""
    cdef const Pooling* pooling = <const Pooling*> arguments
    cdef const Rois* rois = pooling.rois
    cdef const Plan* plan = <const Plan*> pooling.plan
    cdef Py_ssize_t roi, middle
    cdef Py_ssize_t* ends
    cdef Side y, x
    for roi in range(begin, end):
        if area(&pooling.windows[roi]) > 0:
            sides_of(rois, roi, &y, &x)
            ends = plan.ends + roi * (y.bins + x.bins)
            middle = plan_side(&y, rois.mode == AVG, plan.taps, plan.first[roi], ends)
            plan_side(&x, rois.mode == AVG, plan.taps, middle, ends + y.bins)
    return 0


cdef inline specialised add_scaled(
    lane_group* total, real weight, const lane_group* source, Py_ssize_t groups
) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(groups):
        total[k] = total[k] + weight * source[k]


cdef inline specialised average_lanes(const Pooling* pooling, Py_ssize_t roi, const Block* block, Py_ssize_t lane,
                                      Py_ssize_t groups, Py_ssize_t begin, Py_ssize_t end,
                                      lane_group* tile) noexcept nogil:
    """Sum up the rows of each column that a bin needs, then its columns, for so many groups of lanes from one on."""
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


cdef inline specialised take_sample(unaliased best, const real* above, const real* below, Py_ssize_t left,
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


cdef inline specialised maximum_lanes(const Pooling* pooling, Py_ssize_t roi, const Block* block, bint corners,
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
    plan.taps = <Tap*> malloc((plan.first[rois.num_rois] + 1) * sizeof(Tap))
    plan.ends = <Py_ssize_t*> malloc(rois.num_rois * (rois.out_height + rois.out_width) * sizeof(Py_ssize_t))
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
    if pooling.rois.mode != AVG:
        pooling.pool = corner_maximum if pooling.rois.mode == CORNER_MAX else maximum
    pooling.windows = <Window*> malloc(pooling.rois.num_rois * sizeof(Window))
    plan.first = <Py_ssize_t*> calloc(pooling.rois.num_rois + 1, sizeof(Py_ssize_t))
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
