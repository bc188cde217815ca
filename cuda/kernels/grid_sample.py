"""Sampling of maps at the points of a grid."""

from detops._core.sampling import clip_coordinate, first_tap, tap_index, tap_weight, unnormalize
from detops._cuda.device import cuda, jit, launch


@jit
def sample(x, grid, taps, border, align_corners, out):
    """One item is one point in one channel of one image."""
    channels, depth, height, width = x.shape[1:]
    points, deep = grid.shape[1], grid.shape[2] == 3
    for item in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        image, channel, point = item // points // channels, item // points % channels, item % points
        volume = x[image, channel]
        where = grid[image, point]
        left, along_x = first_tap(
            clip_coordinate(unnormalize(where[0], width, align_corners), width, border, align_corners), taps
        )
        top, along_y = first_tap(
            clip_coordinate(unnormalize(where[1], height, align_corners), height, border, align_corners), taps
        )
        # The depth of a 4-D map is one element of weight 1.
        front, along_z = 0, along_x
        if deep:
            front, along_z = first_tap(
                clip_coordinate(unnormalize(where[2], depth, align_corners), depth, border, align_corners), taps
            )
        total = x.dtype.type(0)
        for k in range(taps if deep else 1):
            z = tap_index(front + k, depth, border, align_corners)
            share_z = tap_weight(k, taps if deep else 1, along_z)
            for i in range(taps):
                y = tap_index(top + i, height, border, align_corners)
                share_y = share_z * tap_weight(i, taps, along_y)
                for j in range(taps):
                    column = tap_index(left + j, width, border, align_corners)
                    if z >= 0 and y >= 0 and column >= 0:
                        total += share_y * tap_weight(j, taps, along_x) * volume[z, y, column]
        out[image, channel, point] = total


def grid_sample(x, grid, taps, border, align_corners, out):
    """Kernel of grid_sample."""
    launch(sample, out.size, x, grid, taps, border, align_corners, out)
