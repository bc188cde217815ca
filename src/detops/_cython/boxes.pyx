"""Box decoding and encoding over (groups, 4, inner) in memory: an inner of 1 is (boxes, 4)."""

include "scalar.pxi"
include "buffers.pxi"
include "spread.pxi"
include "boxes.pxi"
include "../_core/boxes.py"


cdef inline Py_ssize_t first_coordinate(Py_ssize_t box, Py_ssize_t inner) noexcept nogil:
    return box // inner * 4 * inner + box % inner


cdef int decode_loop(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is one box."""
    cdef const Boxes* boxes = <const Boxes*> arguments
    cdef Py_ssize_t stride = boxes.inner
    cdef Py_ssize_t i, side, near, far, anchor
    cdef real low, high
    for i in range(begin, end):
        for side in range(2):
            near = first_coordinate(i, stride) + side * stride
            far = near + 2 * stride
            anchor = first_coordinate(i // boxes.classes, stride) + side * stride
            low, high = decode_span(
                unscale(boxes.subject[near], <real> boxes.scales[side], <real> boxes.means[side]),
                unscale(boxes.subject[far], <real> boxes.scales[2 + side], <real> boxes.means[2 + side]),
                boxes.anchors[anchor], boxes.anchors[anchor + 2 * stride],
                <real> boxes.lower_clip, <real> boxes.decode_clip,
            )
            boxes.out[near] = low
            boxes.out[far] = high
    return 0


cdef int encode_loop(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is one box."""
    cdef const Boxes* boxes = <const Boxes*> arguments
    cdef Py_ssize_t stride = boxes.inner
    cdef Py_ssize_t i, side, near, far, anchor
    cdef real shift, growth
    for i in range(begin, end):
        for side in range(2):
            near = first_coordinate(i, stride) + side * stride
            far = near + 2 * stride
            anchor = first_coordinate(i // boxes.classes, stride) + side * stride
            shift, growth = encode_span(
                boxes.subject[near], boxes.subject[far], boxes.anchors[anchor], boxes.anchors[anchor + 2 * stride])
            boxes.out[near] = rescale(shift, <real> boxes.scales[side], <real> boxes.means[side])
            boxes.out[far] = rescale(growth, <real> boxes.scales[2 + side], <real> boxes.means[2 + side])
    return 0


cdef api int decode_bbox_operator(const void* arguments, const Team* team) noexcept nogil:
    return team.spread(team, decode_loop, arguments, (<const Boxes*> arguments).count, 8192)


cdef api int encode_bbox_operator(const void* arguments, const Team* team) noexcept nogil:
    return team.spread(team, encode_loop, arguments, (<const Boxes*> arguments).count, 8192)


cdef int _execute(operator_t operator, subject, anchors, double lower_clip, double decode_clip, scales, means,
                  Py_ssize_t classes, Py_ssize_t inner, out) except -1:
    cdef Boxes boxes
    boxes.subject = <const real*> data(subject)
    boxes.anchors = <const real*> data(anchors)
    boxes.out = <real*> mutable(out)
    boxes.count = out.size // 4
    boxes.classes = classes
    boxes.inner = inner
    boxes.scales = scales
    boxes.means = means
    boxes.lower_clip = lower_clip
    boxes.decode_clip = decode_clip
    return execute(operator, &boxes)


def decode_bbox(box_predictions, anchors, lower_clip, decode_clip, scales, means, classes, inner, out):
    _execute(decode_bbox_operator, box_predictions, anchors, lower_clip, decode_clip, scales, means, classes, inner, out)


def encode_bbox(boxes, anchors, scales, means, classes, inner, out):
    _execute(encode_bbox_operator, boxes, anchors, 0.0, 0.0, scales, means, classes, inner, out)
