"""Overlaps of boxes: of each with each, (rows, columns), or of pairs."""

from libc.string cimport memcpy, memset

include "scalar.pxi"
include "buffers.pxi"
include "parallel_for.pxi"
include "stream.pxi"
include "../_core/iou.py"
include "../_core/box_iou.py"


cdef enum:
    # Boxes that are held as planes, in the first-level cache, and so many that each such block is compared with.
    BLOCK = 512
    ROWS = 128
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


cdef inline Py_ssize_t blocks_of(Py_ssize_t count, Py_ssize_t size) noexcept nogil:
    return (count + size - 1) // size


cdef int compare_pairs(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is a block of pairs, in one row."""
    cdef const BoxIou* work = <const BoxIou*> arguments
    cdef Block a, b
    cdef Py_ssize_t item, first, count
    for item in range(begin, end):
        first = item * BLOCK
        count = min(work.columns - first, <Py_ssize_t> BLOCK)
        load(work.boxes_a + 4 * first, count, work, &a)
        load(work.boxes_b + 4 * first, count, work, &b)
        compare_blocks(&a, 1, &b, count, work, work.out + first)
    stream_end()
    return 0


cdef int compare_all(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is a tile: some rows of a block of columns."""
    cdef const BoxIou* work = <const BoxIou*> arguments
    cdef Py_ssize_t blocks = blocks_of(work.columns, BLOCK)
    cdef Block a, b
    cdef Py_ssize_t item, first, count, row
    for item in range(begin, end):
        first = item % blocks * BLOCK
        count = min(work.columns - first, <Py_ssize_t> BLOCK)
        load(work.boxes_b + 4 * first, count, work, &b)
        for row in range(item // blocks * ROWS, min(item // blocks * ROWS + ROWS, work.rows)):
            load(work.boxes_a + 4 * row, 1, work, &a)
            compare_blocks(&a, 0, &b, count, work, work.out + row * work.columns + first)
    stream_end()
    return 0


cdef api int box_iou_operator(const void* arguments, const Executor* executor) noexcept nogil:
    cdef const BoxIou* work = <const BoxIou*> arguments
    cdef Py_ssize_t tile = min(work.rows, <Py_ssize_t> ROWS) * min(work.columns, <Py_ssize_t> BLOCK)
    return executor.parallel_for(executor, compare_all, work, blocks_of(work.rows, ROWS) * blocks_of(work.columns, BLOCK),
                       1 + GRAIN // tile)


cdef api int aligned_box_iou_operator(const void* arguments, const Executor* executor) noexcept nogil:
    cdef const BoxIou* work = <const BoxIou*> arguments
    return executor.parallel_for(executor, compare_pairs, work, blocks_of(work.columns, BLOCK), 1 + GRAIN // BLOCK)


def box_iou(boxes_a, boxes_b, Py_ssize_t mode, bint aligned, double offset, out):
    cdef BoxIou work
    work.boxes_a = <const real*> address(boxes_a)
    work.boxes_b = <const real*> address(boxes_b)
    work.out = <real*> mutable(out)
    work.rows = 1 if aligned else boxes_a.shape[0]
    work.columns = boxes_b.shape[0]
    work.mode = mode
    work.offset = offset
    execute(aligned_box_iou_operator if aligned else box_iou_operator, &work)
