"""Non-maximum suppression of boxes that are turned by angles."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detops.operators import _checks, _suppression
from detops.operators._call import Call
from detops.operators.box_iou_rotated import DOUBLE
from detops.runtime._registry import Backend


def nms_rotated(
    boxes: ArrayLike,
    scores: ArrayLike,
    iou_threshold: float,
    labels: ArrayLike | None = None,
    *,
    score_threshold: float | None = None,
    max_output_boxes: int | None = None,
    clockwise: bool = True,
    out: NDArray[Any] | None = None,
    backend: Backend | None = None,
) -> NDArray[np.int64]:
    """Keep the turned boxes of highest score, without those that overlap a kept one of the same label too much.

    Boxes are taken by falling score; one is dropped where its intersection over union (IoU) with a box that was kept,
    as :func:`box_iou_rotated` has it, is above `iou_threshold`.

    Parameters
    ----------
    boxes : array_like of float16, float32, float64 or an integer type, shape (num_boxes, 5)
        (center_x, center_y, width, height, angle), the angle in radians. An empty list is no boxes.
    scores : array_like of float16, float32 or float64, shape (num_boxes,)
        A box whose score is NaN is never kept.
    iou_threshold : float
        From 0 to 1. An IoU that is equal to it suppresses nothing.
    labels : array_like of an integer type, or of whole floats, shape (num_boxes,), optional
        Class, image, or whatever else sets boxes apart. None compares all boxes with each other.
    score_threshold : float, optional
        Only boxes with a score above it take part; None for all.
    max_output_boxes : int, optional
        Maximum number of boxes that are kept, of all labels together; None for no limit.
    clockwise : bool, default True
        Whether a positive angle turns a box clockwise in an image, whose y axis points down.
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
        If shapes do not fit, a number is out of range, or a label is not whole.

    See Also
    --------
    box_iou_rotated : The overlaps; its notes say which boxes overlap nothing. Those are kept, and suppress no other.
    batched_nms : Boxes along the axes.

    Notes
    -----
    IoUs are computed in float64 and compared with `iou_threshold` as it is; `score_threshold` is rounded to the dtype
    of `scores`. The definition is that of MMCV's ``nms_rotated`` [1]_, which returns the boxes and scores as well, and
    of the node NMSRotated of MMDeploy.

    References
    ----------
    .. [1] https://mmcv.readthedocs.io/en/latest/api.html#mmcv.ops.nms_rotated

    Examples
    --------
    >>> import numpy as np
    >>> import detops
    >>> boxes = np.array([[0.0, 0.0, 10.0, 2.0, 0.5], [0.0, 0.0, 10.0, 2.0, 0.6], [0.0, 0.0, 10.0, 2.0, 2.0]])
    >>> detops.nms_rotated(boxes, np.array([0.8, 0.9, 0.7]), 0.5)
    array([1, 2])
    """
    given = {"boxes": boxes, "scores": scores} | ({} if labels is None else {"labels": labels})
    call = Call(backend, **given)
    call.check_dtype(_checks.COORDINATES, "boxes")
    of_scores = call.check_dtype(_checks.FLOATS, "scores")
    count = _suppression.count_of_set(call, 5)
    own = None if labels is None else _suppression.labels_of(call, count)
    iou = _suppression.iou_threshold(iou_threshold, DOUBLE)
    least, strict = _suppression.score_threshold(score_threshold, of_scores)
    limit = _suppression.limit("max_output_boxes", max_output_boxes, count)
    turned = _checks.flag("clockwise", clockwise)
    return _suppression.select("nms_rotated", call, DOUBLE, (own, iou, least, strict, limit, turned), limit, out)
