"""scatter_nd inside compiled code."""

import numpy as np
from numba import types

from detops._numba.scatter_nd import check_loop, scatter_parts
from detops.numba import _kinds
from detops.numba._kinds import inlined
from detops.numba._operator import operator
from detops.operators.scatter_nd import REDUCTIONS, code_of, unit_of


def _dtype(data, reduction):
    """Check the dtype of data; return it."""
    if reduction == "none" and isinstance(data.dtype, types.Complex):
        return _kinds.numpy_dtype(data.dtype)
    return _kinds.real_numbers("data", data)


def _as_rows(got, dtype):
    """Return a function that makes an array (slots, row) of what a loop moves, in numbers of its element or parts."""
    cast, unit = _kinds.cast(got, dtype), unit_of(dtype)
    parts, element = dtype.itemsize // unit.itemsize, unit.type
    if unit == dtype:
        return inlined(lambda array, slots, row: cast(array).reshape((slots, row)))

    @inlined
    def as_rows(array, slots, row):
        return cast(array).reshape(array.size).view(element).reshape((slots, row * parts))

    return as_rows


def _shape(got):
    """Return a function for a shape that can be indexed, though there be no axis."""
    return inlined(lambda array: array.shape) if got.ndim else inlined(lambda array: (0,))


@operator
def scatter_nd(data, indices, updates, *, reduction="none"):
    """``detops.scatter_nd`` of numbers for compiled code."""
    reduction = _kinds.text("reduction", reduction, REDUCTIONS)
    data, indices = _kinds.array("data", data), _kinds.array("indices", indices)
    updates = _kinds.array("updates", updates)
    dtype = _dtype(data, reduction)
    unsigned = _kinds.integers("indices", indices).kind == "u"
    for name, found in (("data", data), ("indices", indices)):
        if not found.ndim:
            _kinds.refuse(name, "at least 1 axis", "an array of 0 axes")
    if updates.dtype != data.dtype:
        _kinds.refuse("updates", f"the dtype of data, {data.dtype}", updates.dtype)
    code, element = code_of(reduction, dtype), dtype.type
    as_int64 = _kinds.cast(indices, np.dtype(np.int64))
    before, after, shape_of_updates = _as_rows(data, dtype), _as_rows(updates, dtype), _shape(updates)
    axes, leading, updated = data.ndim, indices.ndim - 1, updates.ndim

    def scatter_nd(data, indices, updates, reduction):
        depth = indices.shape[leading]
        if depth > axes:
            raise ValueError("indices: expected a last axis of at most the number of data's axes")
        shape = shape_of_updates(updates)
        fits = updated == leading + axes - depth
        tuples, slots, row = 1, 1, 1
        for i in range(leading):
            tuples *= indices.shape[i]
            fits = fits and shape[i] == indices.shape[i]
        lengths = np.empty(depth, np.int64)
        for i in range(axes):
            if i < depth:
                lengths[i] = data.shape[i]
                slots *= data.shape[i]
            else:
                row *= data.shape[i]
                fits = fits and shape[leading + i - depth] == data.shape[i]
        if not fits:
            raise ValueError("updates: expected shape indices.shape[:-1] + data.shape[k:]")
        positions = as_int64(indices).reshape((tuples, depth))
        bad = np.zeros(1, np.int64)
        check_loop(0, tuples, positions, lengths, bad)
        if unsigned:
            # Above the range of int64 they come out negative.
            for i in range(tuples):
                for j in range(depth):
                    if positions[i, j] < 0:
                        bad[0] = 1
        if bad[0]:
            raise IndexError("indices: expected indices into the first axes of data")
        out = np.empty(data.shape, element)
        reads = before(data, slots, row), positions, after(updates, tuples, row), lengths, code
        scatter_parts(0, 1, slots, *reads, before(out, slots, row))
        return out

    return scatter_nd
