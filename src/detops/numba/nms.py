"""Non-maximum suppression inside compiled code."""

import numpy as np

from detops._numba import nms as kernels
from detops._numba.spread import jit


@jit
def _check(boxes, scores, iou_threshold, offset):
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise ValueError("boxes: expected shape (num_boxes, 4)")
    if scores.shape != (boxes.shape[0],):
        raise ValueError("scores: expected shape (num_boxes,)")
    if not 0 <= iou_threshold <= 1:
        raise ValueError("iou_threshold: expected a number from 0 to 1")
    if offset != 0 and offset != 1:
        raise ValueError("offset: expected 0 or 1")


@jit
def _in_order(scores, score_threshold):
    real = scores.dtype.type
    if score_threshold is None:
        return kernels.in_order(scores, real(-np.inf), False)
    return kernels.in_order(scores, real(score_threshold), True)


@jit
def _limit(max_output_boxes, count):
    if max_output_boxes is None:
        return count
    if max_output_boxes < 0:
        raise ValueError("max_output_boxes: expected at least 0")
    return min(max_output_boxes, count)


@jit
def nms(boxes, scores, iou_threshold, score_threshold=None, max_output_boxes=None, offset=0):
    """``detops.nms`` for compiled code: the int64 indices of the boxes that are kept."""
    _check(boxes, scores, iou_threshold, offset)
    real = boxes.dtype.type
    order = _in_order(scores, score_threshold)
    limit = _limit(max_output_boxes, order.size)
    return order[: kernels.select(order, boxes, real(iou_threshold), limit, 0, real(offset))]


@jit
def batched_nms(boxes, scores, labels, iou_threshold, score_threshold=None, max_output_boxes=None, offset=0):
    """``detops.batched_nms`` for compiled code: the int64 indices of the boxes that are kept."""
    _check(boxes, scores, iou_threshold, offset)
    if labels.shape != scores.shape:
        raise ValueError("labels: expected shape (num_boxes,)")
    real = boxes.dtype.type
    order = _in_order(scores, score_threshold)
    limit = _limit(max_output_boxes, order.size)
    return order[: kernels.select_labelled(order, boxes, labels, real(iou_threshold), order.size, limit, real(offset))]


@jit
def _select(boxes, scores, limit, iou_threshold, score_threshold, strict, form, offset):
    if boxes.ndim != 3 or boxes.shape[2] != 4:
        raise ValueError("boxes: expected shape (num_batches, num_boxes, 4)")
    if scores.ndim != 3 or scores.shape[0] != boxes.shape[0] or scores.shape[2] != boxes.shape[1]:
        raise ValueError("scores: expected shape (num_batches, num_classes, num_boxes)")
    if limit < 0:
        raise ValueError("max_output_boxes_per_class: expected at least 0")
    if not 0 <= iou_threshold <= 1:
        raise ValueError("iou_threshold: expected a number from 0 to 1")
    real = boxes.dtype.type
    batches, classes, count = scores.shape
    selected = np.empty((batches, classes, min(limit, count)), np.int64)
    found = np.zeros((batches, classes), np.int64)
    kernels.select_classes(
        0,
        batches * classes,
        boxes,
        scores,
        real(iou_threshold),
        scores.dtype.type(score_threshold),
        strict,
        count,
        form,
        real(offset),
        selected,
        found,
    )
    return selected, found


@jit
def non_max_suppression(
    boxes, scores, max_output_boxes_per_class=0, iou_threshold=0.0, score_threshold=None, center_point_box=False
):
    """``detops.non_max_suppression`` for compiled code: int64 rows (batch, class, box)."""
    form = 2 if center_point_box else 1
    if score_threshold is None:
        selected, found = _select(boxes, scores, max_output_boxes_per_class, iou_threshold, -np.inf, False, form, 0)
    else:
        selected, found = _select(
            boxes, scores, max_output_boxes_per_class, iou_threshold, score_threshold, True, form, 0
        )
    rows = np.empty((found.sum(), 3), np.int64)
    kernels.write_rows(selected, found, rows)
    return rows


@jit
def non_max_suppression_padded(
    boxes,
    scores,
    max_output_boxes_per_class=0,
    iou_threshold=0.0,
    score_threshold=0.0,
    center_point_box=False,
    offset=0,
):
    """``detops.non_max_suppression_padded`` for compiled code: int32 rows (batch, class, box), then rows of -1."""
    form = 2 if center_point_box else 0
    limit = scores.shape[2] if max_output_boxes_per_class == 0 else max_output_boxes_per_class
    threshold = score_threshold if score_threshold > 0 else -np.inf
    selected, found = _select(boxes, scores, limit, iou_threshold, threshold, False, form, offset)
    rows = np.empty((selected.size, 3), np.int32)
    kernels.write_rows(selected, found, rows)
    return rows
