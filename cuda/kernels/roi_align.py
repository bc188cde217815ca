"""RoIAlign: one item is one element of the result."""

import math

import numpy as np

from detops._codes import RoiMode
from detops._core.roi import exceeds_points, is_finite, larger, largest_part, roi_grid, roi_side, sample_position
from detops._core.sampling import bilinear_taps, bilinear_weights, blend
from detops._core.scalar import typed
from detops._cuda.device import cuda, empty, jit, launch


@jit
def crowded_kernel(rois, rows, columns, scale, ratio, aligned, crowded):
    """One item is one roi; its box is in the last four columns: whether it has too many points."""
    for r in range(cuda.grid(1), rois.shape[0], cuda.gridsize(1)):
        box = rois.shape[1] - 4
        x, width = roi_side(rois[r, box], rois[r, box + 2], scale, aligned)
        y, height = roi_side(rois[r, box + 1], rois[r, box + 3], scale, aligned)
        finite = is_finite(x) and is_finite(width) and is_finite(y) and is_finite(height)
        grid_y, grid_x = roi_grid(height, rows, ratio), roi_grid(width, columns, ratio)
        crowded[r] = finite and exceeds_points(rows, grid_y, columns, grid_x)


@jit
def align_kernel(features, rois, images, scale, ratio, aligned, mode, out):
    """One item is one element of the result."""
    channels, rows, columns = out.shape[1], out.shape[2], out.shape[3]
    height, width = features.shape[2], features.shape[3]
    box = rois.shape[1] - 4
    for item in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        j = item % columns
        i = item // columns % rows
        c = item // (columns * rows) % channels
        r = item // (columns * rows * channels)
        x, size_x = roi_side(rois[r, box], rois[r, box + 2], scale, aligned)
        y, size_y = roi_side(rois[r, box + 1], rois[r, box + 3], scale, aligned)
        grid_y = roi_grid(size_y, rows, ratio)
        grid_x = roi_grid(size_x, columns, ratio)
        plane = features[images[r], c]
        finite = is_finite(x) and is_finite(size_x) and is_finite(y) and is_finite(size_y)
        grid_y = grid_y if finite else 0
        result = typed(0 if finite else math.nan, scale)
        for a in range(grid_y):
            in_y, top, bottom, dy = bilinear_taps(sample_position(y, size_y, rows, i, grid_y, a), height)
            for b in range(grid_x):
                in_x, left, right, dx = bilinear_taps(sample_position(x, size_x, columns, j, grid_x, b), width)
                value = typed(0, scale)
                if in_y and in_x:
                    wa, wb, wc, wd = bilinear_weights(dy, dx)
                    va, vb, vc, vd = plane[top, left], plane[top, right], plane[bottom, left], plane[bottom, right]
                    if mode == RoiMode.CORNER_MAX:
                        value = largest_part(va, vb, vc, vd, wa, wb, wc, wd)
                    else:
                        value = blend(va, vb, vc, vd, wa, wb, wc, wd)
                if mode == RoiMode.AVG:
                    result += value
                else:
                    result = larger(result, value) if a + b > 0 else value
        if mode == RoiMode.AVG and grid_y * grid_x > 0:
            result /= typed(grid_y * grid_x, scale)
        out[r, c, i, j] = result


def roi_align(features, rois, batch_indices, output_size, spatial_scale, sampling_ratio, aligned, mode, out):
    """Kernel of roi_align: returns the first roi that has too many points, for which nothing is written, or -1."""
    scale = out.dtype.type(spatial_scale)
    flags = empty(rois.shape[0], np.dtype(bool))
    launch(crowded_kernel, flags.size, rois, *output_size, scale, sampling_ratio, aligned, flags)
    crowded = np.flatnonzero(flags.copy_to_host())
    if crowded.size:
        return int(crowded[0])
    launch(align_kernel, out.size, features, rois, batch_indices, scale, sampling_ratio, aligned, mode, out)
    return -1
