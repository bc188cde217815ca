# Which elements of a map the bins of rois take, and how much of each: found once, and used for all channels.
cdef struct Tap:
    Py_ssize_t at
    real weight

cdef enum:
    # In place of the number of taps of a roi that has too many points.
    CROWDED = -1

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
    y.grid = roi_grid(y.length, y.bins, rois.ratio)
    x.grid = roi_grid(x.length, x.bins, rois.ratio)
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
    cdef Extent* extent
    cdef Side y, x
    for roi in range(begin, end):
        extent = &pooling.extents[roi]
        extent.top = extent.bottom = extent.left = extent.right = 0
        extent.empty = 0
        if not sides_of(rois, roi, &y, &x):
            extent.empty = <real> NAN
        elif exceeds_points(y.bins, y.grid, x.bins, x.grid):
            plan.first[roi + 1] = CROWDED
        elif y.grid > 0 and x.grid > 0:
            plan.first[roi + 1] = (
                measure_side(&y, rois.mode == RoiMode.AVG, &extent.top, &extent.bottom)
                + measure_side(&x, rois.mode == RoiMode.AVG, &extent.left, &extent.right))
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
        if area(&pooling.extents[roi]) > 0:
            sides_of(rois, roi, &y, &x)
            ends = plan.ends + roi * (y.bins + x.bins)
            middle = plan_side(&y, rois.mode == RoiMode.AVG, plan.taps, plan.first[roi], ends)
            plan_side(&x, rois.mode == RoiMode.AVG, plan.taps, middle, ends + y.bins)
    return 0
