"""Box decoding and encoding over (groups, 4, inner) in memory: an inner of 1 is (boxes, 4).

Where there are fewer groups of anchors than of boxes, the first one follows the last.
"""

from libc.math cimport fabs, frexp
from libc.string cimport memcpy

include "scalar.pxi"
include "buffers.pxi"
include "parallel_for.pxi"
include "stream.pxi"
include "boxes.pxi"
include "../_core/iou.py"
include "../_core/boxes.py"


cdef enum:
    # Boxes that are held as planes of coordinates, in the first-level cache.
    BLOCK = 256


cdef struct Block:
    # The coordinates of boxes, and of their anchors.
    real[4][BLOCK] subject
    real[4][BLOCK] anchors
    Py_ssize_t count


cdef inline Py_ssize_t first_coordinate(Py_ssize_t box, Py_ssize_t inner) noexcept nogil:
    return box // inner * 4 * inner + box % inner


cdef inline void load_planes(
    const real* source, Py_ssize_t inner, Py_ssize_t count, real (*target)[BLOCK]
) noexcept nogil:
    cdef Py_ssize_t side
    for side in range(4):
        memcpy(target[side], source + side * inner, count * sizeof(real))


cdef inline void load_boxes(
    const real* source, Py_ssize_t start, Py_ssize_t count, real (*target)[BLOCK]
) noexcept nogil:
    """Load `count` boxes into a block, from `start` on."""
    cdef Py_ssize_t j
    for j in range(count):
        target[0][start + j] = source[4 * j]
        target[1][start + j] = source[4 * j + 1]
        target[2][start + j] = source[4 * j + 2]
        target[3][start + j] = source[4 * j + 3]


cdef inline void load_anchors(const Boxes* boxes, Py_ssize_t first, Block* block) noexcept nogil:
    """The anchors of the boxes of a block, of which there is one for each: once through all, and so on."""
    cdef Py_ssize_t start = 0, anchor, run
    if first + block.count <= boxes.anchor_count:
        load_boxes(boxes.anchors + 4 * first, 0, block.count, block.anchors)
        return
    anchor = first % boxes.anchor_count
    while start < block.count:
        run = min(block.count - start, boxes.anchor_count - anchor)
        load_boxes(boxes.anchors + 4 * anchor, start, run, block.anchors)
        start += run
        anchor = 0


cdef inline void load_shared_anchors(const Boxes* boxes, Py_ssize_t first, Block* block) noexcept nogil:
    """The same where some boxes in a row share an anchor."""
    cdef Py_ssize_t anchor = first // boxes.classes % boxes.anchor_count
    cdef Py_ssize_t used = first % boxes.classes
    cdef Py_ssize_t j, side
    for j in range(block.count):
        for side in range(4):
            block.anchors[side][j] = boxes.anchors[4 * anchor + side]
        used += 1
        if used == boxes.classes:
            used = 0
            anchor = anchor + 1 if anchor + 1 < boxes.anchor_count else 0


cdef inline void load(const Boxes* boxes, Py_ssize_t first, Py_ssize_t end, Block* block) noexcept nogil:
    """Up to BLOCK boxes from the first on, each with its anchor."""
    cdef Py_ssize_t start
    block.count = min(end - first, <Py_ssize_t> BLOCK)
    if boxes.inner > 1:
        # A block stays within its group, so that each coordinate is one run of memory.
        block.count = min(block.count, boxes.inner - first % boxes.inner)
        start = first_coordinate(first, boxes.inner)
        load_planes(boxes.subject + start, boxes.inner, block.count, block.subject)
        start = first_coordinate(first % boxes.anchor_count, boxes.inner)
        load_planes(boxes.anchors + start, boxes.inner, block.count, block.anchors)
        return
    load_boxes(boxes.subject + 4 * first, 0, block.count, block.subject)
    if boxes.classes == 1:
        load_anchors(boxes, first, block)
    else:
        load_shared_anchors(boxes, first, block)


cdef inline void store(const Boxes* boxes, Py_ssize_t first, const Block* block) noexcept nogil:
    """Write the boxes of a block to their place in the result."""
    cdef real[4 * BLOCK] rows
    cdef Py_ssize_t j, side
    if boxes.inner > 1:
        for side in range(4):
            memcpy(boxes.out + first_coordinate(first, boxes.inner) + side * boxes.inner, block.subject[side],
                   block.count * sizeof(real))
        return
    for j in range(block.count):
        rows[4 * j] = block.subject[0][j]
        rows[4 * j + 1] = block.subject[1][j]
        rows[4 * j + 2] = block.subject[2][j]
        rows[4 * j + 3] = block.subject[3][j]
    if boxes.count * 4 * <Py_ssize_t> sizeof(real) >= STREAM_FROM_BYTES:
        stream(boxes.out + 4 * first, rows, 4 * block.count * sizeof(real))
    else:
        memcpy(boxes.out + 4 * first, rows, 4 * block.count * sizeof(real))


cdef inline bint inverts(double scale) noexcept nogil:
    """Whether multiplying by the inverse is the same as dividing: the scale is a power of two."""
    cdef int exponent
    return frexp(fabs(scale), &exponent) == 0.5 and -100 < exponent < 100


cdef inline bint all_invert(const Boxes* boxes) noexcept nogil:
    return (inverts(boxes.scales[0]) and inverts(boxes.scales[1])
            and inverts(boxes.scales[2]) and inverts(boxes.scales[3]))


cdef inline void decode_side(const Boxes* boxes, int side, bint inverted, Py_ssize_t form, real offset,
                             Block* block) noexcept nogil:
    """The left and right of all boxes of a block, or the top and bottom."""
    cdef real scale = <real> boxes.scales[side], mean = <real> boxes.means[side]
    cdef real size_scale = <real> boxes.scales[2 + side], size_mean = <real> boxes.means[2 + side]
    cdef real inverse = 1 / scale, size_inverse = 1 / size_scale
    cdef real lower = <real> boxes.lower_clip, upper = <real> boxes.decode_clip
    cdef real shift, growth, center, size
    cdef Py_ssize_t j
    for j in range(block.count):
        # Divisions take as long as all the rest, and most coders have scales of 1.
        if inverted:
            shift = unscale_by_inverse(block.subject[side][j], inverse, mean)
            growth = unscale_by_inverse(block.subject[2 + side][j], size_inverse, size_mean)
        else:
            shift = unscale(block.subject[side][j], scale, mean)
            growth = unscale(block.subject[2 + side][j], size_scale, size_mean)
        center, size = center_and_size(block.anchors[side][j], block.anchors[2 + side][j], form, offset)
        block.subject[side][j], block.subject[2 + side][j] = decode_span(
            shift, growth, center, size, offset, lower, upper)


cdef inline void decode_sides(const Boxes* boxes, bint inverted, Py_ssize_t form, real offset,
                              Block* block) noexcept nogil:
    decode_side(boxes, 0, inverted, form, offset, block)
    decode_side(boxes, 1, inverted, form, offset, block)


cdef inline void decode_block(const Boxes* boxes, bint inverted, Block* block) noexcept nogil:
    """All boxes of a block, with a loop for each form of anchors, and for none but the usual offset."""
    if boxes.form == AnchorForm.CENTER:
        decode_sides(boxes, inverted, AnchorForm.CENTER, <real> boxes.offset, block)
    elif boxes.offset == 0:
        decode_sides(boxes, inverted, AnchorForm.CORNER, 0, block)
    else:
        decode_sides(boxes, inverted, AnchorForm.CORNER, <real> boxes.offset, block)


cdef inline void encode_side(const Boxes* boxes, int side, Py_ssize_t form, real offset, Block* block) noexcept nogil:
    cdef real scale = <real> boxes.scales[side], mean = <real> boxes.means[side]
    cdef real size_scale = <real> boxes.scales[2 + side], size_mean = <real> boxes.means[2 + side]
    cdef real shift, growth, center, size, anchor_center, anchor_size
    cdef Py_ssize_t j
    for j in range(block.count):
        center, size = center_and_size(block.subject[side][j], block.subject[2 + side][j], AnchorForm.CORNER, offset)
        anchor_center, anchor_size = center_and_size(
            block.anchors[side][j], block.anchors[2 + side][j], form, offset)
        shift, growth = encode_span(center, size, anchor_center, anchor_size)
        block.subject[side][j] = rescale(shift, scale, mean)
        block.subject[2 + side][j] = rescale(growth, size_scale, size_mean)


cdef inline void encode_sides(const Boxes* boxes, Py_ssize_t form, real offset, Block* block) noexcept nogil:
    encode_side(boxes, 0, form, offset, block)
    encode_side(boxes, 1, form, offset, block)


cdef inline void encode_block(const Boxes* boxes, Block* block) noexcept nogil:
    """All boxes of a block, with the loops that decode_block has."""
    if boxes.form == AnchorForm.CENTER:
        encode_sides(boxes, AnchorForm.CENTER, <real> boxes.offset, block)
    elif boxes.offset == 0:
        encode_sides(boxes, AnchorForm.CORNER, 0, block)
    else:
        encode_sides(boxes, AnchorForm.CORNER, <real> boxes.offset, block)


cdef int decode_loop(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is one box."""
    cdef const Boxes* boxes = <const Boxes*> arguments
    cdef bint inverted = all_invert(boxes)
    cdef Block block
    while begin < end:
        load(boxes, begin, end, &block)
        if inverted:
            decode_block(boxes, True, &block)
        else:
            decode_block(boxes, False, &block)
        store(boxes, begin, &block)
        begin += block.count
    stream_end()
    return 0


cdef int encode_loop(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is one box."""
    cdef const Boxes* boxes = <const Boxes*> arguments
    cdef Block block
    while begin < end:
        load(boxes, begin, end, &block)
        encode_block(boxes, &block)
        store(boxes, begin, &block)
        begin += block.count
    stream_end()
    return 0


cdef api int decode_bbox_operator(const void* arguments, const Executor* executor) noexcept nogil:
    return executor.parallel_for(executor, decode_loop, arguments, (<const Boxes*> arguments).count, 8192)


cdef api int encode_bbox_operator(const void* arguments, const Executor* executor) noexcept nogil:
    return executor.parallel_for(executor, encode_loop, arguments, (<const Boxes*> arguments).count, 8192)


cdef int _execute(operator_t operator, subject, anchors, double lower_clip, double decode_clip, scales, means,
                  Py_ssize_t form, double offset, Py_ssize_t classes, Py_ssize_t inner, out) except -1:
    cdef Boxes boxes
    boxes.subject = <const real*> address(subject)
    boxes.anchors = <const real*> address(anchors)
    boxes.out = <real*> mutable(out)
    boxes.count = out.size // 4
    boxes.anchor_count = anchors.size // 4
    boxes.classes = classes
    boxes.inner = inner
    boxes.scales = scales
    boxes.means = means
    boxes.form = form
    boxes.offset = offset
    boxes.lower_clip = lower_clip
    boxes.decode_clip = decode_clip
    return execute(operator, &boxes)


def decode_bbox(box_predictions, anchors, lower_clip, decode_clip, scales, means, form, offset, classes, inner, out):
    _execute(decode_bbox_operator, box_predictions, anchors, lower_clip, decode_clip, scales, means, form, offset,
             classes, inner, out)


def encode_bbox(boxes, anchors, scales, means, form, offset, classes, inner, out):
    _execute(encode_bbox_operator, boxes, anchors, 0.0, 0.0, scales, means, form, offset, classes, inner, out)
