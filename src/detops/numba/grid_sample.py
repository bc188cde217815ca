"""grid_sample inside compiled code."""

import numpy as np

from detops._numba.grid_sample import sample
from detops._numba.spread import jit


@jit
def grid_sample(x, grid, mode=0, padding_mode=0, align_corners=False, reflect_first=False):
    """``detops.grid_sample`` for compiled code.

    ``x`` (N, C, H, W) and ``grid`` (N, out_H, out_W, 2), or 5-D; ``mode`` is 0 for linear, 1 for nearest, 2 for cubic,
    ``padding_mode`` 0 for zeros, 1 for border, 2 for reflection, with which ``reflect_first`` chooses a nearest element
    after it has mirrored the point.
    """
    if grid.ndim != x.ndim or grid.shape[0] != x.shape[0] or grid.shape[x.ndim - 1] != x.ndim - 2:
        raise ValueError("grid: does not fit x")
    if x.ndim < 4 or x.ndim > 5:
        raise ValueError("x: expected 4 or 5 axes")
    if mode < 0 or mode > 2 or padding_mode < 0 or padding_mode > 2:
        raise ValueError("mode or padding_mode: out of range")
    sizes = x.shape[2:]
    volume = 1
    for size in sizes:
        volume *= size
    if volume == 0 and padding_mode > 0:
        raise ValueError("x: nothing to sample")
    axes = grid.shape[x.ndim - 1]
    count = 1
    for size in grid.shape[1:-1]:
        count *= size
    out = np.empty((x.shape[0], x.shape[1], *grid.shape[1:-1]), x.dtype)
    depth = sizes[0] if x.ndim == 5 else 1
    source = np.ascontiguousarray(x).reshape((x.shape[0], x.shape[1], depth, sizes[-2], sizes[-1]))
    where = np.ascontiguousarray(grid).astype(x.dtype).reshape((x.shape[0], count, axes))
    flat = out.reshape((x.shape[0], x.shape[1], count))
    taps = 2 if mode == 0 else (1 if mode == 1 else 4)
    border = 3 if reflect_first and mode == 1 and padding_mode == 2 else padding_mode
    sample(0, x.shape[0] * count, source, where, taps, border, align_corners, flat)
    return out
