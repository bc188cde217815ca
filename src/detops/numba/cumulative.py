"""cummax and cummin inside compiled code."""

import numpy as np

from detops._numba.cumulative import scan
from detops._numba.spread import jit


@jit
def _extremes(x, axis, smallest):
    position = axis + x.ndim if axis < 0 else axis
    if position < 0 or position >= x.ndim:
        raise ValueError("axis: out of range")
    outer = 1
    for i in range(position):
        outer *= x.shape[i]
    length = x.shape[position]
    source = np.ascontiguousarray(x)
    values = np.empty(x.shape, x.dtype)
    indices = np.empty(x.shape, np.int64)
    if x.size > 0:
        inner = x.size // (outer * length)
        split = (outer, length, inner)
        scan(0, outer * inner, source.reshape(split), smallest, values.reshape(split), indices.reshape(split))
    return values, indices


@jit
def cummax(x, axis=-1):
    """``detops.cummax`` for compiled code: values and indices of the running maximum along an axis."""
    return _extremes(x, axis, False)


@jit
def cummin(x, axis=-1):
    """``detops.cummin`` for compiled code: values and indices of the running minimum along an axis."""
    return _extremes(x, axis, True)
