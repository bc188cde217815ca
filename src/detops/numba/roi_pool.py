"""roi_pool inside compiled code."""

import numpy as np

from detops._numba.roi_pool import pool_loop
from detops._numba.spread import jit
from detops.numba.rois import images_of, native


@jit
def roi_pool(features, rois, output_size, spatial_scale=1.0):
    """``detops.roi_pool`` for compiled code.

    ``features`` (batch, channels, height, width), ``rois`` (num_rois, 5), ``output_size`` (height, width).
    """
    if min(output_size) < 1:
        raise ValueError("output_size: out of range")
    source = np.ascontiguousarray(features)
    images = images_of(rois, features.shape[0])
    boxes = np.ascontiguousarray(rois).astype(features.dtype)
    out = np.empty((rois.shape[0], features.shape[1], output_size[0], output_size[1]), features.dtype)
    pool_loop(0, rois.shape[0], source, boxes, images, native(spatial_scale, features), out)
    return out
