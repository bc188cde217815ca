"""Non-maximum suppression of one set of boxes, with or without labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detops.operators import _suppression
from detops.operators._call import Call
from detops.runtime._registry import Backend


def nms(
    boxes: ArrayLike,
    scores: ArrayLike,
    iou_threshold: float,
    *,
    score_threshold: float | None = None,
    max_output_boxes: int | None = None,
    offset: int = 0,
    pre_nms_top_k: int | None = None,
    out: NDArray[Any] | None = None,
    backend: Backend | None = None,
) -> NDArray[np.int64]:
    """Keep the boxes of highest score, without those that overlap a kept one too much.

    Boxes are taken by falling score; one is dropped where its intersection over union (IoU) with a box that was kept
    is above `iou_threshold`.

    Parameters
    ----------
    boxes : array_like of float16, float32, float64 or an integer type, shape (num_boxes, 4)
        (x1, y1, x2, y2), in pixels or any other unit. Integers are taken as float64, an empty list as no boxes.
    scores : array_like of float16, float32 or float64, shape (num_boxes,)
        A box whose score is NaN is never kept.
    iou_threshold : float
        From 0 to 1. An IoU that is equal to it suppresses nothing.
    score_threshold : float, optional
        Only boxes with a score above it take part; None for all.
    max_output_boxes : int, optional
        Maximum number of boxes that are kept; None for no limit.
    offset : {0, 1}, default 0
        1 adds 1 to widths and heights, (x2 - x1) + 1, for corners that count whole pixels (as older detectors do).
    pre_nms_top_k : int, optional
        Number of boxes that take part, those of highest score, on a tie the earlier; None for all.
    out : numpy.ndarray of int64, optional
        Where to write the result, of exactly its shape, C-contiguous.
    backend : {"cython", "numba", "cuda"}, optional
        None takes CUDA where an input lives on a GPU, else Cython.

    Returns
    -------
    numpy.ndarray of int64, shape (num_kept,)
        Indices of the boxes that are kept, by falling score; on a tie the earlier box comes first.

    Raises
    ------
    TypeError
        If an argument has a wrong dtype or type.
    ValueError
        If shapes do not fit, or a number is out of range.

    See Also
    --------
    batched_nms : Boxes of several labels at once.
    non_max_suppression : Batches and classes, as ONNX has it.

    Notes
    -----
    A box with x2 <= x1 or y2 <= y1, with a NaN, or with an area that is infinite or rounds to 0 in the dtype (float32:
    sides above 1e19 or below 1e-23) overlaps nothing: it is kept, and suppresses no other. IoUs are computed in the
    wider dtype of `boxes` and `scores`, at least float32, and the thresholds are rounded to it before they are
    compared. The definition is that of ``torchvision.ops.nms`` and of MMCV's operator ``NMS``.

    Examples
    --------
    >>> import numpy as np
    >>> import detops
    >>> boxes = np.array([[0.0, 0.0, 10.0, 10.0], [1.0, 0.0, 11.0, 10.0], [20.0, 0.0, 30.0, 10.0]])
    >>> detops.nms(boxes, np.array([0.8, 0.9, 0.7]), 0.5)
    array([1, 2])
    """
    call = Call(backend, boxes=boxes, scores=scores)
    return _nms(call, iou_threshold, score_threshold, pre_nms_top_k, max_output_boxes, offset, out)


def batched_nms(
    boxes: ArrayLike,
    scores: ArrayLike,
    labels: ArrayLike,
    iou_threshold: float,
    *,
    score_threshold: ArrayLike | None = None,
    max_output_boxes: int | None = None,
    offset: int = 0,
    pre_nms_top_k: int | None = None,
    out: NDArray[Any] | None = None,
    backend: Backend | None = None,
) -> NDArray[np.int64]:
    """Keep the boxes of highest score, without those that overlap a kept one of the same label too much.

    Labels are compared; no coordinate is shifted, so precision does not depend on how many labels there are.

    Parameters
    ----------
    boxes : array_like of float16, float32, float64 or an integer type, shape (num_boxes, 4)
        (x1, y1, x2, y2), in pixels or any other unit. Integers are taken as float64, an empty list as no boxes.
    scores : array_like of float16, float32 or float64, shape (num_boxes,)
        A box whose score is NaN is never kept.
    labels : array_like of an integer type, or of whole floats, shape (num_boxes,)
        Class, image, or whatever else sets boxes apart. Any integers of 64 bits, negative ones too.
    iou_threshold : float
        From 0 to 1. An IoU that is equal to it suppresses nothing.
    score_threshold : float or array_like of shape (num_labels,), optional
        Only boxes with a score above it take part; None for all. Where there is one for each label, the labels are from
        0 to num_labels - 1.
    max_output_boxes : int, optional
        Maximum number of boxes that are kept, of all labels together; None for no limit.
    offset : {0, 1}, default 0
        1 adds 1 to widths and heights, (x2 - x1) + 1, for corners that count whole pixels (as older detectors do).
    pre_nms_top_k : int, optional
        Number of boxes of each label that take part, those of highest score, on a tie the earlier; None for all.
    out : numpy.ndarray of int64, optional
        Where to write the result, of exactly its shape, C-contiguous.
    backend : {"cython", "numba", "cuda"}, optional
        None takes CUDA where an input lives on a GPU, else Cython.

    Returns
    -------
    numpy.ndarray of int64, shape (num_kept,)
        Indices of the boxes that are kept, by falling score over all labels; on a tie the earlier box comes first.

    Raises
    ------
    TypeError
        If an argument has a wrong dtype or type.
    ValueError
        If shapes do not fit, a number is out of range, or a label is not whole.

    See Also
    --------
    nms : All boxes against each other; its notes on odd boxes hold here too.

    Notes
    -----
    The definition is that of ``torchvision.ops.batched_nms`` and of MMCV's ``batched_nms``, which both shift the boxes
    of each label away from the others and may decide differently where that rounds.

    Examples
    --------
    >>> import numpy as np
    >>> import detops
    >>> boxes = np.array([[0.0, 0.0, 10.0, 10.0], [1.0, 0.0, 11.0, 10.0], [0.0, 1.0, 10.0, 11.0]])
    >>> detops.batched_nms(boxes, np.array([0.8, 0.9, 0.7]), np.array([3, 5, 3]), 0.5)
    array([1, 0])
    """
    call = Call(backend, boxes=boxes, scores=scores, labels=labels)
    return _nms(call, iou_threshold, score_threshold, pre_nms_top_k, max_output_boxes, offset, out)


def _nms(
    call: Call, iou_threshold: Any, score_threshold: Any, top_k: Any, max_boxes: Any, offset: Any, out: Any
) -> NDArray[np.int64]:
    dtype = _suppression.dtype_of(call)
    count = _suppression.count_of_set(call, 4)
    labels = thresholds = None
    if "labels" in call.given:
        labels = _suppression.labels_of(call, count)
        thresholds, least, strict = _suppression.score_thresholds(score_threshold, None, dtype)
    else:
        least, strict = _suppression.score_threshold(score_threshold, dtype)
    if thresholds is not None:
        _check_labels(call.space.to_host(call["labels"]), len(thresholds))
        thresholds = call.space.cast(thresholds, dtype)
    iou = _suppression.iou_threshold(iou_threshold, dtype)
    top_k = _suppression.limit("pre_nms_top_k", top_k, count)
    limit = _suppression.limit("max_output_boxes", max_boxes, count)
    options = (labels, thresholds, iou, least, strict, top_k, limit, _suppression.offset(offset))
    return _suppression.select("nms", call, dtype, options, limit, out)


def _check_labels(labels: np.ndarray, thresholds: int) -> None:
    if labels.size and not 0 <= labels.min() <= labels.max() < thresholds:
        wanted = f"labels from 0 to {thresholds - 1}, one for each score_threshold"
        raise ValueError(f"labels: expected {wanted}, got labels from {labels.min()} to {labels.max()}")
