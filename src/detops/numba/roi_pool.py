"""roi_pool inside compiled code."""

import numpy as np

from detops._numba.roi_pool import pool_loop
from detops.numba._operator import operator
from detops.numba._rois import Regions


@operator
def roi_pool(features, rois, output_size, *, spatial_scale=1.0, batch_indices=None):
    """``detops.roi_pool`` for compiled code."""
    regions = Regions(features, rois, batch_indices, output_size, spatial_scale)
    element, as_features, as_rois = regions.element, regions.features, regions.rois
    as_bins, positive, images_of = regions.bins, regions.scale, regions.images

    def roi_pool(features, rois, output_size, spatial_scale, batch_indices):
        images = images_of(rois, batch_indices, features.shape[0])
        bins, scale = as_bins(output_size), element(positive(spatial_scale))
        out = np.empty((images.size, features.shape[1], bins[0], bins[1]), element)
        pool_loop(0, images.size, as_features(features), as_rois(rois), images, scale, out)
        return out

    return roi_pool
