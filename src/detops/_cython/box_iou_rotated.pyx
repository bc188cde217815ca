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
include "rotated_box.pxi"


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
    # A RotatedBox each.
    real[BLOCK] x
    real[BLOCK] y
    real[BLOCK] cos
    real[BLOCK] sin
    real[BLOCK] width
    real[BLOCK] height
    real[BLOCK] area
    real[BLOCK] reach_x
    real[BLOCK] reach_y


cdef inline void load(const real* boxes, Py_ssize_t count, const BoxIou* work, Block* block) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(count):
        put(block, j, load_rotated(boxes + NUMBERS * j, work.clockwise))


cdef inline void put(Block* block, Py_ssize_t j, RotatedBox box) noexcept nogil:
    block.x[j], block.y[j], block.cos[j], block.sin[j] = box.x, box.y, box.cos, box.sin
    block.width[j], block.height[j], block.area[j] = box.width, box.height, box.area
    block.reach_x[j], block.reach_y[j] = box.reach_x, box.reach_y


cdef inline RotatedBox box_at(const Block* block, Py_ssize_t j) noexcept nogil:
    cdef RotatedBox box
    box.x, box.y, box.cos, box.sin = block.x[j], block.y[j], block.cos[j], block.sin[j]
    box.width, box.height, box.area = block.width[j], block.height[j], block.area[j]
    box.reach_x, box.reach_y = block.reach_x[j], block.reach_y[j]
    return box


cdef inline int find_candidates(const Block* a, Py_ssize_t step, const Block* b, Py_ssize_t count,
                                int* candidates) noexcept nogil:
    """Write the indices of the boxes of b whose upright bounds meet those of their box of a; return how many."""
    cdef unsigned char[BLOCK] meet
    cdef uint64_t eight
    cdef Py_ssize_t i, j, group
    cdef int found = 0
    for j in range(count):
        i = j * step
        meet[j] = bounds_meet(b.x[j] - a.x[i], b.y[j] - a.y[i], a.reach_x[i] + b.reach_x[j], a.reach_y[i] + b.reach_y[j])
    # Mostly none of eight is one.
    for group in range((count + 7) // 8):
        memcpy(&eight, meet + 8 * group, 8)
        if eight != 0:
            for j in range(8 * group, min(8 * group + 8, count)):
                candidates[found] = <int> j
                found += meet[j]
    return found


cdef inline void gather(const Block* boxes, Py_ssize_t step, const int* indices, int count, Block* out) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(count):
        put(out, j, box_at(boxes, indices[j] * step))


cdef inline void compare(const Block* a, Py_ssize_t step, const Block* b, Py_ssize_t count, Py_ssize_t mode,
                         real* out) noexcept nogil:
    """Boxes of b with those of a that are so far apart: 0 for the first alone, 1 for pairs."""
    cdef RotatedBox one, other
    cdef Py_ssize_t j
    for j in range(count):
        one, other = box_at(a, j * step), box_at(b, j)
        out[j] = overlap_of(&one, &other, mode)


cdef inline void compare_candidates(const Block* a, Py_ssize_t step, const Block* b, Py_ssize_t count, Py_ssize_t mode,
                                    real* out) noexcept nogil:
    """The same with a loop for each mode, as only loops without branches become vectors."""
    if mode == BoxIouMode.IOF:
        compare(a, step, b, count, BoxIouMode.IOF, out)
    else:
        compare(a, step, b, count, BoxIouMode.IOU, out)


cdef inline void compare_blocks(const Block* a, Py_ssize_t step, const Block* b, Py_ssize_t count,
                                const BoxIou* work, real* out) noexcept nogil:
    """The same; boxes that are apart, and usually those are most, are left out."""
    cdef Block chosen_a, chosen_b
    cdef int[BLOCK] candidates
    cdef real[BLOCK] overlaps
    cdef int found = find_candidates(a, step, b, count, candidates)
    cdef int i
    memset(out, 0, count * sizeof(real))
    if found == 0:
        return
    gather(b, 1, candidates, found, &chosen_b)
    gather(a, step, candidates, found if step else 1, &chosen_a)
    compare_candidates(&chosen_a, step, &chosen_b, found, work.mode, overlaps)
    for i in range(found):
        out[candidates[i]] = overlaps[i]


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
