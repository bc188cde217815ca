"""RoIAlign, one sample at a time."""

import math

import numpy as np


def split_rois(rois, batch_indices):
    """Return boxes (num_rois, 4) and the image of each."""
    rois = np.asarray(rois, np.float64)
    return (rois[:, 1:], rois[:, 0].astype(int)) if batch_indices is None else (rois, np.asarray(batch_indices))


def _corners(plane, y, x):
    """Return (weight, element) of the four neighbors of a point; none for a point outside."""
    height, width = plane.shape
    if plane.size == 0 or not (-1 <= y <= height and -1 <= x <= width):
        return []
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    top, left = math.floor(y), math.floor(x)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    dy, dx = y - top, x - left
    return [
        ((1 - dy) * (1 - dx), plane[top, left]),
        ((1 - dy) * dx, plane[top, right]),
        (dy * (1 - dx), plane[bottom, left]),
        (dy * dx, plane[bottom, right]),
    ]


def _sample(plane, y, x, mode):
    products = [weight * element for weight, element in _corners(plane, y, x)]
    if not products:
        return 0.0
    return np.max(products) if mode == "corner_max" else sum(products)


def roi_align(
    features,
    rois,
    output_size,
    *,
    spatial_scale=1.0,
    sampling_ratio=0,
    aligned=True,
    mode="avg",
    batch_indices=None,
):
    features = np.asarray(features, np.float64)
    boxes, images = split_rois(rois, batch_indices)
    rows, columns = (output_size, output_size) if isinstance(output_size, int) else output_size
    result = np.zeros((len(boxes), features.shape[1], rows, columns))
    for r, box in enumerate(boxes):
        x1, y1, x2, y2 = (float(c) * spatial_scale - (0.5 if aligned else 0) for c in box)
        if not np.isfinite([x1, y1, x2, y2]).all():
            result[r] = np.nan
            continue
        height, width = y2 - y1, x2 - x1
        if not aligned:
            height, width = max(height, 1), max(width, 1)
        bin_height, bin_width = height / rows, width / columns
        ny, nx = (
            max(math.ceil(side), 0) if sampling_ratio <= 0 else sampling_ratio for side in (bin_height, bin_width)
        )
        for c, i, j in np.ndindex(features.shape[1], rows, columns):
            samples = [
                _sample(
                    features[images[r], c],
                    y1 + (i + (a + 0.5) / ny) * bin_height,
                    x1 + (j + (b + 0.5) / nx) * bin_width,
                    mode,
                )
                for a in range(ny)
                for b in range(nx)
            ]
            if samples:
                result[r, c, i, j] = np.mean(samples) if mode == "avg" else np.max(samples)
    return result
