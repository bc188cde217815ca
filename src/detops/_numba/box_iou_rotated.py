"""Overlaps of turned boxes: of each with each, (rows, columns), or of pairs."""

import numpy as np
from numba.extending import register_jitable

from detops._core.rotated import bounds_meet, rotated_box, rotated_overlap
from detops._core.scalar import typed
from detops._numba.parallel import jit, parallel_for, read_only


@register_jitable
def measure_box(boxes, i, clockwise, planes):
    """Write a column of planes (9, boxes): center, cosine and sine of the angle, half sides, area, reach along x and y.

    The CUDA kernel calls this and ``overlap`` too.
    """
    planes[0, i], planes[1, i] = boxes[i, 0], boxes[i, 1]
    planes[2, i], planes[3, i], planes[4, i], planes[5, i], planes[6, i], planes[7, i], planes[8, i] = rotated_box(
        boxes[i, 2], boxes[i, 3], boxes[i, 4], clockwise
    )


@register_jitable
def overlap(a, i, b, j, mode):
    """How far a box of planes a overlaps one of planes b; most are apart."""
    x, y = b[0, j] - a[0, i], b[1, j] - a[1, i]
    if not bounds_meet(x, y, a[7, i] + b[7, j], a[8, i] + b[8, j]):
        return typed(0, x)
    return rotated_overlap(
        x, y, a[2, i], a[3, i], a[4, i], a[5, i], a[6, i], b[2, j], b[3, j], b[4, j], b[5, j], b[6, j], mode
    )


@jit
def measure(boxes, clockwise):
    """Boxes as planes."""
    planes = np.empty((9, boxes.shape[0]), boxes.dtype)
    for i in range(boxes.shape[0]):
        measure_box(boxes, i, clockwise, planes)
    return planes


@jit
def compare(begin, end, a, b, aligned, mode, out):
    """One item is a row of the result, which has one column where pairs are compared."""
    for i in range(begin, end):
        for column in range(out.shape[1]):
            out[i, column] = overlap(a, i, b, i if aligned else column, mode)


def box_iou_rotated(boxes_a, boxes_b, mode, clockwise, aligned, out):
    """Kernel of box_iou_rotated."""
    a, b = (measure(read_only(boxes), clockwise) for boxes in (boxes_a, boxes_b))
    table = out.reshape(len(out), -1)
    parallel_for(compare, len(table), 1 + 1024 // table.shape[1], (a, b, aligned, mode), table)
