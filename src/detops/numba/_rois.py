"""Checks of rois and batch indices inside compiled code."""

import numpy as np

from detops._numba.parallel import inner
from detops.numba import _kinds
from detops.numba._kinds import inlined


@inner
def images_in(indices, batch, images):
    """Write whole batch indices that are in range; return whether all are."""
    for r in range(images.size):
        index = indices[r]
        if not (index >= 0 and index < batch and index == np.trunc(index)):
            return False
        images[r] = np.int64(index)
    return True


class Regions:
    """Features and rois, checked, and functions for compiled code that make them ready."""

    def __init__(self, features, rois, batch_indices, output_size, spatial_scale):
        features = _kinds.array("features", features, ("batch", "channels", "height", "width"))
        rois = _kinds.array("rois", rois, ("num_rois", "5"))
        dtype = _kinds.floats("features", features)
        _kinds.coordinates("rois", rois)
        self.element = dtype.type
        self.features, self.rois = _kinds.cast(features, dtype), _kinds.cast(rois, dtype)
        self.bins = _kinds.pair("output_size", output_size, 1)
        self.scale = _kinds.real("spatial_scale", spatial_scale, positive=True)
        self.images = _in_a_column if _kinds.absent(batch_indices) else _apart(batch_indices)


@inlined
def _in_a_column(rois, batch_indices, batch):
    """The image of each roi, from the first of five columns."""
    if rois.shape[1] != 5:
        raise ValueError("rois: expected shape (num_rois, 5), or (num_rois, 4) with batch_indices")
    images = np.empty(rois.shape[0], np.int64)
    if not images_in(rois[:, 0], np.int64(batch), images):
        raise ValueError("rois: expected whole batch indices in [0, batch)")
    return images


def _apart(batch_indices):
    batch_indices = _kinds.array("batch_indices", batch_indices, ("num_rois",))
    _kinds.coordinates("batch_indices", batch_indices)

    @inlined
    def images(rois, batch_indices, batch):
        if rois.shape[1] != 4:
            raise ValueError("rois: expected shape (num_rois, 4) with batch_indices")
        if batch_indices.shape[0] != rois.shape[0]:
            raise ValueError("batch_indices: expected shape (num_rois,)")
        found = np.empty(rois.shape[0], np.int64)
        if not images_in(batch_indices, np.int64(batch), found):
            raise ValueError("batch_indices: expected whole batch indices in [0, batch)")
        return found

    return images
