"""What the operators of non-maximum suppression share inside compiled code: their options, and checks."""

import numpy as np

from detops.numba import _kinds
from detops.numba._kinds import inlined

ONE_SET = ("num_boxes", "4"), ("num_boxes",)


class Options:
    """Options that the operators share, checked, with functions for compiled code that make their arguments ready."""

    def __init__(self, axes, boxes, scores, iou_threshold, offset=0):
        boxes, scores = _kinds.array("boxes", boxes, axes[0]), _kinds.array("scores", scores, axes[1])
        dtype = np.result_type(_kinds.coordinates("boxes", boxes), _kinds.floats("scores", scores))
        self.element = dtype.type
        self.boxes, self.scores = _kinds.cast(boxes, dtype), _kinds.cast(scores, dtype)
        self.iou = _kinds.real("iou_threshold", iou_threshold, between=(0, 1))
        self.offset = _kinds.integer("offset", offset, 0, 1)


def score_threshold_of(got):
    """Return a function for the threshold and whether a score must be above it; none is minus infinity."""
    if _kinds.absent(got):
        return inlined(lambda value: (-np.inf, False))
    checked = _kinds.real("score_threshold", got, finite=False)

    @inlined
    def threshold(value):
        if value is None:
            return -np.inf, False
        return checked(value), True

    return threshold


def limit_of(name, got):
    """Return a function for how many of `count` boxes may be selected."""
    if _kinds.absent(got):
        return inlined(lambda value, count: count)
    checked = _kinds.integer(name, got, 0)

    @inlined
    def limit(value, count):
        if value is None:
            return count
        return min(checked(value), count)

    return limit


@inlined
def check_set(boxes, scores):
    if boxes.shape[1] != 4:
        raise ValueError("boxes: expected shape (num_boxes, 4)")
    if scores.shape[0] != boxes.shape[0]:
        raise ValueError("scores: expected shape (num_boxes,)")
