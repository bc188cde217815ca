"""Soft non-maximum suppression."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detops._codes import SoftNmsMethod, words
from detops.operators import _checks, _suppression
from detops.operators._call import Call
from detops.runtime import _registry
from detops.runtime._registry import Backend

METHODS = words(SoftNmsMethod)


def soft_nms(
    boxes: ArrayLike,
    scores: ArrayLike,
    iou_threshold: float = 0.3,
    *,
    method: Literal["naive", "linear", "gaussian"] = "linear",
    sigma: float = 0.5,
    min_score: float = 1e-3,
    offset: int = 0,
    max_output_boxes: int | None = None,
    out: tuple[NDArray[Any], NDArray[Any]] | None = None,
    backend: Backend | None = None,
) -> tuple[NDArray[np.floating[Any]], NDArray[np.int64]]:
    """Take boxes by falling score, and lower the scores of those that overlap one that was taken.

    After each box that is taken, the score of every other one is multiplied by a weight that depends on the
    intersection over union (IoU) of the two::

        naive     0 where IoU >= iou_threshold, else 1
        linear    1 - IoU where IoU >= iou_threshold, else 1
        gaussian  exp(-IoU ** 2 / sigma)

    A box whose score has come to be below `min_score` is dropped.

    Parameters
    ----------
    boxes : array_like of float16, float32, float64 or an integer type, shape (num_boxes, 4)
        (x1, y1, x2, y2), in pixels or any other unit. Integers are taken as float64, an empty list as no boxes.
    scores : array_like of float16, float32 or float64, shape (num_boxes,)
        A box whose score is NaN or -inf is never taken.
    iou_threshold : float, default 0.3
        From 0 to 1; ``"gaussian"`` does not look at it.
    method : {"linear", "gaussian", "naive"}, default "linear"
        The weight.
    sigma : float, default 0.5
        Of ``"gaussian"``; above 0.
    min_score : float, default 1e-3
        The score that a box must keep. It is asked after each box that is taken: the first is taken whatever its score.
    offset : {0, 1}, default 0
        1 adds 1 to widths and heights, (x2 - x1) + 1, for corners that count whole pixels (as older detectors do).
    max_output_boxes : int, optional
        Maximum number of boxes that are taken; None for no limit.
    out : (numpy.ndarray, numpy.ndarray of int64), optional
        Where to write the results, of exactly their shapes and dtypes, C-contiguous.
    backend : {"cython", "numba", "cuda"}, optional
        None takes CUDA where an input lives on a GPU, else Cython.

    Returns
    -------
    dets : numpy.ndarray, shape (num_kept, 5)
        The boxes that were taken, in their order, and the scores that they had then: (x1, y1, x2, y2, score), in the
        wider dtype of `boxes` and `scores`.
    kept : numpy.ndarray of int64, shape (num_kept,)
        Their indices. On a tie the earlier box is taken first.

    Raises
    ------
    TypeError
        If an argument has a wrong dtype or type.
    ValueError
        If shapes do not fit, a number is out of range, or there is no such method.

    See Also
    --------
    nms : Drops what overlaps too much, whatever its score.

    Notes
    -----
    A box with x2 <= x1 or y2 <= y1, with a NaN, or with an area that is infinite or rounds to 0 in the dtype overlaps
    nothing. All is computed in the wider dtype of `boxes` and `scores`, at least float32.

    The definition is that of Soft-NMS [1]_ and of MMCV's ``soft_nms``, which on a tie takes a box that depends on what
    was dropped before.

    References
    ----------
    .. [1] Bodla et al., "Soft-NMS: Improving Object Detection With One Line of Code", ICCV 2017.

    Examples
    --------
    >>> import numpy as np
    >>> import detops
    >>> boxes = np.array([[0.0, 0.0, 10.0, 10.0], [0.0, 0.0, 10.0, 8.0], [20.0, 0.0, 30.0, 10.0]])
    >>> dets, kept = detops.soft_nms(boxes, np.array([0.9, 0.8, 0.7]))
    >>> kept
    array([0, 2, 1])
    >>> dets[:, 4].round(2)
    array([0.9 , 0.7 , 0.16])
    """
    call = Call(backend, boxes=boxes, scores=scores)
    dtype = _suppression.dtype_of(call)
    count = _suppression.count_of_set(call, 4)
    options = (
        _suppression.iou_threshold(iou_threshold, dtype),
        METHODS[_checks.choice("method", method, METHODS)],
        *_checks.in_range((_checks.real("sigma", sigma, positive=True),), dtype),
        *_checks.in_range((_checks.real("min_score", min_score),), dtype),
        _suppression.limit("max_output_boxes", max_output_boxes, count),
        _suppression.offset(offset),
    )
    dets, selected = call.space.empty((count, 5), dtype), call.space.empty((count,), _suppression.INT64)
    taken = 0
    if count and options[4]:
        found = call.space.empty((1,), _suppression.INT64)
        arrays = (call.cast("boxes", dtype), call.cast("scores", dtype))
        _registry.kernel("soft_nms", call.backend, dtype)(*arrays, *options, dets, selected, found)
        taken = call.space.to_host(found).item()
    wanted = np.result_type(_float64_for_integers(call["boxes"].dtype), call["scores"].dtype)
    results = call.results(
        out, ((taken, 5), _checks.native(wanted), dtype), ((taken,), _suppression.INT64, _suppression.INT64)
    )
    for source, target in zip((dets, selected), results.buffers, strict=True):
        call.space.copy(source[:taken], target)
    return results.deliver()


def _float64_for_integers(dtype: np.dtype) -> np.dtype:
    return dtype if dtype.kind == "f" else np.dtype(np.float64)
