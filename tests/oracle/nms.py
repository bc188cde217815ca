"""Non-maximum suppression, one pair of boxes at a time.

The functions named as in the library take its arguments and compute in float64. ``greedy`` computes in the type of the
boxes that it is given, for tests that must know how the last bit is rounded.
"""

import numpy as np


def iou(a, b, offset=0):
    """Intersection over union of (x1, y1, x2, y2), 0 where it is not defined."""
    zero, one = a.dtype.type(0), a.dtype.type(offset)
    sides = [(box[2] - box[0] + one, box[3] - box[1] + one) for box in (a, b)]
    areas = [width * height if width > 0 and height > 0 else zero for width, height in sides]
    if not all(0 < area < np.inf for area in areas):
        return zero
    width = min(a[2], b[2]) - max(a[0], b[0]) + one
    height = min(a[3], b[3]) - max(a[1], b[1]) + one
    if width <= 0 or height <= 0:
        return zero
    shared = width * height
    return shared / (areas[0] + areas[1] - shared)


def greedy(
    boxes, scores, iou_threshold, passes=lambda score, label: True, limit=None, offset=0, labels=None, top_k=None
):
    """Indices kept, by falling score."""
    labels = np.zeros(len(scores), int) if labels is None else labels
    candidates = [i for i, score in enumerate(scores) if not np.isnan(score) and passes(score, labels[i])]
    taken, kept = [], []
    for i in sorted(candidates, key=lambda i: (-scores[i], i)):
        if top_k is not None and sum(labels[j] == labels[i] for j in taken) >= top_k:
            continue
        taken.append(i)
        rivals = [j for j in kept if labels[j] == labels[i]]
        if not any(iou(boxes[j], boxes[i], offset) > iou_threshold for j in rivals):
            kept.append(i)
    return kept if limit is None else kept[:limit]


def _above(threshold):
    if threshold is None:
        return lambda score, label: True
    return lambda score, label: score > (threshold if np.ndim(threshold) == 0 else threshold[label])


def _mmcv(threshold):
    def passes(score, label):
        own = threshold if np.ndim(threshold) == 0 else threshold[label]
        return not (own > 0 and score < own)

    return passes


def _float64(*arrays):
    return (np.asarray(array, np.float64) for array in arrays)


def nms(boxes, scores, iou_threshold, *, score_threshold=None, max_output_boxes=None, offset=0, pre_nms_top_k=None):
    boxes, scores = _float64(boxes, scores)
    passes = _above(score_threshold)
    kept = greedy(boxes, scores, iou_threshold, passes, max_output_boxes, offset, top_k=pre_nms_top_k)
    return np.array(kept, np.int64)


def batched_nms(
    boxes,
    scores,
    labels,
    iou_threshold,
    *,
    score_threshold=None,
    max_output_boxes=None,
    offset=0,
    pre_nms_top_k=None,
):
    boxes, scores = _float64(boxes, scores)
    passes = _above(score_threshold)
    kept = greedy(boxes, scores, iou_threshold, passes, max_output_boxes, offset, labels, pre_nms_top_k)
    return np.array(kept, np.int64)


def _from_center(boxes):
    x, y, width, height = np.moveaxis(boxes, -1, 0)
    return np.stack([x - width / 2, y - height / 2, x + width / 2, y + height / 2], -1)


def _select(boxes, scores, iou_threshold, passes, limit, offset, top_k):
    rows = []
    for b, c in np.ndindex(*scores.shape[:2]):
        labels = np.full(boxes.shape[1], c)
        kept = greedy(boxes[b], scores[b, c], iou_threshold, passes, limit, offset, labels, top_k)
        rows += [(b, c, i) for i in kept]
    return np.array(rows, np.int64).reshape(len(rows), 3)


def _best(rows, scores, total):
    """The rows that are among the `total` of highest score in their batch."""
    if total is None:
        return rows
    keys = [(row[0], -scores[tuple(row)], *row[1:]) for row in rows]
    places = [sum(other[0] == key[0] and other < key for other in keys) for key in keys]
    return rows[np.array(places, int) < total]


def non_max_suppression(
    boxes,
    scores,
    max_output_boxes_per_class=0,
    iou_threshold=0.0,
    score_threshold=None,
    *,
    center_point_box=False,
    pre_nms_top_k=None,
    max_output_boxes_total=None,
):
    boxes, scores = _float64(boxes, scores)
    if center_point_box:
        boxes = _from_center(boxes)
    else:
        boxes = np.concatenate(
            [np.minimum(boxes[..., :2], boxes[..., 2:]), np.maximum(boxes[..., :2], boxes[..., 2:])], -1
        )
    passes = _above(score_threshold)
    selected = _select(boxes, scores, iou_threshold, passes, max_output_boxes_per_class, 0, pre_nms_top_k)
    return _best(selected, scores, max_output_boxes_total)


def non_max_suppression_padded(
    boxes,
    scores,
    max_output_boxes_per_class=0,
    iou_threshold=0.0,
    score_threshold=0.0,
    *,
    center_point_box=False,
    offset=0,
    pre_nms_top_k=None,
    max_output_boxes_total=None,
):
    boxes, scores = _float64(boxes, scores)
    if center_point_box:
        boxes = _from_center(boxes)
    limit = min(max_output_boxes_per_class or boxes.shape[1], boxes.shape[1])
    if pre_nms_top_k is not None:
        limit = min(limit, pre_nms_top_k)

    selected = _select(boxes, scores, iou_threshold, _mmcv(score_threshold), limit, offset, pre_nms_top_k)
    selected = _best(selected, scores, max_output_boxes_total)
    total = scores.shape[1] * limit
    if max_output_boxes_total is not None:
        total = min(total, max_output_boxes_total)
    rows = np.full((scores.shape[0] * total, 3), -1, np.int32)
    rows[: len(selected)] = selected
    return rows
