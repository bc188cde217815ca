"""RoIAlign."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detops._codes import RoiMode, words
from detops.operators import _checks, _rois
from detops.runtime import _registry
from detops.runtime._registry import Backend

MODES = words(RoiMode)

MAX_POINTS = 2**24


def roi_align(
    features: ArrayLike,
    rois: ArrayLike | Sequence[ArrayLike],
    output_size: int | Sequence[int],
    *,
    spatial_scale: float = 1.0,
    sampling_ratio: int = 0,
    aligned: bool = True,
    mode: Literal["avg", "max", "corner_max"] = "avg",
    batch_indices: ArrayLike | None = None,
    out: NDArray[Any] | None = None,
    backend: Backend | None = None,
) -> NDArray[np.floating[Any]]:
    """Pool regions of interest of a feature map to a fixed size, sampling it bilinearly.

    Each roi is divided into ``output_size`` bins, each bin is sampled at a regular grid of points, and the samples are
    averaged or their maximum is taken.

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
    sampling_ratio : int, default 0
        A bin is sampled at ``sampling_ratio**2`` points. With 0, or any number below, a bin has
        ``ceil(roi size / output size)`` points a side, about one for each element of the map.
    aligned : bool, default True
        Whether the center of the first element is at 0.5, so that coordinates are moved by -0.5 (ONNX's
        ``half_pixel``). Otherwise it is at 0, and a roi is taken to be at least 1 wide and high on the map (ONNX's
        ``output_half_pixel``, the legacy of Detectron).
    mode : {"avg", "max", "corner_max"}, default "avg"
        What a bin gives: the mean of its samples; the largest sample (MMCV); or the largest product of an element
        with its bilinear weight, unsummed (what ONNX means by its mode ``max``).
    batch_indices : array_like of integers, or of whole floats, optional
        (num_rois,), the image of each roi, where `rois` has four columns.
    out : numpy.ndarray, optional
        Where to write the result: its shape and dtype, C-contiguous.
    backend : {"cython", "numba", "cuda"}, optional
        None takes CUDA where an input lives on a GPU, else Cython.

    Returns
    -------
    numpy.ndarray
        (num_rois, channels, out_height, out_width) with the dtype of `features`.

    Raises
    ------
    TypeError
        If an argument has a wrong dtype or type.
    ValueError
        If a shape or an option is wrong, if a batch index is no whole number in [0, batch), or if one roi
        has more than 2**24 points to sample, all its bins together.

    See Also
    --------
    roi_pool : The older operator, which rounds rois to whole elements.

    Notes
    -----
    A point outside [-1, height] x [-1, width] counts as a sample of 0; one that is less far outside is moved to the
    border. An aligned roi with x2 <= x1 or y2 <= y1 has no samples with ``sampling_ratio=0``, and its bins are 0; with
    a fixed ratio it is walked backwards.

    The bins of a roi with NaN or inf, or one that overflows when it is scaled, are NaN, those of other rois stay right.
    A NaN or inf in the map reaches each bin that has a sample next to it, even with weight 0, and maxima carry NaN.

    The rois are scaled and divided in the type of the computation: float32 for float16 and float32 features. The
    definition is that of ONNX RoiAlign, MMCV's ``MMCVRoiAlign`` and torchvision's ``roi_align`` [1]_.

    References
    ----------
    .. [1] He et al., "Mask R-CNN", ICCV 2017.

    Examples
    --------
    >>> import numpy as np
    >>> import detops
    >>> features = np.arange(16.0).reshape(1, 1, 4, 4)
    >>> detops.roi_align(features, np.array([[0.0, 0.0, 0.0, 4.0, 4.0]]), 2)
    array([[[[ 2.5,  4.5],
             [10.5, 12.5]]]])
    """
    call, dtype, images = _rois.prepare(backend, features, rois, batch_indices)
    bins = _checks.pair("output_size", output_size, at_least=1)
    (scale,) = _checks.in_range((_checks.real("spatial_scale", spatial_scale, positive=True),), dtype)
    # A ratio beyond the limits need not fit an index.
    ratio = max(min(_checks.integer("sampling_ratio", sampling_ratio), MAX_POINTS + 1), 0)
    shifted = _checks.flag("aligned", aligned)
    number = MODES[_checks.choice("mode", mode, MODES)]
    shape = (call["rois"].shape[0], call["features"].shape[1], *bins)
    _checks.result_shape("output_size", shape, dtype)
    results = call.results(out, (shape, _checks.native(call["features"].dtype), dtype))
    arrays = (call.cast("features", dtype), call.cast("rois", dtype), images)
    options = (bins, scale, ratio, shifted, number)
    crowded = _registry.kernel("roi_align", call.backend, dtype)(*arrays, *options, *results.buffers)
    if crowded >= 0:
        raise ValueError(f"rois: expected at most {MAX_POINTS} points to sample in a roi, got more in row {crowded}")
    return results.deliver()
