"""Box decoding and encoding over (boxes, 4) in memory, or over four planes of coordinates."""

include "scalar.pxi"
include "buffers.pxi"
include "spread.pxi"
include "../_core/boxes.py"

cdef struct Boxes:
    const real* subject
    const real* anchors
    real* out
    # Neighbouring coordinates of a box are stride apart in memory, neighbouring boxes step apart.
    Py_ssize_t stride
    Py_ssize_t step
    # So many boxes in a row share an anchor.
    Py_ssize_t classes
    real[4] scales
    real[4] means
    real decode_clip


cdef int decode_loop(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef const Boxes* boxes = <const Boxes*> arguments
    cdef Py_ssize_t i, side, at, anchor
    cdef const real* t
    cdef const real* a
    cdef real low, high
    for i in range(begin, end):
        t = boxes.subject + i * boxes.step
        a = boxes.anchors + (i // boxes.classes) * boxes.step
        for side in range(2):
            low, high = decode_span(
                unscale(t[side * boxes.stride], boxes.scales[side], boxes.means[side]),
                unscale(t[(2 + side) * boxes.stride], boxes.scales[2 + side], boxes.means[2 + side]),
                a[side * boxes.stride], a[(2 + side) * boxes.stride], boxes.decode_clip,
            )
            boxes.out[i * boxes.step + side * boxes.stride] = low
            boxes.out[i * boxes.step + (2 + side) * boxes.stride] = high
    return 0


cdef int encode_loop(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef const Boxes* boxes = <const Boxes*> arguments
    cdef Py_ssize_t i, side
    cdef const real* b
    cdef const real* a
    cdef real shift, growth
    for i in range(begin, end):
        b = boxes.subject + i * boxes.step
        a = boxes.anchors + (i // boxes.classes) * boxes.step
        for side in range(2):
            shift, growth = encode_span(
                b[side * boxes.stride], b[(2 + side) * boxes.stride],
                a[side * boxes.stride], a[(2 + side) * boxes.stride],
            )
            boxes.out[i * boxes.step + side * boxes.stride] = rescale(
                shift, boxes.scales[side], boxes.means[side])
            boxes.out[i * boxes.step + (2 + side) * boxes.stride] = rescale(
                growth, boxes.scales[2 + side], boxes.means[2 + side])
    return 0


cdef int _call(loop_t loop, subject, anchors, double decode_clip, scales, means, Py_ssize_t classes,
               bint planes, out) except -1:
    cdef Boxes boxes
    cdef Py_ssize_t count = out.size // 4
    boxes.subject = <const real*> data(subject)
    boxes.anchors = <const real*> data(anchors)
    boxes.out = <real*> mutable(out)
    boxes.stride = count if planes else 1
    boxes.step = 1 if planes else 4
    boxes.classes = classes
    boxes.scales = scales
    boxes.means = means
    boxes.decode_clip = <real> decode_clip
    return spread(loop, &boxes, count, 8192)


def decode_bbox(box_predictions, anchors, decode_clip, scales, means, classes, planes, out):
    _call(decode_loop, box_predictions, anchors, decode_clip, scales, means, classes, planes, out)


def encode_bbox(boxes, anchors, scales, means, classes, planes, out):
    _call(encode_loop, boxes, anchors, 0.0, scales, means, classes, planes, out)
