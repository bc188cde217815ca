"""cummax and cummin inside compiled code."""

import numpy as np

from detops._numba.cumulative import scan
from detops.numba import _kinds
from detops.numba._kinds import inlined
from detops.numba._operator import operator
from detops.operators.cumulative import Extremes


@inlined
def _split_one(x, position):
    return 1, 1, 1


@inlined
def _split(x, position):
    """Any array is (outer, length, inner) to the loop."""
    outer, inner = 1, 1
    for i in range(x.ndim):
        if i < position:
            outer *= x.shape[i]
        elif i > position:
            inner *= x.shape[i]
    return outer, x.shape[position], inner


def _extremes(x, axis, smallest):
    """Return the operator's code for one direction."""
    x = _kinds.array("x", x)
    dtype = _kinds.real_numbers("x", x)
    element, contiguous, whole = dtype.type, _kinds.cast(x, dtype), _kinds.integer("axis", axis)
    count, split_at = max(x.ndim, 1), _split if x.ndim else _split_one
    message = f"axis: expected an axis from {-count} to {count - 1}"

    def extremes(x, axis):
        position = whole(axis)
        if position < -count or position >= count:
            raise ValueError(message)
        values, indices = np.empty(x.shape, element), np.empty(x.shape, np.int64)
        if x.size > 0:
            outer, length, inner = split_at(x, position + count if position < 0 else position)
            split = (outer, length, inner)
            source = contiguous(x).reshape(split)
            scan(0, outer * inner, source, smallest, values.reshape(split), indices.reshape(split))
        return Extremes(values, indices)

    return extremes


@operator
def cummax(x, axis=-1):
    """``detops.cummax`` for compiled code: values and indices of the running maximum along an axis."""
    return _extremes(x, axis, False)


@operator
def cummin(x, axis=-1):
    """``detops.cummin`` for compiled code: values and indices of the running minimum along an axis."""
    return _extremes(x, axis, True)
