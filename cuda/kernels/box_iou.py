"""Overlaps of boxes: one item is one number of the result."""

from detops._codes import BoxIouMode
from detops._core.box_iou import area_or_flaw, aspect_angle, box_similarity
from detops._core.iou import side_length
from detops._core.scalar import typed
from detops._cuda.device import cuda, empty, jit, launch

CIOU = BoxIouMode.CIOU.value


@jit
def measure(boxes, offset, mode, planes):
    """One item is one box; planes are (6, boxes): corners, area, and for CIOU the angle of the aspect, else 0."""
    for i in range(cuda.grid(1), boxes.shape[0], cuda.gridsize(1)):
        for side in range(4):
            planes[side, i] = boxes[i, side]
        width = side_length(boxes[i, 0], boxes[i, 2], offset)
        height = side_length(boxes[i, 1], boxes[i, 3], offset)
        planes[4, i] = area_or_flaw(width, height)
        planes[5, i] = aspect_angle(width, height) if mode == CIOU else typed(0, width)


@jit
def compare(a, b, aligned, offset, mode, out):
    """One item is one number of the result, which is flat."""
    columns = b.shape[1]
    for item in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        i = item if aligned else item // columns
        j = item if aligned else item % columns
        out[item] = box_similarity(
            a[0, i], a[1, i], a[2, i], a[3, i], a[4, i],
            b[0, j], b[1, j], b[2, j], b[3, j], b[4, j],
            a[5, i] - b[5, j], offset, mode,
        )  # fmt: skip


def box_iou(boxes_a, boxes_b, mode, aligned, offset, out):
    """Kernel of box_iou."""
    added = out.dtype.type(offset)
    planes = []
    for boxes in (boxes_a, boxes_b):
        planes.append(empty((6, boxes.shape[0]), boxes.dtype))
        launch(measure, boxes.shape[0], boxes, added, mode, planes[-1])
    launch(compare, out.size, *planes, aligned, added, mode, out.reshape(out.size))
