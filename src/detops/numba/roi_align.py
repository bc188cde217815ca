"""roi_align inside compiled code."""

import numpy as np

from detops._numba.roi_align import align_loop, points_loop
from detops._numba.spread import jit
from detops.numba.rois import images_of, native
from detops.roi_align import MAX_POINTS


@jit
def roi_align(features, rois, output_size, spatial_scale=1.0, sampling_ratio=0, aligned=True, mode=0):
    """``detops.roi_align`` for compiled code.

    ``features`` (batch, channels, height, width), ``rois`` (num_rois, 5), ``output_size`` (height, width); ``mode`` is
    0 for avg, 1 for max, 2 for corner_max.
    """
    if min(output_size) < 1 or mode < 0 or mode > 2:
        raise ValueError("output_size or mode: out of range")
    source = np.ascontiguousarray(features)
    images = images_of(rois, features.shape[0])
    boxes = np.ascontiguousarray(rois).astype(features.dtype)
    ratio = max(min(sampling_ratio, MAX_POINTS + 1), 0)
    scale = native(spatial_scale, features)
    points = np.empty(rois.shape[0], np.int64)
    points_loop(0, points.size, boxes, output_size, scale, ratio, aligned, points)
    for r in range(points.size):
        if points[r] > MAX_POINTS:
            raise ValueError("rois: more than 2**24 points to sample in a roi")
    out = np.empty((rois.shape[0], features.shape[1], output_size[0], output_size[1]), features.dtype)
    align_loop(0, points.size, source, boxes, images, output_size, scale, ratio, aligned, mode, out)
    return out
