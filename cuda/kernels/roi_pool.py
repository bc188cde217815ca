"""RoIPool: one item is one element of the result."""

import math

from detops._core.roi import is_finite, larger, pool_range, pool_side
from detops._core.scalar import product, typed
from detops._cuda.device import cuda, jit, launch


@jit
def pool_kernel(features, rois, images, scale, out):
    """One item is one element of the result; a roi's box is in the last four columns."""
    channels, rows, columns = out.shape[1], out.shape[2], out.shape[3]
    height, width = features.shape[2], features.shape[3]
    box = rois.shape[1] - 4
    for item in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        j = item % columns
        i = item // columns % rows
        c = item // (columns * rows) % channels
        r = item // (columns * rows * channels)
        start_x, size_x = pool_side(rois[r, box], rois[r, box + 2], scale)
        start_y, size_y = pool_side(rois[r, box + 1], rois[r, box + 3], scale)
        top, bottom = pool_range(start_y, size_y, rows, i, height)
        left, right = pool_range(start_x, size_x, columns, j, width)
        finite = True
        for side in range(4):
            finite = finite and is_finite(product(rois[r, box + side], scale))
        result = typed(0 if finite else math.nan, scale)
        if finite:
            for y in range(top, bottom):
                for x in range(left, right):
                    value = features[images[r], c, y, x]
                    result = value if y == top and x == left else larger(result, value)
        out[r, c, i, j] = result


def roi_pool(features, rois, batch_indices, output_size, spatial_scale, out):
    """Kernel of roi_pool."""
    launch(pool_kernel, out.size, features, rois, batch_indices, out.dtype.type(spatial_scale), out)
