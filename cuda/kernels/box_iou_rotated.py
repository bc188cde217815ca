"""Overlaps of turned boxes: one item is one number of the result."""

from detops._cuda.device import cuda, empty, jit, launch
from detops._numba.box_iou_rotated import measure_box, overlap


@jit
def measure(boxes, clockwise, planes):
    """One item is a box."""
    for i in range(cuda.grid(1), boxes.shape[0], cuda.gridsize(1)):
        measure_box(boxes, i, clockwise, planes)


@jit
def compare(a, b, aligned, mode, out):
    """One item is one number of the result, which is flat."""
    columns = b.shape[1]
    for item in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        i = item if aligned else item // columns
        j = item if aligned else item % columns
        out[item] = overlap(a, i, b, j, mode)


def box_iou_rotated(boxes_a, boxes_b, mode, clockwise, aligned, out):
    """Kernel of box_iou_rotated."""
    planes = []
    for boxes in (boxes_a, boxes_b):
        planes.append(empty((9, boxes.shape[0]), boxes.dtype))
        launch(measure, boxes.shape[0], boxes, clockwise, planes[-1])
    launch(compare, out.size, *planes, aligned, mode, out.reshape(out.size))
