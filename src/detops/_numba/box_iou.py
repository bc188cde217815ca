"""Overlaps of boxes: of each with each, (rows, columns), or of pairs."""

import numpy as np

from detops._codes import BoxIouMode
from detops._core.box_iou import area_or_flaw, aspect_angle, box_similarity
from detops._core.iou import side_length
from detops._numba.parallel import inner, jit, parallel_for, read_only

CIOU = BoxIouMode.CIOU.value


@jit
def measure(boxes, offset, mode):
    """Boxes as planes (6, boxes): corners, area, and for CIOU the angle of the aspect, else 0."""
    planes = np.zeros((6, boxes.shape[0]), boxes.dtype)
    for i in range(boxes.shape[0]):
        for side in range(4):
            planes[side, i] = boxes[i, side]
        width = side_length(boxes[i, 0], boxes[i, 2], offset)
        height = side_length(boxes[i, 1], boxes[i, 3], offset)
        planes[4, i] = area_or_flaw(width, height)
        if mode == CIOU:
            planes[5, i] = aspect_angle(width, height)
    return planes


@inner
def compare_row(a, i, step, b, first, end, offset, mode, out):
    """Boxes of b from the first to the end with those of a that are so far apart, from the i-th on."""
    for j in range(first, end):
        k = i + step * (j - first)
        out[j] = box_similarity(
            a[0, k], a[1, k], a[2, k], a[3, k], a[4, k],
            b[0, j], b[1, j], b[2, j], b[3, j], b[4, j],
            a[5, k] - b[5, j], offset, mode,
        )  # fmt: skip


@jit
def compare_all(begin, end, a, b, offset, mode, out):
    """One item is a row."""
    for i in range(begin, end):
        compare_row(a, i, 0, b, 0, b.shape[1], offset, mode, out[i])


@jit
def compare_pairs(begin, end, a, b, offset, mode, out):
    """One item is a pair."""
    compare_row(a, begin, 1, b, begin, end, offset, mode, out)


def box_iou(boxes_a, boxes_b, mode, aligned, offset, out):
    """Kernel of box_iou."""
    added = out.dtype.type(offset)
    reads = (measure(read_only(boxes_a), added, mode), measure(read_only(boxes_b), added, mode), added, mode)
    if aligned:
        parallel_for(compare_pairs, len(out), 16384, reads, out)
    else:
        parallel_for(compare_all, len(out), 1 + 16384 // out.shape[1], reads, out)
