"""RoIPool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detops.operators import _checks, _rois
from detops.runtime import _registry
from detops.runtime._registry import Backend


def roi_pool(
    features: ArrayLike,
    rois: ArrayLike | Sequence[ArrayLike],
    output_size: int | Sequence[int],
    *,
    spatial_scale: float = 1.0,
    batch_indices: ArrayLike | None = None,
    out: NDArray[Any] | None = None,
    backend: Backend | None = None,
) -> NDArray[np.floating[Any]]:
    """Pool regions of interest of a feature map to a fixed size, taking maxima of whole elements.

    The corners of a roi are scaled and rounded, halves away from 0, and both belong to it. Of a side of ``size``
    elements, bin i of n takes the elements from ``floor(i * size / n)`` up to, but without,
    ``ceil((i + 1) * size / n)``, as far as they are on the map.

    Parameters
    ----------
    features : array_like of float16, float32 or float64
        Feature maps, (batch, channels, height, width).
    rois : array_like of float16, float32, float64 or an integer type, or a list of them
        (num_rois, 5) as (batch index, x1, y1, x2, y2), or (num_rois, 4) as (x1, y1, x2, y2) with `batch_indices`, or
        a list with one (num_boxes, 4) for each image, as torchvision has it. An empty list is no rois. The unit is
        that of the input image, if `spatial_scale` leads from there to the map.
    output_size : int or (int, int)
        Bins of a roi: (out_height, out_width), or one number for both.
    spatial_scale : float, default 1.0
        Multiplies the coordinates: 1/16 for a map with a stride of 16.
    batch_indices : array_like of integers, or of whole floats, optional
        (num_rois,), the image of each roi, where `rois` has four columns.
    out : numpy.ndarray, optional
        Where to write the result: its shape and dtype, C-contiguous.
    backend : {"cython", "numba", "cuda"}, optional
        None takes CUDA where an input lives on a GPU, else Cython.

    Returns
    -------
    numpy.ndarray
        (num_rois, channels, out_height, out_width) with the dtype of `features`. A bin without elements is 0.

    Raises
    ------
    TypeError
        If an argument has a wrong dtype or type.
    ValueError
        If a shape or an option is wrong, or if a batch index is no whole number in [0, batch).

    See Also
    --------
    roi_align : The newer operator, which samples bilinearly and rounds nothing.

    Notes
    -----
    A roi with x2 < x1 or y2 < y1 is one element wide or high. The maximum carries NaN. The bins of a roi with NaN or
    inf, or one that overflows when it is scaled, are NaN, those of other rois stay right; scaled coordinates beyond
    2**30 are taken as 2**30. Coordinates are scaled in the type of the computation: float32 for float16 and float32
    features.

    The definition is that of ONNX MaxRoiPool and torchvision's ``roi_pool`` [1]_, with bins at exact fractions of a
    roi: those libraries divide in floating point, which may give a bin a row more. MMCV's ``RoIPool`` is another
    operator: it rounds nothing, and places the far corner at (x2 + 1) * spatial_scale.

    References
    ----------
    .. [1] Girshick, "Fast R-CNN", ICCV 2015.

    Examples
    --------
    >>> import numpy as np
    >>> import detops
    >>> features = np.arange(16.0).reshape(1, 1, 4, 4)
    >>> detops.roi_pool(features, np.array([[0.0, 0.0, 0.0, 3.0, 2.4]]), 2)
    array([[[[ 5.,  7.],
             [ 9., 11.]]]])
    """
    call, dtype, images = _rois.prepare(backend, features, rois, batch_indices)
    bins = _checks.pair("output_size", output_size, at_least=1)
    (scale,) = _checks.in_range((_checks.real("spatial_scale", spatial_scale, positive=True),), dtype)
    shape = (call["rois"].shape[0], call["features"].shape[1], *bins)
    _checks.result_shape("output_size", shape, dtype)
    results = call.results(out, (shape, _checks.native(call["features"].dtype), dtype))
    _registry.kernel("roi_pool", call.backend, dtype)(
        call.cast("features", dtype), call.cast("rois", dtype), images, bins, scale, *results.buffers
    )
    return results.deliver()
