"""Non-maximum suppression of boxes that are turned by angles: as ``nms.py`` has it, with comparisons of their own."""

from numba.extending import register_jitable

from detops._codes import BoxIouMode
from detops._cuda.box_iou_rotated import measure
from detops._cuda.device import cuda, empty, jit, launch
from detops._cuda.nms import comparing, select, worked_off
from detops._numba.box_iou_rotated import overlap

IOU = BoxIouMode.IOU.value


@jit
def load_planes(planes, rows, loaded):
    """Planes of each candidate."""
    for i in range(cuda.grid(1), rows.size, cuda.gridsize(1)):
        for plane in range(loaded.shape[0]):
            loaded[plane, i] = planes[plane, rows[i]]


@register_jitable
def suppresses(loaded, i, j, threshold, offset):
    """Whether two candidates overlap too much; boxes that are turned know no offset."""
    return overlap(loaded, i, loaded, j, IOU) > threshold


find_bits, drop = comparing(suppresses)


@jit
def compare_within_chunks(loaded, segments, starts, threshold, bits):
    """One item is a candidate and a word of its chunk."""
    for item in range(cuda.grid(1), bits.size, cuda.gridsize(1)):
        find_bits(item, loaded, segments, starts, threshold, 0, bits)


@jit
def drop_later(chunk, loaded, segments, starts, threshold, alive):
    """One item is one candidate."""
    for i in range(cuda.grid(1), segments.size, cuda.gridsize(1)):
        drop(i, chunk, loaded, segments, starts, threshold, 0, alive)


def nms_rotated(boxes, scores, labels, iou_threshold, score_threshold, strict, limit, clockwise, selected, found):
    """Kernel of nms_rotated."""
    planes = empty((9, boxes.shape[0]), boxes.dtype)
    launch(measure, boxes.shape[0], boxes, clockwise, planes)
    real = boxes.dtype.type

    def load(rows):
        loaded = empty((9, rows.size), boxes.dtype)
        launch(load_planes, rows.size, planes, rows, loaded)
        return loaded

    def chosen(rows, segments):
        return worked_off(rows, segments, limit, load, compare_within_chunks, drop_later, real(iou_threshold))

    labels = None if labels is None else labels.copy_to_host()
    count = boxes.shape[0]
    select(scores.copy_to_host(), labels, real(score_threshold), strict, count, limit, chosen, selected, found)
