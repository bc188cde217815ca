"""RoIPool: maxima of whole elements."""

import numpy as np

from detops._core.roi import is_finite, larger, pool_range, pool_side
from detops._numba.parallel import inner, jit, parallel_for


@inner
def largest(plane, top, bottom, left, right):
    """The largest element of a rectangle; 0 of an empty one."""
    if top >= bottom or left >= right:
        return plane.dtype.type(0)
    best = plane[top, left]
    for y in range(top, bottom):
        for x in range(left, right):
            best = larger(best, plane[y, x])
    return best


@jit
def pool_loop(begin, end, features, rois, images, scale, out):
    """One item is one roi; its box is in the last four columns."""
    channels, rows, columns = out.shape[1:]
    height, width = features.shape[2:]
    for r in range(begin, end):
        x1, y1, x2, y2 = rois[r, -4] * scale, rois[r, -3] * scale, rois[r, -2] * scale, rois[r, -1] * scale
        if not (is_finite(x1) and is_finite(y1) and is_finite(x2) and is_finite(y2)):
            out[r] = np.nan
            continue
        start_y, size_y = pool_side(rois[r, -3], rois[r, -1], scale)
        start_x, size_x = pool_side(rois[r, -4], rois[r, -2], scale)
        for i in range(rows):
            top, bottom = pool_range(start_y, size_y, rows, i, height)
            for j in range(columns):
                left, right = pool_range(start_x, size_x, columns, j, width)
                for c in range(channels):
                    out[r, c, i, j] = largest(features[images[r], c], top, bottom, left, right)


def roi_pool(features, rois, batch_indices, output_size, spatial_scale, out):
    """Kernel of roi_pool."""
    scale = out.dtype.type(spatial_scale)
    parallel_for(pool_loop, out.shape[0], 4, (features, rois, batch_indices, scale), out)
