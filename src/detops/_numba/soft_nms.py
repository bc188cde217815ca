"""Soft non-maximum suppression: the box of highest score is taken, the scores of all others are lowered, and so on."""

import numpy as np

from detops._core.iou import area_of_sides, shared_area, side_length
from detops._core.soft_nms import lowered_score, overlap_or_none, soft_weight
from detops._numba.parallel import inner, jit, read_only


@inner
def best_of(scores):
    """The first of the highest scores."""
    best = 0
    for i in range(scores.size):
        if scores[i] > scores[best]:
            best = i
    return best


@inner
def lower_scores(boxes, areas, scores, best, iou_threshold, method, sigma, min_score, offset):
    """Lower the scores of all boxes that are left by what they share with the best one."""
    dropped = scores.dtype.type(-np.inf)
    for i in range(scores.size):
        if scores[i] > dropped:
            shared = shared_area(
                boxes[best, 0],
                boxes[best, 1],
                boxes[best, 2],
                boxes[best, 3],
                boxes[i, 0],
                boxes[i, 1],
                boxes[i, 2],
                boxes[i, 3],
                offset,
            )
            overlap = overlap_or_none(shared, areas[best], areas[i])
            scores[i] = lowered_score(scores[i], soft_weight(overlap, method, iou_threshold, sigma), min_score, dropped)


@jit
def take_boxes(boxes, given, iou_threshold, method, sigma, min_score, limit, offset, dets, selected):
    """Take one box after the other; return how many."""
    dropped = given.dtype.type(-np.inf)
    scores = np.empty(given.size, given.dtype)
    areas = np.empty(given.size, given.dtype)
    for i in range(given.size):
        # Not NaN, which no comparison would ever find again.
        scores[i] = given[i] if given[i] > dropped else dropped
        areas[i] = area_of_sides(
            side_length(boxes[i, 0], boxes[i, 2], offset), side_length(boxes[i, 1], boxes[i, 3], offset)
        )
    for taken in range(limit):
        best = best_of(scores)
        if scores[best] == dropped:
            return taken
        for k in range(4):
            dets[taken, k] = boxes[best, k]
        dets[taken, 4] = scores[best]
        selected[taken] = best
        scores[best] = dropped
        lower_scores(boxes, areas, scores, best, iou_threshold, method, sigma, min_score, offset)
    return limit


def soft_nms(boxes, scores, iou_threshold, method, sigma, min_score, limit, offset, dets, selected, found):
    """Kernel of soft_nms."""
    real = boxes.dtype.type
    options = (real(iou_threshold), method, real(sigma), real(min_score), limit, real(offset))
    found[0] = take_boxes(read_only(boxes), read_only(scores), *options, dets, selected)
