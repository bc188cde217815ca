"""RoIAlign. The mean of a bin's samples is a weighted sum of elements, and its weights are products of a row's and a
column's: they are planned once for all channels, and samples that share an element cost no more than one."""

import numpy as np

from detops._codes import RoiMode
from detops._core.roi import exceeds_points, is_finite, larger, largest_part, roi_grid, roi_side, sample_position
from detops._core.sampling import bilinear_taps, bilinear_weights, blend
from detops._numba.parallel import ZERO, inlined, inner, jit, parallel_for, read_only


@inner
def side_of(low, high, bins, size, scale, ratio, aligned):
    """Start, length, bins, grid and elements of a side of a roi, and whether it lies at a finite place."""
    start, length = roi_side(low, high, scale, aligned)
    return start, length, bins, roi_grid(length, bins, ratio), size, is_finite(start) and is_finite(length)


@inner
def sides_of(roi, output_size, height, width, scale, ratio, aligned):
    """The sides of a roi along y and x; the box is in the last four columns."""
    x1, y1, x2, y2 = roi[-4], roi[-3], roi[-2], roi[-1]
    return (
        side_of(y1, y2, output_size[0], height, scale, ratio, aligned),
        side_of(x1, x2, output_size[1], width, scale, ratio, aligned),
    )


@jit
def first_crowded(rois, output_size, scale, ratio, aligned):
    """The first roi that has too many points; -1 where there is none."""
    for r in range(rois.shape[0]):
        y, x = sides_of(rois[r], output_size, ZERO, ZERO, scale, ratio, aligned)
        if y[5] and x[5] and exceeds_points(y[2], y[3], x[2], x[3]):
            return r
    return -1


@inlined
def add_tap(at, weights, first, end, element, weight):
    """Add a weight to the tap of an element; the samples of a bin go one way, so that it is one of the last three."""
    for t in range(end - 1, max(end - 4, first - 1), -1):
        if at[t] == element:
            weights[t] += weight
            return end
    at[end] = element
    weights[end] = weight
    return end + 1


@inlined
def most_taps(side):
    """How many taps a side has at most: in a bin two for each sample, and one for each element between them."""
    start, length, bins, grid, size, _ = side
    most = 0
    for i in range(bins):
        lowest, highest, samples = size, 0, 0
        for sample in range(grid):
            counts, low, high, _ = bilinear_taps(sample_position(start, length, bins, i, grid, sample), size)
            if counts:
                lowest, highest = min(lowest, low), max(highest, high + 1)
                samples += 1
        most += min(2 * samples, max(highest - lowest, 0))
    return most


@inner
def plan_side(side, real):
    """Elements and weights of all bins of a side, where those of each bin end, and the range of all elements."""
    start, length, bins, grid, size, _ = side
    most = most_taps(side)
    at = np.empty(most, np.int64)
    weights = np.empty(most, real)
    ends = np.empty(bins + 1, np.int64)
    ends[0] = 0
    end, lowest, highest = 0, size, 0
    for i in range(bins):
        first = end
        for sample in range(grid):
            counts, low, high, fraction = bilinear_taps(sample_position(start, length, bins, i, grid, sample), size)
            if counts:
                lowest, highest = min(lowest, low), max(highest, high + 1)
                end = add_tap(at, weights, first, end, low, real(1) - fraction)
                end = add_tap(at, weights, first, end, high, fraction)
        for t in range(first, end):
            weights[t] /= real(grid)
        ends[i + 1] = end
    return at, weights, ends, lowest, highest


@inlined
def average(planes, y, x, real, out):
    """Sum up the rows of a bin to one line, then the columns of each bin in that line."""
    rows, row_weights, row_ends, _, _ = plan_side(y, real)
    columns, column_weights, column_ends, left, right = plan_side(x, real)
    line = np.empty(planes.shape[2], real)
    for c in range(planes.shape[0]):
        for i in range(out.shape[1]):
            line[left:right] = real(0)
            for t in range(row_ends[i], row_ends[i + 1]):
                for k in range(left, right):
                    line[k] += row_weights[t] * planes[c, rows[t], k]
            for j in range(out.shape[2]):
                total = real(0)
                for t in range(column_ends[j], column_ends[j + 1]):
                    total += column_weights[t] * line[columns[t]]
                out[c, i, j] = total


@inner
def sample(plane, y, x, corners):
    """One bilinear sample, or its largest weighted corner; taps as of bilinear_taps."""
    in_y, top, bottom, dy = y
    in_x, left, right, dx = x
    if not (in_y and in_x):
        return dy - dy
    weights = bilinear_weights(dy, dx)
    elements = plane[top, left], plane[top, right], plane[bottom, left], plane[bottom, right]
    return largest_part(*elements, *weights) if corners else blend(*elements, *weights)


@inner
def maximum(planes, y, x, corners, out):
    """Take the largest sample of each bin, or the largest weighted corner."""
    start_y, length_y, rows, grid_y, height, _ = y
    start_x, length_x, columns, grid_x, width, _ = x
    for c in range(planes.shape[0]):
        for i in range(rows):
            for j in range(columns):
                out[c, i, j] = 0
                for point in range(grid_y * grid_x):
                    a, b = point // grid_x, point % grid_x
                    at_y = bilinear_taps(sample_position(start_y, length_y, rows, i, grid_y, a), height)
                    at_x = bilinear_taps(sample_position(start_x, length_x, columns, j, grid_x, b), width)
                    value = sample(planes[c], at_y, at_x, corners)
                    out[c, i, j] = larger(out[c, i, j], value) if point else value


@inlined
def fill_without_points(y, x, out):
    """Write the bins of a roi that has no points, NaN where it lies at no finite place; return whether it has none."""
    finite = y[5] and x[5]
    if finite and y[3] > 0 and x[3] > 0:
        return False
    value = 0.0 if finite else np.nan
    for c in range(out.shape[0]):
        for i in range(out.shape[1]):
            for j in range(out.shape[2]):
                out[c, i, j] = value
    return True


@jit
def average_loop(begin, end, features, rois, images, output_size, scale, ratio, aligned, out):
    """One item is one roi."""
    height, width = features.shape[2:]
    for r in range(begin, end):
        y, x = sides_of(rois[r], output_size, height, width, scale, ratio, aligned)
        if not fill_without_points(y, x, out[r]):
            average(features[images[r]], y, x, features.dtype.type, out[r])


@jit
def maximum_loop(begin, end, features, rois, images, output_size, scale, ratio, aligned, corners, out):
    """One item is one roi."""
    height, width = features.shape[2:]
    for r in range(begin, end):
        y, x = sides_of(rois[r], output_size, height, width, scale, ratio, aligned)
        if not fill_without_points(y, x, out[r]):
            maximum(features[images[r]], y, x, corners, out[r])


def roi_align(features, rois, batch_indices, output_size, spatial_scale, sampling_ratio, aligned, mode, out):
    """Kernel of roi_align: returns the first roi that has too many points, for which nothing is written, or -1."""
    options = (output_size, out.dtype.type(spatial_scale), sampling_ratio, aligned)
    crowded = first_crowded(read_only(rois), *options)
    if crowded >= 0:
        return crowded
    reads = (features, rois, batch_indices, *options)
    if mode == RoiMode.AVG:
        parallel_for(average_loop, out.shape[0], 4, reads, out)
    else:
        parallel_for(maximum_loop, out.shape[0], 4, (*reads, mode == RoiMode.CORNER_MAX), out)
    return -1
