"""nms_rotated inside compiled code."""

import numpy as np

from detops._numba.nms import in_order
from detops._numba.nms_rotated import select
from detops.numba import _kinds
from detops.numba._operator import operator
from detops.numba._suppression import limit_of, score_threshold_of
from detops.operators.box_iou_rotated import DOUBLE


@operator
def nms_rotated(
    boxes, scores, iou_threshold, labels=None, *, score_threshold=None, max_output_boxes=None, clockwise=True
):
    """``detops.nms_rotated`` for compiled code: the int64 indices of the boxes that are kept."""
    boxes = _kinds.array("boxes", boxes, ("num_boxes", "5"))
    scores = _kinds.array("scores", scores, ("num_boxes",))
    _kinds.coordinates("boxes", boxes)
    real = _kinds.floats("scores", scores).type
    as_boxes, as_scores = _kinds.cast(boxes, DOUBLE), _kinds.cast(scores, DOUBLE)
    iou, way = _kinds.real("iou_threshold", iou_threshold, between=(0, 1)), _kinds.flag("clockwise", clockwise)
    score, limit = score_threshold_of(score_threshold), limit_of("max_output_boxes", max_output_boxes)
    as_labels = _kinds.inlined(lambda labels, count: np.zeros(count, np.int64))
    if not _kinds.absent(labels):
        whole = _kinds.whole("labels", _kinds.array("labels", labels, ("num_boxes",)))
        as_labels = _kinds.inlined(lambda labels, count: whole(labels))

    def nms_rotated(boxes, scores, iou_threshold, labels, score_threshold, max_output_boxes, clockwise):
        if boxes.shape[1] != 5:
            raise ValueError("boxes: expected shape (num_boxes, 5)")
        if scores.shape[0] != boxes.shape[0]:
            raise ValueError("scores: expected shape (num_boxes,)")
        own = as_labels(labels, boxes.shape[0])
        if own.shape[0] != boxes.shape[0]:
            raise ValueError("labels: expected shape (num_boxes,)")
        threshold, least, most = iou(iou_threshold), score(score_threshold), limit(max_output_boxes, boxes.shape[0])
        order = in_order(as_scores(scores), np.float64(real(least[0])), least[1])
        return order[: select(order, as_boxes(boxes), own, threshold, most, way(clockwise))]

    return nms_rotated
