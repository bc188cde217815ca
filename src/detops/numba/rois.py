"""What the operators on regions of interest share inside compiled code."""

import numpy as np

from detops._numba.spread import jit


@jit
def images_of(rois, batch):
    """The image of each roi, from the first of five columns."""
    if rois.shape[1] != 5:
        raise ValueError("rois: expected shape (num_rois, 5)")
    images = np.empty(rois.shape[0], np.int64)
    for r in range(rois.shape[0]):
        index = rois[r, 0]
        if not (0 <= index < batch and index == np.trunc(index)):
            raise ValueError("rois: a batch index is out of range")
        images[r] = int(index)
    return images


@jit
def native(number, like):
    """A number in the type of an array's elements."""
    return np.array([number]).astype(like.dtype)[0]
