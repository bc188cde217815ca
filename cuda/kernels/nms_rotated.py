"""Non-maximum suppression of boxes that are turned by angles: as ``nms.py`` has it, with comparisons of their own."""

from numba.extending import register_jitable

from detops._codes import BoxIouMode
from detops._core.rotated import bounds_meet, rotated_overlap
from detops._cuda.box_iou_rotated import measure
from detops._cuda.device import cuda, empty, jit, launch
from detops._cuda.nms import BITS, CHUNK, WORDS, select, worked_off

IOU = BoxIouMode.IOU.value


@jit
def load_planes(planes, rows, loaded):
    """Planes of each candidate."""
    for i in range(cuda.grid(1), rows.size, cuda.gridsize(1)):
        for plane in range(loaded.shape[0]):
            loaded[plane, i] = planes[plane, rows[i]]


@register_jitable
def suppresses(loaded, i, j, threshold):
    """Whether two candidates overlap too much."""
    x, y = loaded[0, j] - loaded[0, i], loaded[1, j] - loaded[1, i]
    if not bounds_meet(x, y, loaded[7, i] + loaded[7, j], loaded[8, i] + loaded[8, j]):
        return False
    overlap = rotated_overlap(
        x, y,
        loaded[2, i], loaded[3, i], loaded[4, i], loaded[5, i], loaded[6, i],
        loaded[2, j], loaded[3, j], loaded[4, j], loaded[5, j], loaded[6, j], IOU,
    )  # fmt: skip
    return overlap > threshold


@jit
def compare_within_chunks(loaded, segments, starts, threshold, bits):
    """One item is a candidate and a word of its chunk: a bit for each later candidate that it would suppress."""
    for item in range(cuda.grid(1), bits.size, cuda.gridsize(1)):
        i, word = item // WORDS, item % WORDS
        start, end = starts[segments[i]], starts[segments[i] + 1]
        first = start + (i - start) // CHUNK * CHUNK + word * BITS
        found = 0
        for bit in range(BITS):
            j = first + bit
            if i < j < end and suppresses(loaded, i, j, threshold):
                found |= 1 << bit
        bits[i, word] = found


@jit
def drop_later(chunk, loaded, segments, starts, threshold, alive):
    """One item is one candidate: it is dropped where a candidate that the chunk has kept suppresses it."""
    for i in range(cuda.grid(1), segments.size, cuda.gridsize(1)):
        first = starts[segments[i]] + chunk * CHUNK
        if i < first + CHUNK:
            continue
        for j in range(first, first + CHUNK):
            if alive[i] and alive[j] and suppresses(loaded, j, i, threshold):
                alive[i] = 0


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
