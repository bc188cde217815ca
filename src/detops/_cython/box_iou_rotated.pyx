"""Overlaps of turned boxes: of each with each, (rows, columns), or of pairs."""

from libc.stdint cimport uint64_t
from libc.string cimport memcpy, memset

include "scalar.pxi"
include "buffers.pxi"
include "parallel_for.pxi"
include "stream.pxi"
include "../_core/iou.py"
include "../_core/box_iou.py"
include "../_core/rotated.py"


cdef enum:
    NUMBERS = 5
    BLOCK = 256
    # Results that are worth another thread.
    GRAIN = 1024


cdef struct BoxIou:
    const real* boxes_a
    const real* boxes_b
    real* out
    Py_ssize_t rows
    Py_ssize_t columns
    # A BoxIouMode.
    Py_ssize_t mode
    bint clockwise


cdef struct Block:
    real[BLOCK] x
    real[BLOCK] y
    real[BLOCK] cos
    real[BLOCK] sin
    # Half sides.
    real[BLOCK] width
    real[BLOCK] height
    real[BLOCK] area
    # To the sides of the upright box around it.
    real[BLOCK] reach_x
    real[BLOCK] reach_y


cdef inline void load(const real* boxes, Py_ssize_t count, const BoxIou* work, Block* block) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(count):
        block.x[j], block.y[j] = boxes[5 * j], boxes[5 * j + 1]
        block.width[j], block.height[j] = typed(0.5, boxes[0]) * boxes[5 * j + 2], typed(0.5, boxes[0]) * boxes[5 * j + 3]
        block.cos[j], block.sin[j] = direction(boxes[5 * j + 4], work.clockwise)
        block.area[j] = turned_area(boxes[5 * j + 2], boxes[5 * j + 3], block.cos[j], block.sin[j])
        block.reach_x[j], block.reach_y[j] = reach(block.cos[j], block.sin[j], block.width[j], block.height[j])


cdef inline int find_near(const Block* a, Py_ssize_t step, const Block* b, Py_ssize_t count, int* near) noexcept nogil:
    """Write the places of the boxes of b whose upright bounds meet those of their box of a; return how many."""
    cdef unsigned char[BLOCK] meet
    cdef uint64_t eight
    cdef Py_ssize_t i, j, group
    cdef int found = 0
    for j in range(count):
        i = j * step
        meet[j] = bounds_meet(b.x[j] - a.x[i], b.y[j] - a.y[i], a.reach_x[i] + b.reach_x[j], a.reach_y[i] + b.reach_y[j])
    # Mostly none of eight is near.
    for group in range((count + 7) // 8):
        memcpy(&eight, meet + 8 * group, 8)
        if eight != 0:
            for j in range(8 * group, min(8 * group + 8, count)):
                near[found] = <int> j
                found += meet[j]
    return found


cdef inline void gather(const Block* boxes, Py_ssize_t step, const int* places, int count, Block* out) noexcept nogil:
    cdef Py_ssize_t i, j
    for j in range(count):
        i = places[j] * step
        out.x[j], out.y[j], out.cos[j], out.sin[j] = boxes.x[i], boxes.y[i], boxes.cos[i], boxes.sin[i]
        out.width[j], out.height[j], out.area[j] = boxes.width[i], boxes.height[i], boxes.area[i]


cdef inline void compare(const Block* a, Py_ssize_t step, const Block* b, Py_ssize_t count, Py_ssize_t mode,
                         real* out) noexcept nogil:
    """Boxes of b with those of a that are so far apart: 0 for the first alone, 1 for pairs."""
    cdef Py_ssize_t i, j
    for j in range(count):
        i = j * step
        out[j] = rotated_overlap(
            b.x[j] - a.x[i], b.y[j] - a.y[i], a.cos[i], a.sin[i], a.width[i], a.height[i], a.area[i],
            b.cos[j], b.sin[j], b.width[j], b.height[j], b.area[j], mode)


cdef inline void compare_near(const Block* a, Py_ssize_t step, const Block* b, Py_ssize_t count, Py_ssize_t mode,
                       real* out) noexcept nogil:
    """The same with a loop for each mode, as only loops without branches become vectors."""
    if mode == BoxIouMode.IOF:
        compare(a, step, b, count, BoxIouMode.IOF, out)
    else:
        compare(a, step, b, count, BoxIouMode.IOU, out)


cdef inline void compare_blocks(const Block* a, Py_ssize_t step, const Block* b, Py_ssize_t count,
                                const BoxIou* work, real* out) noexcept nogil:
    """The same; boxes that are apart, and usually those are most, are left out."""
    cdef Block near_a, near_b
    cdef int[BLOCK] near
    cdef real[BLOCK] overlaps
    cdef int found = find_near(a, step, b, count, near)
    cdef int i
    memset(out, 0, count * sizeof(real))
    if found == 0:
        return
    gather(b, 1, near, found, &near_b)
    gather(a, step, near, found if step else 1, &near_a)
    compare_near(&near_a, step, &near_b, found, work.mode, overlaps)
    for i in range(found):
        out[near[i]] = overlaps[i]


include "box_pairs.pxi"


def box_iou_rotated(boxes_a, boxes_b, Py_ssize_t mode, bint clockwise, bint aligned, out):
    cdef BoxIou work
    work.boxes_a = <const real*> address(boxes_a)
    work.boxes_b = <const real*> address(boxes_b)
    work.out = <real*> mutable(out)
    work.rows = 1 if aligned else boxes_a.shape[0]
    work.columns = boxes_b.shape[0]
    work.mode = mode
    work.clockwise = clockwise
    execute(compare_pairs if aligned else compare_all, &work)
