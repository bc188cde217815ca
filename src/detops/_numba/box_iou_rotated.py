"""Overlaps of turned boxes: of each with each, (rows, columns), or of pairs."""

import numpy as np

from detops._core.rotated import bounds_meet, direction, reach, rotated_overlap, turned_area
from detops._numba.parallel import jit, parallel_for, read_only


@jit
def measure(boxes, clockwise):
    """Boxes as planes (9, boxes): center, cosine and sine of the angle, half sides, area, reach along x and y."""
    planes = np.empty((9, boxes.shape[0]), boxes.dtype)
    for i in range(boxes.shape[0]):
        planes[0, i], planes[1, i] = boxes[i, 0], boxes[i, 1]
        planes[2, i], planes[3, i] = direction(boxes[i, 4], clockwise)
        planes[4, i], planes[5, i] = 0.5 * boxes[i, 2], 0.5 * boxes[i, 3]
        planes[6, i] = turned_area(boxes[i, 2], boxes[i, 3], planes[2, i], planes[3, i])
        planes[7, i], planes[8, i] = reach(planes[2, i], planes[3, i], planes[4, i], planes[5, i])
    return planes


@jit
def compare(begin, end, a, b, aligned, mode, out):
    """One item is a row of the result, which has one column where pairs are compared."""
    for i in range(begin, end):
        for column in range(out.shape[1]):
            j = i if aligned else column
            x, y = b[0, j] - a[0, i], b[1, j] - a[1, i]
            out[i, column] = 0
            if bounds_meet(x, y, a[7, i] + b[7, j], a[8, i] + b[8, j]):
                out[i, column] = rotated_overlap(
                    x, y,
                    a[2, i], a[3, i], a[4, i], a[5, i], a[6, i],
                    b[2, j], b[3, j], b[4, j], b[5, j], b[6, j], mode,
                )  # fmt: skip


def box_iou_rotated(boxes_a, boxes_b, mode, clockwise, aligned, out):
    """Kernel of box_iou_rotated."""
    a, b = (measure(read_only(boxes), clockwise) for boxes in (boxes_a, boxes_b))
    table = out.reshape(len(out), -1)
    parallel_for(compare, len(table), 1 + 1024 // table.shape[1], (a, b, aligned, mode), table)
