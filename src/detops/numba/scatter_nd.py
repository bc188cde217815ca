"""scatter_nd inside compiled code."""

import numpy as np

from detops._numba.scatter_nd import check_loop, scatter_parts
from detops._numba.spread import jit


@jit
def _code(reduction):
    if reduction == "none":
        return 0
    if reduction == "add":
        return 1
    if reduction == "mul":
        return 2
    if reduction == "min":
        return 3
    if reduction == "max":
        return 4
    raise ValueError("reduction: expected 'none', 'add', 'mul', 'min' or 'max'")


@jit
def scatter_nd(data, indices, updates, reduction="none"):
    """``detops.scatter_nd`` of numbers for compiled code."""
    code = _code(reduction)
    depth = indices.shape[indices.ndim - 1]
    if depth > data.ndim:
        raise ValueError("indices: expected a last axis of at most the number of data's axes")
    tuples, slots, row = 1, 1, 1
    for axis in range(indices.ndim - 1):
        tuples *= indices.shape[axis]
    lengths = np.empty(depth, np.int64)
    for axis in range(data.ndim):
        if axis < depth:
            lengths[axis] = data.shape[axis]
            slots *= data.shape[axis]
        else:
            row *= data.shape[axis]
    if updates.size != tuples * row:
        raise ValueError("updates: expected shape indices.shape[:-1] + data.shape[k:]")
    positions = np.ascontiguousarray(indices).astype(np.int64).reshape((tuples, depth))
    bad = np.zeros(1, np.int64)
    check_loop(0, tuples, positions, lengths, bad)
    if bad[0]:
        raise IndexError("indices: out of range")
    out = np.ascontiguousarray(data).copy()
    before = out.reshape((slots, row))
    after = np.ascontiguousarray(updates).reshape((tuples, row))
    scatter_parts(0, 1, slots, before, positions, after, lengths, code, before)
    return out
