"""Overlaps of boxes, one pair at a time."""

import math

import numpy as np


def _length(low, high, offset):
    return float(high) - float(low) + offset


class _Box:
    """A box (x1, y1, x2, y2) with its measures."""

    def __init__(self, numbers, offset):
        self.x1, self.y1, self.x2, self.y2 = map(float, numbers)
        self.width, self.height = _length(self.x1, self.x2, offset), _length(self.y1, self.y2, offset)
        self.has_place = 0 <= self.width < math.inf and 0 <= self.height < math.inf
        self.area = self.width * self.height if self.has_place else 0.0


def _aspect(a, b):
    """CIoU's v; 0 where one is a point."""
    if 0 == a.width == a.height or 0 == b.width == b.height:
        return 0.0
    return 4 / math.pi**2 * (math.atan2(a.width, a.height) - math.atan2(b.width, b.height)) ** 2


def _pair(numbers_a, numbers_b, mode, offset):
    a, b = _Box(numbers_a, offset), _Box(numbers_b, offset)
    shared = 0.0
    if a.area > 0 and b.area > 0:
        width = _length(max(a.x1, b.x1), min(a.x2, b.x2), offset)
        height = _length(max(a.y1, b.y1), min(a.y2, b.y2), offset)
        shared = max(width, 0) * max(height, 0)
    if mode == "iof":
        return shared / a.area if shared else 0.0
    union = a.area + b.area - shared
    iou = shared / union if shared else 0.0
    if mode == "iou":
        return iou
    if not (a.has_place and b.has_place):
        return -1.0
    width = _length(min(a.x1, b.x1), max(a.x2, b.x2), offset)
    height = _length(min(a.y1, b.y1), max(a.y2, b.y2), offset)
    if mode == "giou":
        hull = width * height
        return iou - (hull - union) / hull if hull else iou
    diagonal = width**2 + height**2
    apart = ((a.x1 + a.x2) / 2 - (b.x1 + b.x2) / 2) ** 2 + ((a.y1 + a.y2) / 2 - (b.y1 + b.y2) / 2) ** 2
    diou = iou - apart / diagonal if diagonal else iou
    if mode == "diou":
        return diou
    v = _aspect(a, b)
    return diou - v * v / (1 - iou + v) if v else diou


def box_iou(boxes_a, boxes_b, *, mode="iou", aligned=False, offset=0):
    a, b = np.asarray(boxes_a, np.float64).reshape(-1, 4), np.asarray(boxes_b, np.float64).reshape(-1, 4)
    if aligned:
        return np.array([_pair(one, other, mode, offset) for one, other in zip(a, b, strict=True)], np.float64)
    return np.array([[_pair(one, other, mode, offset) for other in b] for one in a], np.float64).reshape(len(a), len(b))
