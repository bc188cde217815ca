"""Non-maximum suppression of every class of every batch, as the operators of ONNX and MMCV have it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detops._codes import BoxForm
from detops.operators import _checks, _suppression
from detops.operators._call import Call
from detops.runtime import _registry
from detops.runtime._registry import Backend


def non_max_suppression(
    boxes: ArrayLike,
    scores: ArrayLike,
    max_output_boxes_per_class: int = 0,
    iou_threshold: float = 0.0,
    score_threshold: ArrayLike | None = None,
    *,
    center_point_box: bool = False,
    pre_nms_top_k: int | None = None,
    max_output_boxes_total: int | None = None,
    out: NDArray[Any] | None = None,
    backend: Backend | None = None,
) -> NDArray[np.int64]:
    """Select boxes by non-maximum suppression for every batch and class: ONNX NonMaxSuppression.

    Boxes are taken by falling score; one is dropped where its intersection over union (IoU) with a selected box of
    the same batch and class is above `iou_threshold`.

    Parameters
    ----------
    boxes : array_like of float16, float32, float64 or an integer type, shape (num_batches, num_boxes, 4)
        (y1, x1, y2, x2), where the corners are those of either diagonal in either order; with `center_point_box`
        (x_center, y_center, width, height). Integers are taken as float64.
    scores : array_like of float16, float32 or float64, shape (num_batches, num_classes, num_boxes)
        A box whose score is NaN is never selected.
    max_output_boxes_per_class : int, default 0
        Maximum number of boxes for each class of each batch. 0, the default, selects nothing.
    iou_threshold : float, default 0
        From 0 to 1. An IoU that is equal to it suppresses nothing.
    score_threshold : float or array_like of shape (num_classes,), optional
        Only boxes with a score above it, or that of their class, take part; None, the default, for all.
    center_point_box : bool, default False
        How `boxes` are given.
    pre_nms_top_k : int, optional
        Number of boxes that take part for each class of each batch, those of highest score, on a tie the earlier;
        None for all.
    max_output_boxes_total : int, optional
        Maximum number of boxes for each batch, those of highest score over all classes, on a tie those of the lower
        class; None for no limit.
    out : numpy.ndarray of int64, optional
        Where to write the result, of exactly its shape, C-contiguous.
    backend : {"cython", "numba", "cuda"}, optional
        None takes CUDA where an input lives on a GPU, else Cython.

    Returns
    -------
    numpy.ndarray of int64, shape (num_selected, 3)
        Rows (batch, class, box) in order of batch, class and falling score; on a tie the earlier box comes first.

    Raises
    ------
    TypeError
        If an argument has a wrong dtype or type.
    ValueError
        If shapes do not fit, or a number is out of range.

    See Also
    --------
    non_max_suppression_padded : MMCV's operator of that name.
    nms : One set of boxes.

    Notes
    -----
    A box without area (a negative width or height among them), with a NaN, or with an area that is infinite or rounds
    to 0 in the dtype overlaps nothing: it is selected, and suppresses no other. IoUs are computed in the wider dtype of
    `boxes` and `scores`, at least float32, and the thresholds are rounded to it before they are compared. The
    definition is that of ONNX NonMaxSuppression, versions 10 and 11, as ONNX's reference and ONNX Runtime read it: a
    score equal to the threshold is dropped.

    Examples
    --------
    >>> import numpy as np
    >>> import detops
    >>> boxes = np.array([[[0.0, 0.0, 10.0, 10.0], [0.0, 1.0, 10.0, 11.0], [0.0, 30.0, 10.0, 20.0]]])
    >>> scores = np.array([[[0.8, 0.9, 0.7], [0.1, 0.2, 0.3]]])
    >>> detops.non_max_suppression(boxes, scores, 2, 0.5, 0.15)
    array([[0, 0, 1],
           [0, 0, 2],
           [0, 1, 2],
           [0, 1, 1]])
    """
    call = Call(backend, boxes=boxes, scores=scores)
    centered = _checks.flag("center_point_box", center_point_box)
    form = (BoxForm.CENTER_AND_SIZE if centered else BoxForm.CORNERS_IN_ANY_ORDER).value
    limit = _checks.integer("max_output_boxes_per_class", max_output_boxes_per_class, at_least=0)
    limits = (limit, pre_nms_top_k, max_output_boxes_total)
    selected, found, _ = _select(call, limits, iou_threshold, score_threshold, True, form, 0.0)
    return _rows(call, selected, found, int(call.space.to_host(found).sum()), _suppression.INT64, out)


def non_max_suppression_padded(
    boxes: ArrayLike,
    scores: ArrayLike,
    max_output_boxes_per_class: int = 0,
    iou_threshold: float = 0.0,
    score_threshold: ArrayLike = 0.0,
    *,
    center_point_box: bool = False,
    offset: int = 0,
    pre_nms_top_k: int | None = None,
    max_output_boxes_total: int | None = None,
    out: NDArray[Any] | None = None,
    backend: Backend | None = None,
) -> NDArray[np.int32]:
    """Select boxes by non-maximum suppression for every batch and class: MMCV's NonMaxSuppression.

    As :func:`non_max_suppression`, with a result whose size depends on the shapes alone.

    Parameters
    ----------
    boxes : array_like of float16, float32, float64 or an integer type, shape (num_batches, num_boxes, 4)
        (x1, y1, x2, y2), where x2 < x1 or y2 < y1 means a box without area; with `center_point_box`
        (x_center, y_center, width, height). Integers are taken as float64.
    scores : array_like of float16, float32 or float64, shape (num_batches, num_classes, num_boxes)
        A box whose score is NaN is never selected.
    max_output_boxes_per_class : int, default 0
        Maximum number of boxes for each class of each batch. 0, the default, sets no limit.
    iou_threshold : float, default 0
        From 0 to 1. An IoU that is equal to it suppresses nothing.
    score_threshold : float or array_like of shape (num_classes,), default 0
        Where it, or that of the class, is above 0, boxes with a score below it are dropped (one that is equal stays).
    center_point_box : bool, default False
        How `boxes` are given.
    offset : {0, 1}, default 0
        1 adds 1 to widths and heights, (x2 - x1) + 1, for corners that count whole pixels (as older detectors do).
    pre_nms_top_k : int, optional
        Number of boxes that take part for each class of each batch, those of highest score, on a tie the earlier;
        None for all.
    max_output_boxes_total : int, optional
        Maximum number of boxes for each batch, those of highest score over all classes, on a tie those of the lower
        class; None for no limit.
    out : numpy.ndarray of int32, optional
        Where to write the result: its shape, C-contiguous.
    backend : {"cython", "numba", "cuda"}, optional
        None takes CUDA where an input lives on a GPU, else Cython.

    Returns
    -------
    numpy.ndarray of int32, shape (num_batches * total, 3)
        Rows (batch, class, box) in order of batch, class and falling score, then rows of -1. On a tie the earlier box
        comes first. The total is `max_output_boxes_total`, or, where that is less, num_classes times the least of
        `max_output_boxes_per_class`, `pre_nms_top_k` and num_boxes.

    Raises
    ------
    TypeError
        If an argument has a wrong dtype or type.
    ValueError
        If shapes do not fit, or a number is out of range.

    See Also
    --------
    non_max_suppression : ONNX's operator, which reads its limit and its score threshold differently.

    Notes
    -----
    Odd boxes are treated as by :func:`non_max_suppression`. The definition is that of MMCV's custom operator
    ``NonMaxSuppression``. MMCV's TensorRT plugin repeats the box of highest score in place of those below the score
    threshold; here, as in its text, they are left out.

    Examples
    --------
    >>> import numpy as np
    >>> import detops
    >>> boxes = np.array([[[0.0, 0.0, 10.0, 10.0], [1.0, 0.0, 11.0, 10.0], [20.0, 0.0, 30.0, 10.0]]])
    >>> detops.non_max_suppression_padded(boxes, np.array([[[0.8, 0.9, 0.7]]]), iou_threshold=0.5)
    array([[ 0,  0,  1],
           [ 0,  0,  2],
           [-1, -1, -1]], dtype=int32)
    """
    call = Call(backend, boxes=boxes, scores=scores)
    centered = _checks.flag("center_point_box", center_point_box)
    form = (BoxForm.CENTER_AND_SIZE if centered else BoxForm.CORNERS).value
    limit = _checks.integer("max_output_boxes_per_class", max_output_boxes_per_class, at_least=0) or None
    added = _suppression.offset(offset)
    limits = (limit, pre_nms_top_k, max_output_boxes_total)
    selected, found, total = _select(call, limits, iou_threshold, score_threshold, False, form, added)
    return _rows(call, selected, found, len(selected) * total, np.dtype(np.int32), out)


def _select(
    call: Call,
    limits: tuple[int | None, Any, Any],
    iou_threshold: Any,
    score_threshold: Any,
    strict: bool,
    form: int,
    offset: float,
) -> tuple[Any, Any, int]:
    """Return the boxes selected for each batch and class, how many they are, and how many there may be in a batch.

    The limits are those of each class, of the candidates of each class, and of each batch. A score has to be above its
    threshold where that is strict; else it may be equal to it, and a threshold that is not above 0 is none.
    """
    int64 = _suppression.INT64
    dtype = _suppression.dtype_of(call)
    _checks.shape("boxes", call["boxes"].shape, ("num_batches", "num_boxes", 4))
    batches, count = call["boxes"].shape[:2]
    _checks.shape("scores", call["scores"].shape, (batches, "num_classes", count))
    classes = call["scores"].shape[1]
    iou = _suppression.iou_threshold(iou_threshold, dtype)
    thresholds, least, strict = _suppression.score_thresholds(score_threshold, classes, dtype, strict)
    top_k = _suppression.limit("pre_nms_top_k", limits[1], count)
    limit = top_k if limits[0] is None else min(limits[0], top_k)
    total = _suppression.limit("max_output_boxes_total", limits[2], classes * limit)
    limit = min(limit, total)
    selected = call.space.empty((batches, classes, limit), int64)
    if not selected.size:
        return selected, call.space.empty((0,), int64), total
    found = call.space.empty((batches, classes), int64)
    boxes, scores = call.cast("boxes", dtype), call.cast("scores", dtype)
    if thresholds is not None:
        thresholds = call.space.cast(thresholds, dtype)
    options = (thresholds, iou, least, strict, top_k, form, offset)
    _registry.kernel("non_max_suppression", call.backend, dtype)(boxes, scores, *options, selected, found)
    if total < classes * limit:
        _registry.kernel("best_of_classes", call.backend, dtype)(scores, selected, total, found)
    return selected, found, total


def _rows(call: Call, selected: Any, found: Any, rows: int, dtype: np.dtype, out: Any) -> np.ndarray:
    results = call.results(out, ((rows, 3), dtype, dtype))
    if rows:
        _registry.kernel("selected_rows", call.backend, np.dtype(np.float32))(selected, found, *results.buffers)
    return results.deliver()
