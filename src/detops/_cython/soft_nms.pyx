"""Soft non-maximum suppression: the box of highest score is taken, the scores of all others are lowered, and so on."""

from libc.math cimport INFINITY
from libc.string cimport memcpy

include "scalar.pxi"
include "buffers.pxi"
include "parallel_for.pxi"
include "allocate.pxi"
include "block_channels.pxi"
include "soft_nms.pxi"
include "../_core/iou.py"
include "../_core/box_iou.py"
include "../_core/soft_nms.py"


cdef enum:
    # Boxes that are compared side by side.
    LANES = 16
    # A column for each of the corners, the area and the score.
    COLUMNS = 6
    # Boxes that are taken until those that are left are counted again.
    EVERY = 8


cdef struct Boxes:
    # Of the boxes that are left: those that are dropped or taken have a score of -inf, until the others move together.
    # The columns lie one behind the other, filled up to a whole number of lanes.
    real* x1
    real* y1
    real* x2
    real* y2
    real* area
    real* score
    long long* index
    Py_ssize_t count


cdef inline Py_ssize_t whole_lanes(Py_ssize_t count) noexcept nogil:
    return (count + LANES - 1) // LANES * LANES


cdef void load(const SoftNms* nms, void* memory, Boxes* boxes) noexcept nogil:
    cdef Py_ssize_t length = whole_lanes(nms.count), i
    cdef real offset = <real> nms.offset
    boxes.index = <long long*> memory
    boxes.x1 = <real*> (boxes.index + length)
    boxes.y1, boxes.x2, boxes.y2 = boxes.x1 + length, boxes.x1 + 2 * length, boxes.x1 + 3 * length
    boxes.area, boxes.score = boxes.x1 + 4 * length, boxes.x1 + 5 * length
    boxes.count = length
    for i in range(nms.count):
        boxes.x1[i], boxes.y1[i] = nms.boxes[4 * i], nms.boxes[4 * i + 1]
        boxes.x2[i], boxes.y2[i] = nms.boxes[4 * i + 2], nms.boxes[4 * i + 3]
        boxes.area[i] = area_of_sides(side_length(boxes.x1[i], boxes.x2[i], offset),
                                      side_length(boxes.y1[i], boxes.y2[i], offset))
        # Not NaN, which no comparison would ever find again.
        boxes.score[i] = nms.scores[i] if nms.scores[i] > -INFINITY else <real> -INFINITY
        boxes.index[i] = i
    for i in range(nms.count, length):
        boxes.x1[i] = boxes.y1[i] = boxes.x2[i] = boxes.y2[i] = boxes.area[i] = 0
        boxes.score[i] = <real> -INFINITY
        boxes.index[i] = 0


cdef inline always_inline lower_scores(const SoftNms* nms, const Boxes* boxes, Py_ssize_t best,
                                       Py_ssize_t method) noexcept nogil:
    """Lower the scores of all boxes by what they share with the best one."""
    cdef const real* x1 = boxes.x1
    cdef const real* y1 = boxes.y1
    cdef const real* x2 = boxes.x2
    cdef const real* y2 = boxes.y2
    cdef const real* area = boxes.area
    cdef restricted score = boxes.score
    cdef real left = x1[best], top = y1[best], right = x2[best], bottom = y2[best], own = area[best]
    cdef real offset = <real> nms.offset, threshold = <real> nms.iou_threshold, sigma = <real> nms.sigma
    cdef real least = <real> nms.min_score, dropped = <real> -INFINITY
    cdef Py_ssize_t i
    for i in range(boxes.count):
        score[i] = lowered_score(
            score[i],
            soft_weight(
                overlap_or_none(shared_area(left, top, right, bottom, x1[i], y1[i], x2[i], y2[i], offset), own, area[i]),
                method, threshold, sigma),
            least, dropped)


cdef Py_ssize_t best_of(const Boxes* boxes) noexcept nogil:
    """The first of the highest scores; -1 where no box is left."""
    cdef real[LANES] highest
    cdef const real* score = boxes.score
    cdef Py_ssize_t block, start, k
    cdef real best = <real> -INFINITY
    for k in range(LANES):
        highest[k] = <real> -INFINITY
    for block in range(boxes.count // LANES):
        start = block * LANES
        for k in range(LANES):
            highest[k] = score[start + k] if score[start + k] > highest[k] else highest[k]
    for k in range(LANES):
        best = highest[k] if highest[k] > best else best
    if best == -INFINITY:
        return -1
    k = 0
    while score[k] != best:
        k += 1
    return k


cdef void move_together(Boxes* boxes) noexcept nogil:
    """Let go of the boxes that are dropped or taken; the others stay in their order, which decides ties."""
    cdef Py_ssize_t i, kept = 0
    for i in range(boxes.count):
        if boxes.score[i] > -INFINITY:
            boxes.x1[kept], boxes.y1[kept], boxes.x2[kept], boxes.y2[kept] = (
                boxes.x1[i], boxes.y1[i], boxes.x2[i], boxes.y2[i])
            boxes.area[kept], boxes.score[kept], boxes.index[kept] = boxes.area[i], boxes.score[i], boxes.index[i]
            kept += 1
    boxes.count = whole_lanes(kept)
    for i in range(kept, boxes.count):
        boxes.score[i] = <real> -INFINITY


cdef Py_ssize_t count_left(const Boxes* boxes) noexcept nogil:
    cdef Py_ssize_t i, left = 0
    for i in range(boxes.count):
        left += boxes.score[i] > -INFINITY
    return left


cdef Py_ssize_t take_boxes(const SoftNms* nms, Boxes* boxes) noexcept nogil:
    """Take one box after the other; return how many."""
    cdef Py_ssize_t taken = 0, best
    cdef real* det
    while taken < nms.limit:
        best = best_of(boxes)
        if best < 0:
            break
        det = nms.dets + 5 * taken
        det[0], det[1], det[2], det[3] = boxes.x1[best], boxes.y1[best], boxes.x2[best], boxes.y2[best]
        det[4] = boxes.score[best]
        nms.selected[taken] = boxes.index[best]
        taken += 1
        boxes.score[best] = <real> -INFINITY
        # The compiler makes a loop for each method.
        if nms.method == SoftNmsMethod.NAIVE:
            lower_scores(nms, boxes, best, SoftNmsMethod.NAIVE)
        elif nms.method == SoftNmsMethod.LINEAR:
            lower_scores(nms, boxes, best, SoftNmsMethod.LINEAR)
        else:
            lower_scores(nms, boxes, best, SoftNmsMethod.GAUSSIAN)
        # Most boxes that are dropped at all are dropped at once, where their scores are low.
        if taken % EVERY == 1 and 4 * count_left(boxes) < 3 * boxes.count:
            move_together(boxes)
    return taken


cdef api int soft_nms_operator(const void* arguments, const Executor* executor) noexcept nogil:
    cdef const SoftNms* nms = <const SoftNms*> arguments
    cdef Py_ssize_t length = whole_lanes(nms.count)
    cdef void* memory = allocate(length * (sizeof(long long) + COLUMNS * sizeof(real)))
    cdef Boxes boxes
    if memory == NULL:
        return -1
    load(nms, memory, &boxes)
    nms.found[0] = take_boxes(nms, &boxes)
    free(memory)
    return 0


def soft_nms(boxes, scores, double iou_threshold, Py_ssize_t method, double sigma, double min_score, Py_ssize_t limit,
             double offset, dets, selected, found):
    cdef SoftNms nms
    nms.boxes = <const real*> address(boxes)
    nms.scores = <const real*> address(scores)
    nms.dets = <real*> mutable(dets)
    nms.selected = <long long*> mutable(selected)
    nms.found = <long long*> mutable(found)
    nms.count = boxes.shape[0]
    nms.limit = limit
    nms.iou_threshold = iou_threshold
    nms.method = method
    nms.sigma = sigma
    nms.min_score = min_score
    nms.offset = offset
    execute(soft_nms_operator, &nms)
