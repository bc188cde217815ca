"""Sampling of maps at the points of a grid."""

import numpy as np

from detops._core.sampling import clip_coordinate, first_tap, tap_index, tap_weight, unnormalize
from detops._numba.parallel import inner, jit, parallel_for


@inner
def place(grid, sizes, taps, border, align_corners, at, weight):
    """Find the taps of one point along each axis: rows of (at, weight) are x, y, z."""
    for axis in range(grid.shape[0]):
        size = sizes[axis]
        position = clip_coordinate(unnormalize(grid[axis], size, align_corners), size, border, align_corners)
        first, fraction = first_tap(position, taps)
        for tap in range(taps):
            at[axis, tap] = tap_index(first + tap, size, border, align_corners)
            weight[axis, tap] = tap_weight(tap, taps, fraction)


@inner
def gather(volume, depth_taps, taps, at, weight):
    """Weighted sum of one point's taps in one channel (depth, height, width)."""
    total = weight.dtype.type(0)
    for k in range(depth_taps):
        for i in range(taps):
            for j in range(taps):
                if at[0, j] >= 0 and at[1, i] >= 0 and at[2, k] >= 0:
                    share = weight[0, j] * weight[1, i] * weight[2, k]
                    total += share * volume[at[2, k], at[1, i], at[0, j]]
    return total


@jit
def sample(begin, end, x, grid, taps, border, align_corners, out):
    """One item is one point of one image."""
    points = grid.shape[1]
    sizes = (x.shape[4], x.shape[3], x.shape[2])
    # The depth of a 4-D map is one element of weight 1.
    at = np.zeros((3, taps), np.intp)
    weight = np.ones((3, taps), x.dtype)
    depth_taps = taps if grid.shape[2] == 3 else 1
    for item in range(begin, end):
        image, point = item // points, item % points
        place(grid[image, point], sizes, taps, border, align_corners, at, weight)
        for channel in range(x.shape[1]):
            out[image, channel, point] = gather(x[image, channel], depth_taps, taps, at, weight)


def grid_sample(x, grid, taps, border, align_corners, out):
    """Kernel of grid_sample."""
    grain = 1 + 65536 // x.shape[1]
    parallel_for(sample, out.shape[0] * out.shape[2], grain, (x, grid, taps, border, align_corners), out)
