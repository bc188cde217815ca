"""Overlaps of turned boxes, one pair at a time: one box is clipped by the sides of the other, a side after another."""

import math

import numpy as np


def _corners(box, origin, way):
    x, y, width, height, angle = box
    c, s = math.cos(angle), way * math.sin(angle)
    return [
        (x - origin[0] + (u * width * c - v * height * s) / 2, y - origin[1] + (u * width * s + v * height * c) / 2)
        for u, v in ((-1, -1), (1, -1), (1, 1), (-1, 1))
    ]


def _cross(o, p, q):
    return (p[0] - o[0]) * (q[1] - o[1]) - (p[1] - o[1]) * (q[0] - o[0])


def _clipped(polygon, p, q):
    """The part of a polygon that lies on the inner side of the line from p to q."""
    kept = []
    for start, end in zip(polygon[-1:] + polygon[:-1], polygon, strict=True):
        before, after = _cross(p, q, start), _cross(p, q, end)
        if (before >= 0) != (after >= 0):
            t = before / (before - after)
            kept.append((start[0] + t * (end[0] - start[0]), start[1] + t * (end[1] - start[1])))
        if after >= 0:
            kept.append(end)
    return kept


def shared_area(a, b, way):
    clip, polygon = _corners(a, a[:2], way), _corners(b, a[:2], way)
    for i in range(4):
        polygon = _clipped(polygon, clip[i], clip[(i + 1) % 4])
        if not polygon:
            return 0.0
    return abs(sum(_cross((0, 0), p, q) for p, q in zip(polygon, polygon[1:] + polygon[:1], strict=True))) / 2


def _area(box):
    return box[2] * box[3] if all(map(math.isfinite, box)) and min(box[2:4]) > 0 else 0.0


def pair(a, b, mode="iou", clockwise=True):
    area_a, area_b = _area(a), _area(b)
    if not (0 < area_a < math.inf and 0 < area_b < math.inf):
        return 0.0
    shared = shared_area(a, b, 1 if clockwise else -1)
    return shared / area_a if mode == "iof" else shared / (area_a + area_b - shared)


def box_iou_rotated(boxes_a, boxes_b, *, mode="iou", clockwise=True, aligned=False):
    a, b = (np.asarray(boxes, np.float64).reshape(-1, 5).tolist() for boxes in (boxes_a, boxes_b))
    if aligned:
        return np.array([pair(one, other, mode, clockwise) for one, other in zip(a, b, strict=True)], np.float64)
    return np.array([[pair(one, other, mode, clockwise) for other in b] for one in a], np.float64).reshape(
        len(a), len(b)
    )
