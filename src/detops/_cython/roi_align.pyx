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

# Taps of the mode avg. A bin's taps end where those of the next begin: the bins of a roi's rows, then its columns.
cdef struct Plan:
    Tap* taps
    # (num_rois + 1,) and (num_rois, out_height + out_width)
    Py_ssize_t* first
    Py_ssize_t* ends


cdef bint sides_of(const Rois* rois, Py_ssize_t roi, Side* y, Side* x) noexcept nogil:
    """Place a roi on the map; false where that is no finite place."""
    cdef const real* box = rois.rois + roi * rois.roi_columns + rois.roi_columns - 4
    y.start, y.length = roi_side(box[1], box[3], <real> rois.spatial_scale, rois.aligned)
    x.start, x.length = roi_side(box[0], box[2], <real> rois.spatial_scale, rois.aligned)
    y.bins, x.bins = rois.out_height, rois.out_width
    y.size, x.size = rois.height, rois.width
    y.grid = roi_grid(y.length, y.bins, rois.sampling_ratio)
    x.grid = roi_grid(x.length, x.bins, rois.sampling_ratio)
    return is_finite(y.start) and is_finite(y.length) and is_finite(x.start) and is_finite(x.length)


cdef Py_ssize_t add_tap(Tap* taps, Py_ssize_t first, Py_ssize_t end, Py_ssize_t at, real weight) noexcept nogil:
    """Add a weight to the tap of an element; the samples of a bin go one way, so that it is one of the last two."""
    cdef Py_ssize_t i
    for i in range(end - 1, max(end - 3, first - 1), -1):
        if taps[i].at == at:
            taps[i].weight += weight
            return end
    taps[end].at = at
    taps[end].weight = weight
    return end + 1


cdef Py_ssize_t plan_side(const Side* side, Tap* taps, Py_ssize_t end, Py_ssize_t* ends, Py_ssize_t* low_end,
                          Py_ssize_t* high_end) noexcept nogil:
    """Find which elements a side needs, and with ends given the taps of its bins; return the end of those."""
    cdef Py_ssize_t i, sample, first, low, high, t
    cdef real fraction
    cdef bint counts
    low_end[0], high_end[0] = side.size, 0
    for i in range(side.bins):
        first = end
        for sample in range(side.grid):
            counts, low, high, fraction = bilinear_taps(
                sample_position(side.start, side.length, side.bins, i, side.grid, sample), side.size)
            if counts:
                low_end[0], high_end[0] = min(low_end[0], low), max(high_end[0], high + 1)
                if ends != NULL:
                    end = add_tap(taps, first, end, low, typed(1, fraction) - fraction)
                    end = add_tap(taps, first, end, high, fraction)
        if ends != NULL:
            for t in range(first, end):
                taps[t].weight /= typed(side.grid, fraction)
            ends[i] = end
    return end


cdef Py_ssize_t most_taps(const Side* side) noexcept nogil:
    """A bin has two taps for each sample; of the merged ones, few more than one for each element."""
    return min(2 * side.grid * side.bins, side.size + 4 * side.bins)


cdef int plan_loop(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is one roi."""
    cdef const Pooling* pooling = <const Pooling*> arguments
    cdef const Rois* rois = pooling.rois
    cdef const Plan* plan = <const Plan*> pooling.plan
    cdef Py_ssize_t* ends = NULL
    cdef Py_ssize_t roi, middle
    cdef Window* window
    cdef Side y, x
    for roi in range(begin, end):
        window = &pooling.windows[roi]
        window.top = window.bottom = window.left = window.right = 0
        window.empty = typed(0, window.empty)
        if not sides_of(rois, roi, &y, &x):
            window.empty = <real> NAN
        elif y.grid > 0 and x.grid > 0:
            if rois.mode == AVG:
                ends = plan.ends + roi * (y.bins + x.bins)
            middle = plan_side(&y, plan.taps, plan.first[roi], ends, &window.top, &window.bottom)
            plan_side(&x, plan.taps, middle, NULL if ends == NULL else ends + y.bins, &window.left, &window.right)
    return 0


cdef inline void average_lanes(const Pooling* pooling, Py_ssize_t roi, const Block* block, Py_ssize_t begin,
                               Py_ssize_t end, Py_ssize_t lanes, unaliased tile) noexcept nogil:
    cdef const Plan* plan = <const Plan*> pooling.plan
    cdef Py_ssize_t rows = pooling.rois.out_height
    cdef Py_ssize_t columns = pooling.rois.out_width
    cdef const Py_ssize_t* ends = plan.ends + roi * (rows + columns)
    cdef Py_ssize_t stride = (block.window.right - block.window.left) * lanes
    cdef const real* origin = block.start - block.window.top * stride - block.window.left * lanes
    cdef const Tap* y
    cdef const Tap* x
    cdef const real* source
    cdef Py_ssize_t i, j, k, t, u, first
    cdef real column[LANES]
    cdef real total[LANES]
    for i in range(begin, end):
        first = ends[i - 1] if i > 0 else plan.first[roi]
        for j in range(columns):
            for k in range(lanes):
                total[k] = 0
            for u in range(ends[rows + j - 1], ends[rows + j]):
                x = &plan.taps[u]
                for k in range(lanes):
                    column[k] = 0
                for t in range(first, ends[i]):
                    y = &plan.taps[t]
                    source = origin + y.at * stride + x.at * lanes
                    for k in range(lanes):
                        column[k] += y.weight * source[k]
                for k in range(lanes):
                    total[k] += x.weight * column[k]
            for k in range(lanes):
                tile[k] = total[k]
            tile += lanes


cdef void average(const Pooling* pooling, Py_ssize_t roi, const Block* block, Py_ssize_t begin, Py_ssize_t end,
                  unaliased line, unaliased tile) noexcept nogil:
    """Sum up the rows of each column that a bin needs, then its columns."""
    # A known number of lanes becomes a few vector instructions.
    if block.lanes == LANES:
        average_lanes(pooling, roi, block, begin, end, LANES, tile)
    else:
        average_lanes(pooling, roi, block, begin, end, block.lanes, tile)


cdef void maximum(const Pooling* pooling, Py_ssize_t roi, const Block* block, Py_ssize_t begin, Py_ssize_t end,
                  unaliased line, unaliased tile) noexcept nogil:
    """Take the largest sample of each bin, or with corner_max the largest weighted corner."""
    cdef bint corners = pooling.rois.mode == CORNER_MAX
    cdef Py_ssize_t lanes = block.lanes
    cdef Py_ssize_t stride = (block.window.right - block.window.left) * lanes
    cdef const real* origin = block.start - block.window.top * stride - block.window.left * lanes
    cdef const real* above
    cdef const real* below
    cdef Py_ssize_t i, j, sy, sx, k, top, bottom, left, right
    cdef real dy, dx, a, b, c, d, value
    cdef bint in_y, in_x, first
    cdef Side y, x
    sides_of(pooling.rois, roi, &y, &x)
    for i in range(begin, end):
        for j in range(x.bins):
            first = True
            for sy in range(y.grid):
                in_y, top, bottom, dy = bilinear_taps(
                    sample_position(y.start, y.length, y.bins, i, y.grid, sy), y.size)
                for sx in range(x.grid):
                    in_x, left, right, dx = bilinear_taps(
                        sample_position(x.start, x.length, x.bins, j, x.grid, sx), x.size)
                    above = origin + top * stride
                    below = origin + bottom * stride
                    a, b, c, d = bilinear_weights(dy, dx)
                    for k in range(lanes):
                        value = typed(0, a)
                        if in_y and in_x:
                            if corners:
                                value = largest_part(
                                    above[left * lanes + k], above[right * lanes + k],
                                    below[left * lanes + k], below[right * lanes + k], a, b, c, d)
                            else:
                                value = blend(
                                    above[left * lanes + k], above[right * lanes + k],
                                    below[left * lanes + k], below[right * lanes + k], a, b, c, d)
                        tile[k] = value if first else larger(tile[k], value)
                    first = False
            tile += lanes


cdef api int roi_align_operator(const void* arguments, const Team* team) noexcept nogil:
    cdef const Rois* rois = <const Rois*> arguments
    cdef Pooling pooling
    cdef Plan plan
    cdef Py_ssize_t roi
    cdef Side y, x
    cdef int failed = -1
    pooling.rois, pooling.plan = rois, &plan
    pooling.pool = average if rois.mode == AVG else maximum
    pooling.windows = <Window*> malloc(rois.num_rois * sizeof(Window))
    plan.first = <Py_ssize_t*> calloc(rois.num_rois + 1, sizeof(Py_ssize_t))
    plan.ends = NULL
    plan.taps = NULL
    if pooling.windows != NULL and plan.first != NULL:
        if rois.mode == AVG:
            for roi in range(rois.num_rois):
                plan.first[roi + 1] = plan.first[roi]
                if sides_of(rois, roi, &y, &x):
                    plan.first[roi + 1] += most_taps(&y) + most_taps(&x)
            plan.ends = <Py_ssize_t*> malloc(
                rois.num_rois * (rois.out_height + rois.out_width) * sizeof(Py_ssize_t))
            plan.taps = <Tap*> malloc((plan.first[rois.num_rois] + 1) * sizeof(Tap))
        if rois.mode != AVG or (plan.ends != NULL and plan.taps != NULL):
            failed = team.spread(team, plan_loop, &pooling, rois.num_rois, 16)
            if not failed:
                failed = pool_rois(&pooling, team)
    free(plan.taps)
    free(plan.ends)
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


cdef void _describe(Rois* arguments, rois, output_size, double spatial_scale, Py_ssize_t sampling_ratio,
                    bint aligned) except *:
    arguments.rois = <const real*> data(rois)
    arguments.num_rois, arguments.roi_columns = rois.shape
    arguments.out_height, arguments.out_width = output_size
    arguments.spatial_scale = spatial_scale
    arguments.sampling_ratio = sampling_ratio
    arguments.aligned = aligned


def roi_align_points(rois, output_size, spatial_scale, sampling_ratio, aligned, points):
    cdef Rois arguments
    _describe(&arguments, rois, output_size, spatial_scale, sampling_ratio, aligned)
    arguments.points = <long long*> mutable(points)
    execute(roi_align_points_operator, &arguments)


def roi_align(features, rois, batch_indices, output_size, spatial_scale, sampling_ratio, aligned, int mode, out):
    cdef Rois arguments
    _describe(&arguments, rois, output_size, spatial_scale, sampling_ratio, aligned)
    arguments.features = <const real*> data(features)
    arguments.batch, arguments.channels, arguments.height, arguments.width = features.shape
    arguments.images = <const long long*> data(batch_indices)
    arguments.out = <real*> mutable(out)
    arguments.mode = mode
    if out.size > 0:
        execute(roi_align_operator, &arguments)
