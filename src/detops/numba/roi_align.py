"""roi_align inside compiled code."""

import numpy as np

from detops._codes import RoiMode
from detops._numba.roi_align import average_loop, first_crowded, maximum_loop
from detops.numba import _kinds
from detops.numba._kinds import inlined
from detops.numba._operator import operator
from detops.numba._rois import Regions
from detops.operators.roi_align import MAX_POINTS, MODES


@inlined
def _average(count, features, rois, images, bins, scale, ratio, aligned, out):
    average_loop(0, count, features, rois, images, bins, scale, ratio, aligned, out)


def _loop(mode):
    """Return the loop of a mode."""
    if mode == RoiMode.AVG:
        return _average
    corners = mode == RoiMode.CORNER_MAX

    @inlined
    def _maximum(count, features, rois, images, bins, scale, ratio, aligned, out):
        maximum_loop(0, count, features, rois, images, bins, scale, ratio, aligned, corners, out)

    return _maximum


@operator
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
    """``detops.roi_align`` for compiled code."""
    regions = Regions(features, rois, batch_indices, output_size, spatial_scale)
    element, as_features, as_rois = regions.element, regions.features, regions.rois
    as_bins, positive, images_of = regions.bins, regions.scale, regions.images
    whole, flag = _kinds.integer("sampling_ratio", sampling_ratio), _kinds.flag("aligned", aligned)
    loop = _loop(MODES[_kinds.text("mode", mode, MODES)])

    def roi_align(features, rois, output_size, spatial_scale, sampling_ratio, aligned, mode, batch_indices):
        images = images_of(rois, batch_indices, features.shape[0])
        bins, scale = as_bins(output_size), element(positive(spatial_scale))
        ratio, half_pixel = max(min(whole(sampling_ratio), MAX_POINTS + 1), 0), flag(aligned)
        boxes = as_rois(rois)
        if first_crowded(boxes, bins, scale, ratio, half_pixel) >= 0:
            raise ValueError("rois: expected at most 2**24 points to sample in a roi")
        out = np.empty((boxes.shape[0], features.shape[1], bins[0], bins[1]), element)
        loop(out.shape[0], as_features(features), boxes, images, bins, scale, ratio, half_pixel, out)
        return out

    return roi_align
