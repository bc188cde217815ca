"""Overlaps of turned boxes: one item is one number of the result."""

from detops._core.rotated import bounds_meet, direction, reach, rotated_overlap, turned_area
from detops._core.scalar import typed
from detops._cuda.device import cuda, empty, jit, launch


@jit
def measure(boxes, clockwise, planes):
    """One item is a box; planes (9, boxes): center, cosine, sine, half sides, area, reach along x and y."""
    for i in range(cuda.grid(1), boxes.shape[0], cuda.gridsize(1)):
        width, height = boxes[i, 2], boxes[i, 3]
        half = typed(0.5, width)
        planes[0, i], planes[1, i] = boxes[i, 0], boxes[i, 1]
        planes[2, i], planes[3, i] = direction(boxes[i, 4], clockwise)
        planes[4, i], planes[5, i] = half * width, half * height
        planes[6, i] = turned_area(width, height, planes[2, i], planes[3, i])
        planes[7, i], planes[8, i] = reach(planes[2, i], planes[3, i], planes[4, i], planes[5, i])


@jit
def compare(a, b, aligned, mode, out):
    """One item is one number of the result, which is flat."""
    columns = b.shape[1]
    for item in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        i = item if aligned else item // columns
        j = item if aligned else item % columns
        x, y = b[0, j] - a[0, i], b[1, j] - a[1, i]
        out[item] = 0
        if bounds_meet(x, y, a[7, i] + b[7, j], a[8, i] + b[8, j]):
            out[item] = rotated_overlap(
                x, y,
                a[2, i], a[3, i], a[4, i], a[5, i], a[6, i],
                b[2, j], b[3, j], b[4, j], b[5, j], b[6, j], mode,
            )  # fmt: skip


def box_iou_rotated(boxes_a, boxes_b, mode, clockwise, aligned, out):
    """Kernel of box_iou_rotated."""
    planes = []
    for boxes in (boxes_a, boxes_b):
        planes.append(empty((9, boxes.shape[0]), boxes.dtype))
        launch(measure, boxes.shape[0], boxes, clockwise, planes[-1])
    launch(compare, out.size, *planes, aligned, mode, out.reshape(out.size))
