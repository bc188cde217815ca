"""Box decoding and encoding over (boxes, 4) in memory, or over four planes of coordinates."""

from detops._core.boxes import decode_span, encode_span, rescale, unscale
from detops._numba.spread import jit, spread


@jit
def decode_loop(begin, end, t, anchors, clip, scales, means, classes, out):
    """One item is one box; arrays are (boxes, 4)."""
    for i in range(begin, end):
        for side in range(2):
            low, high = decode_span(
                unscale(t[i, side], scales[side], means[side]),
                unscale(t[i, 2 + side], scales[2 + side], means[2 + side]),
                anchors[i // classes, side],
                anchors[i // classes, 2 + side],
                clip,
            )
            out[i, side] = low
            out[i, 2 + side] = high


@jit
def encode_loop(begin, end, boxes, anchors, scales, means, classes, out):
    """One item is one box; arrays are (boxes, 4)."""
    for i in range(begin, end):
        for side in range(2):
            shift, growth = encode_span(
                boxes[i, side],
                boxes[i, 2 + side],
                anchors[i // classes, side],
                anchors[i // classes, 2 + side],
            )
            out[i, side] = rescale(shift, scales[side], means[side])
            out[i, 2 + side] = rescale(growth, scales[2 + side], means[2 + side])


def by_box(planes, *arrays):
    """Views of arrays as (boxes, 4), whichever way they lie in memory."""
    if planes:
        return tuple(array.reshape((4, array.size // 4)).T for array in arrays)
    return tuple(array.reshape((array.size // 4, 4)) for array in arrays)


def decode_bbox(box_predictions, anchors, decode_clip, scales, means, classes, planes, out):
    """Kernel of decode_bbox."""
    real = out.dtype.type
    t, a, o = by_box(planes, box_predictions, anchors, out)
    numbers = tuple(tuple(map(real, four)) for four in (scales, means))
    spread(decode_loop, out.size // 4, 8192, t, a, real(decode_clip), *numbers, classes, o)


def encode_bbox(boxes, anchors, scales, means, classes, planes, out):
    """Kernel of encode_bbox."""
    real = out.dtype.type
    b, a, o = by_box(planes, boxes, anchors, out)
    numbers = tuple(tuple(map(real, four)) for four in (scales, means))
    spread(encode_loop, out.size // 4, 8192, b, a, *numbers, classes, o)
