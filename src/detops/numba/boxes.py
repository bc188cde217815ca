"""decode_bbox and encode_bbox inside compiled code."""

import numpy as np

from detops._numba.boxes import decode_loop, encode_loop
from detops._numba.spread import jit


@jit
def _layout(shape, anchors, axis):
    """Return how many boxes in a row share an anchor, and how many have their first coordinates side by side."""
    ndim = len(shape)
    position = axis + ndim if axis < 0 else axis
    if position < 0 or position >= ndim:
        raise ValueError("axis: expected an axis of the boxes")
    missing = ndim - len(anchors)
    fits = 0 <= missing <= position
    leading = True
    inner = 1
    for i in range(max(missing, 0), ndim):
        length = anchors[i - missing]
        leading = leading and i < position and length == 1
        if not leading and length != (4 if i == position else shape[i]):
            fits = False
        if i > position:
            inner *= shape[i]
    classes = shape[position] // 4
    if not fits or shape[position] % 4 != 0 or (classes != 1 and position != ndim - 1):
        raise ValueError("anchors: expected the shape of the boxes, or their last axes, with 4 coordinates")
    return max(classes, 1), max(inner, 1)


@jit
def _numbers(four, like):
    """Four numbers of the type of an array's elements."""
    real = like.dtype.type
    return real(four[0]), real(four[1]), real(four[2]), real(four[3])


@jit
def _by_group(array, dtype, inner):
    """Coordinates as (groups, 4, inner)."""
    return np.ascontiguousarray(array).astype(dtype).reshape((array.size // (4 * inner), 4, inner))


@jit
def decode_bbox(
    box_predictions, anchors, decode_clip=None, scales=(1, 1, 1, 1), means=(0, 0, 0, 0), axis=-1, lower_clip=None
):
    """``detops.decode_bbox`` for compiled code."""
    classes, inner = _layout(box_predictions.shape, anchors.shape, axis)
    out = np.empty(box_predictions.shape, box_predictions.dtype)
    lower = out.dtype.type(-np.inf if lower_clip is None else lower_clip)
    upper = out.dtype.type(np.inf if decode_clip is None else decode_clip)
    t, a = _by_group(box_predictions, out.dtype, inner), _by_group(anchors, out.dtype, inner)
    numbers = _numbers(scales, out), _numbers(means, out)
    decode_loop(0, out.size // 4, t, a, lower, upper, *numbers, classes, out.reshape(t.shape))
    return out


@jit
def encode_bbox(boxes, anchors, scales=(1, 1, 1, 1), means=(0, 0, 0, 0), axis=-1):
    """``detops.encode_bbox`` for compiled code."""
    classes, inner = _layout(boxes.shape, anchors.shape, axis)
    out = np.empty(boxes.shape, boxes.dtype)
    b, a = _by_group(boxes, out.dtype, inner), _by_group(anchors, out.dtype, inner)
    numbers = _numbers(scales, out), _numbers(means, out)
    encode_loop(0, out.size // 4, b, a, *numbers, classes, out.reshape(b.shape))
    return out
