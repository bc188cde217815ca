"""RoIPool, one bin at a time, in whole numbers."""

import math

import numpy as np

from tests.oracle.roi_align import split_rois


def _round(x):
    """Halves away from 0."""
    return int(math.copysign(math.floor(abs(x) + 0.5), x))


def _edges(size, bins, i, start, length):
    first, last = start + i * size // bins, start - (-(i + 1) * size // bins)
    return min(max(first, 0), length), min(max(last, 0), length)


def roi_pool(features, rois, output_size, *, spatial_scale=1.0, batch_indices=None):
    features = np.asarray(features, np.float64)
    boxes, images = split_rois(rois, batch_indices)
    rows, columns = (output_size, output_size) if isinstance(output_size, int) else output_size
    result = np.zeros((len(boxes), features.shape[1], rows, columns))
    for r, box in enumerate(boxes):
        if not np.isfinite(box).all():
            result[r] = np.nan
            continue
        x1, y1, x2, y2 = (_round(float(c) * spatial_scale) for c in box)
        height, width = max(y2 - y1 + 1, 1), max(x2 - x1 + 1, 1)
        for i, j in np.ndindex(rows, columns):
            top, bottom = _edges(height, rows, i, y1, features.shape[2])
            left, right = _edges(width, columns, j, x1, features.shape[3])
            if top < bottom and left < right:
                result[r, :, i, j] = features[images[r], :, top:bottom, left:right].max((1, 2))
    return result
