"""decode_bbox and encode_bbox inside compiled code."""

import numpy as np

from detops._numba.boxes import decode_loop, encode_loop
from detops._numba.spread import jit


@jit
def _layout(shape, anchors, axis):
    """Return how many boxes in a row share an anchor, and how many have their first coordinates side by side."""
    last = len(shape) - 1
    position = axis + last + 1 if axis < 0 else axis
    if position < 0 or position > last:
        raise ValueError("axis: expected an axis of the boxes")
    fits = len(shape) == len(anchors) and anchors[position] == 4
    inner = 1
    for i in range(last + 1):
        if i != position:
            fits = fits and shape[i] == anchors[i]
        if i > position:
            inner *= shape[i]
    many = position == last and shape[position] % 4 == 0
    if not fits or not (many or shape[position] == 4):
        raise ValueError("anchors: expected the shape of the boxes, with 4 coordinates along the axis")
    return max(shape[position] // 4, 1), max(inner, 1)


@jit
def _numbers(four, like):
    """Four numbers of the type of an array's elements."""
    real = like.dtype.type
    return real(four[0]), real(four[1]), real(four[2]), real(four[3])


@jit
def _groups(array, dtype, inner):
    """Coordinates as (groups, 4, inner)."""
    return np.ascontiguousarray(array).astype(dtype).reshape((array.size // (4 * inner), 4, inner))


@jit
def _bound(clip, none, like):
    """A bound of the type of an array's elements; `none` where there is no bound."""
    return like.dtype.type(none if clip is None else clip)


@jit
def decode_bbox(
    box_predictions,
    anchors,
    decode_clip=None,
    scales=(1, 1, 1, 1),
    means=(0, 0, 0, 0),
    axis=-1,
    lower_clip=None,
):
    """``detops.decode_bbox`` for compiled code."""
    classes, inner = _layout(box_predictions.shape, anchors.shape, axis)
    out = np.empty(box_predictions.shape, box_predictions.dtype)
    clips = _bound(lower_clip, -np.inf, out), _bound(decode_clip, np.inf, out)
    numbers = _numbers(scales, out), _numbers(means, out)
    t, a = _groups(box_predictions, out.dtype, inner), _groups(anchors, out.dtype, inner)
    decode_loop(0, out.size // 4, t, a, *clips, *numbers, classes, out.reshape(t.shape))
    return out


@jit
def encode_bbox(boxes, anchors, scales=(1, 1, 1, 1), means=(0, 0, 0, 0), axis=-1):
    """``detops.encode_bbox`` for compiled code."""
    classes, inner = _layout(boxes.shape, anchors.shape, axis)
    out = np.empty(boxes.shape, boxes.dtype)
    numbers = _numbers(scales, out), _numbers(means, out)
    b, a = _groups(boxes, out.dtype, inner), _groups(anchors, out.dtype, inner)
    encode_loop(0, out.size // 4, b, a, *numbers, classes, out.reshape(b.shape))
    return out
