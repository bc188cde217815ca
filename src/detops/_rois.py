"""What the operators on regions of interest share: their checks of rois and batch indices."""

from typing import Any

import numpy as np

from detops import _checks
from detops._call import Call


def image_of_each(call: Call) -> Any:
    """Check the shapes of features, rois and batch_indices; return the image of each roi as int64, in call's space."""
    _checks.shape("features", call["features"].shape, ("batch", "channels", "height", "width"))
    rois = call["rois"]
    if call.get("batch_indices") is None:
        name = "rois"
        _checks.shape("rois", rois.shape, ("num_rois", 5))
        indices = call.space.to_host(rois)[:, 0]
    else:
        name = "batch_indices"
        _checks.dtype("batch_indices", call["batch_indices"].dtype, _checks.INTEGERS)
        _checks.shape("rois", rois.shape, ("num_rois", 4))
        _checks.shape("batch_indices", call["batch_indices"].shape, (rois.shape[0],))
        indices = call.space.to_host(call["batch_indices"])
    batch = call["features"].shape[0]
    wrong = ~((indices >= 0) & (indices < batch) & (indices == np.trunc(indices)))
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"{name}: expected whole batch indices in [0, {batch}), got {indices[row]} in row {row}")
    return call.space.cast(indices, np.dtype(np.int64))
