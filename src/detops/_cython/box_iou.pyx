"""Overlaps of boxes: of each with each, (rows, columns), or of pairs."""

from libc.string cimport memcpy, memset

include "scalar.pxi"
include "buffers.pxi"
include "parallel_for.pxi"
include "stream.pxi"
include "../_core/iou.py"
include "../_core/box_iou.py"


cdef enum:
    NUMBERS = 4
    BLOCK = 512
    # Results that are worth another thread.
    GRAIN = 16384


cdef struct BoxIou:
    const real* boxes_a
    const real* boxes_b
    real* out
    Py_ssize_t rows
    Py_ssize_t columns
    # A BoxIouMode.
    Py_ssize_t mode
    double offset


cdef struct Block:
    real[BLOCK] x1
    real[BLOCK] y1
    real[BLOCK] x2
    real[BLOCK] y2
    real[BLOCK] area
    # Of the aspect, for CIOU; else 0.
    real[BLOCK] angle


cdef inline void load(const real* boxes, Py_ssize_t count, const BoxIou* work, Block* block) noexcept nogil:
    cdef real offset = <real> work.offset
    cdef real width, height
    cdef Py_ssize_t j
    for j in range(count):
        block.x1[j] = boxes[4 * j]
        block.y1[j] = boxes[4 * j + 1]
        block.x2[j] = boxes[4 * j + 2]
        block.y2[j] = boxes[4 * j + 3]
    for j in range(count):
        block.area[j] = area_or_flaw(side_length(block.x1[j], block.x2[j], offset),
                                     side_length(block.y1[j], block.y2[j], offset))
    if work.mode == BoxIouMode.CIOU:
        for j in range(count):
            block.angle[j] = aspect_angle(side_length(block.x1[j], block.x2[j], offset),
                                          side_length(block.y1[j], block.y2[j], offset))
    else:
        memset(block.angle, 0, count * sizeof(real))


cdef inline void compare(const Block* a, Py_ssize_t step, const Block* b, Py_ssize_t count, real offset,
                         Py_ssize_t mode, real* out) noexcept nogil:
    """Boxes of b with those of a that are so far apart: 0 for the first alone, 1 for pairs."""
    cdef Py_ssize_t i, j
    for j in range(count):
        i = j * step
        out[j] = box_similarity(
            a.x1[i], a.y1[i], a.x2[i], a.y2[i], a.area[i], b.x1[j], b.y1[j], b.x2[j], b.y2[j], b.area[j],
            a.angle[i] - b.angle[j], offset, mode)


cdef inline void compare_blocks(const Block* a, Py_ssize_t step, const Block* b, Py_ssize_t count,
                                const BoxIou* work, real* out) noexcept nogil:
    """The same with a loop for each mode, as only loops without branches become vectors; written past the caches
    where the whole result is large."""
    cdef real[BLOCK] found
    cdef real offset = <real> work.offset
    if work.mode == BoxIouMode.IOU:
        compare(a, step, b, count, offset, BoxIouMode.IOU, found)
    elif work.mode == BoxIouMode.IOF:
        compare(a, step, b, count, offset, BoxIouMode.IOF, found)
    elif work.mode == BoxIouMode.GIOU:
        compare(a, step, b, count, offset, BoxIouMode.GIOU, found)
    elif work.mode == BoxIouMode.DIOU:
        compare(a, step, b, count, offset, BoxIouMode.DIOU, found)
    else:
        compare(a, step, b, count, offset, BoxIouMode.CIOU, found)
    if work.rows * work.columns * <Py_ssize_t> sizeof(real) >= STREAM_FROM_BYTES:
        stream(out, found, count * sizeof(real))
    else:
        memcpy(out, found, count * sizeof(real))


include "box_pairs.pxi"


def box_iou(boxes_a, boxes_b, Py_ssize_t mode, bint aligned, double offset, out):
    cdef BoxIou work
    work.boxes_a = <const real*> address(boxes_a)
    work.boxes_b = <const real*> address(boxes_b)
    work.out = <real*> mutable(out)
    work.rows = 1 if aligned else boxes_a.shape[0]
    work.columns = boxes_b.shape[0]
    work.mode = mode
    work.offset = offset
    execute(compare_pairs if aligned else compare_all, &work)
