"""Box decoding and encoding over (boxes, 4) in memory, or over four planes of coordinates."""

include "scalar.pxi"
include "buffers.pxi"
include "spread.pxi"
include "boxes.pxi"
include "../_core/boxes.py"


cdef int decode_loop(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is one box."""
    cdef const Boxes* boxes = <const Boxes*> arguments
    cdef Py_ssize_t stride = boxes.count if boxes.planes else 1
    cdef Py_ssize_t step = 1 if boxes.planes else 4
    cdef Py_ssize_t i, side, near, far, anchor
    cdef real low, high
    for i in range(begin, end):
        for side in range(2):
            near = i * step + side * stride
            far = near + 2 * stride
            anchor = i // boxes.classes * step + side * stride
            low, high = decode_span(
                unscale(boxes.subject[near], <real> boxes.scales[side], <real> boxes.means[side]),
                unscale(boxes.subject[far], <real> boxes.scales[2 + side], <real> boxes.means[2 + side]),
                boxes.anchors[anchor], boxes.anchors[anchor + 2 * stride], <real> boxes.decode_clip,
            )
            boxes.out[near] = low
            boxes.out[far] = high
    return 0


cdef int encode_loop(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is one box."""
    cdef const Boxes* boxes = <const Boxes*> arguments
    cdef Py_ssize_t stride = boxes.count if boxes.planes else 1
    cdef Py_ssize_t step = 1 if boxes.planes else 4
    cdef Py_ssize_t i, side, near, far, anchor
    cdef real shift, growth
    for i in range(begin, end):
        for side in range(2):
            near = i * step + side * stride
            far = near + 2 * stride
            anchor = i // boxes.classes * step + side * stride
            shift, growth = encode_span(
                boxes.subject[near], boxes.subject[far], boxes.anchors[anchor], boxes.anchors[anchor + 2 * stride])
            boxes.out[near] = rescale(shift, <real> boxes.scales[side], <real> boxes.means[side])
            boxes.out[far] = rescale(growth, <real> boxes.scales[2 + side], <real> boxes.means[2 + side])
    return 0


cdef api int decode_bbox_operator(const void* arguments, const Team* team) noexcept nogil:
    return team.spread(team, decode_loop, arguments, (<const Boxes*> arguments).count, 8192)


cdef api int encode_bbox_operator(const void* arguments, const Team* team) noexcept nogil:
    return team.spread(team, encode_loop, arguments, (<const Boxes*> arguments).count, 8192)


cdef int _execute(operator_t operator, subject, anchors, double decode_clip, scales, means, Py_ssize_t classes,
                  bint planes, out) except -1:
    cdef Boxes boxes
    boxes.subject = <const real*> data(subject)
    boxes.anchors = <const real*> data(anchors)
    boxes.out = <real*> mutable(out)
    boxes.count = out.size // 4
    boxes.classes = classes
    boxes.planes = planes
    boxes.scales = scales
    boxes.means = means
    boxes.decode_clip = decode_clip
    return execute(operator, &boxes)


def decode_bbox(box_predictions, anchors, decode_clip, scales, means, classes, planes, out):
    _execute(decode_bbox_operator, box_predictions, anchors, decode_clip, scales, means, classes, planes, out)


def encode_bbox(boxes, anchors, scales, means, classes, planes, out):
    _execute(encode_bbox_operator, boxes, anchors, 0.0, scales, means, classes, planes, out)
