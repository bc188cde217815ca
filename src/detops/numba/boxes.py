"""decode_bbox and encode_bbox inside compiled code."""

import numpy as np

from detops._numba.boxes import decode_loop, encode_loop
from detops._numba.spread import jit


@jit
def _layout(shape, anchors, axis):
    """Return whether the coordinates come first, and how many boxes in a row share an anchor."""
    last = len(shape) - 1
    position = axis + last + 1 if axis < 0 else axis
    if position != 0 and position != last:
        raise ValueError("axis: expected the first or the last axis")
    first = position == 0 and last > 0
    many = last == 1 and not first and len(anchors) == 2 and shape != anchors
    if many and anchors[0] == shape[0] and anchors[1] == 4 and shape[1] % 4 == 0:
        return False, max(shape[1] // 4, 1)
    if shape != anchors or shape[position] != 4:
        raise ValueError("anchors: expected the shape of the boxes, with 4 coordinates, or (num_boxes, 4)")
    return first, 1


@jit
def _numbers(four, like):
    """Four numbers of the type of an array's elements."""
    real = like.dtype.type
    return real(four[0]), real(four[1]), real(four[2]), real(four[3])


@jit
def _rows(array, dtype):
    """Coordinates as (boxes, 4), where they come last."""
    return np.ascontiguousarray(array).astype(dtype).reshape((array.size // 4, 4))


@jit
def _planes(array, dtype):
    """Coordinates as (boxes, 4), where they come first."""
    return np.ascontiguousarray(array).astype(dtype).reshape((4, array.size // 4)).T


@jit
def decode_bbox(box_predictions, anchors, decode_clip=None, scales=(1, 1, 1, 1), means=(0, 0, 0, 0), axis=-1):
    """``detops.decode_bbox`` for compiled code."""
    first, classes = _layout(box_predictions.shape, anchors.shape, axis)
    out = np.empty(box_predictions.shape, box_predictions.dtype)
    clip = out.dtype.type(np.inf if decode_clip is None else decode_clip)
    numbers = _numbers(scales, out), _numbers(means, out)
    count = out.size // 4
    if first:
        t, a = _planes(box_predictions, out.dtype), _planes(anchors, out.dtype)
        decode_loop(0, count, t, a, clip, *numbers, classes, out.reshape((4, count)).T)
    else:
        rows, reference = _rows(box_predictions, out.dtype), _rows(anchors, out.dtype)
        decode_loop(0, count, rows, reference, clip, *numbers, classes, out.reshape((count, 4)))
    return out


@jit
def encode_bbox(boxes, anchors, scales=(1, 1, 1, 1), means=(0, 0, 0, 0), axis=-1):
    """``detops.encode_bbox`` for compiled code."""
    first, classes = _layout(boxes.shape, anchors.shape, axis)
    out = np.empty(boxes.shape, boxes.dtype)
    numbers = _numbers(scales, out), _numbers(means, out)
    count = out.size // 4
    if first:
        b, a = _planes(boxes, out.dtype), _planes(anchors, out.dtype)
        encode_loop(0, count, b, a, *numbers, classes, out.reshape((4, count)).T)
    else:
        rows, reference = _rows(boxes, out.dtype), _rows(anchors, out.dtype)
        encode_loop(0, count, rows, reference, *numbers, classes, out.reshape((count, 4)))
    return out
