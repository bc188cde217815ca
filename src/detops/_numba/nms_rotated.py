"""Non-maximum suppression of boxes that are turned by angles, with or without labels."""

import numpy as np

from detops._codes import BoxIouMode
from detops._numba.box_iou_rotated import measure, overlap
from detops._numba.nms import in_order
from detops._numba.parallel import ZERO, inner, jit, read_only

IOU = BoxIouMode.IOU.value


@inner
def suppressed(box, planes, labels, order, compared, threshold):
    """Whether one of the first boxes of compared, of the same label, overlaps a box too much."""
    for j in range(compared):
        i = order[j]
        if labels[i] == labels[box] and overlap(planes, i, planes, box, IOU) > threshold:
            return True
    return False


@jit
def select(order, boxes, labels, threshold, limit, clockwise):
    """Move the boxes that are kept to the head of order; return how many."""
    planes = measure(boxes, clockwise)
    compared = np.empty(min(limit, order.size), np.int64)
    count = ZERO
    selected = ZERO
    for at in range(order.size):
        if selected == limit:
            break
        box = order[at]
        if planes[6, box] > 0:
            if suppressed(box, planes, labels, compared, count, threshold):
                continue
            compared[count] = box
            count += 1
        order[selected] = box
        selected += 1
    return selected


def nms_rotated(boxes, scores, labels, iou_threshold, score_threshold, strict, limit, clockwise, selected, found):
    """Kernel of nms_rotated."""
    order = in_order(read_only(scores), score_threshold, strict)
    if labels is None:
        labels = np.zeros(len(scores), np.int64)
    found[0] = select(order, read_only(boxes), read_only(labels), iou_threshold, limit, clockwise)
    selected[: found[0]] = order[: found[0]]
