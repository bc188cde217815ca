"""Updates of an array at index tuples."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detops._codes import Reduction, words
from detops.operators import _checks
from detops.operators._call import HOST, Call
from detops.runtime import _registry
from detops.runtime._registry import Backend

REDUCTIONS = words(Reduction)
# For 0 and 1 a sum is the larger, and a product the smaller.
_OF_BOOL = {"add": "max", "mul": "min"}
_INT64 = np.dtype(np.int64)


def scatter_nd(
    data: ArrayLike,
    indices: ArrayLike,
    updates: ArrayLike,
    *,
    reduction: Literal["none", "add", "mul", "min", "max"] = "none",
    out: NDArray[Any] | None = None,
    backend: Backend | None = None,
) -> NDArray[Any]:
    """Return a copy of an array with updates written, or reduced, into it at index tuples.

    ::

        out = data.copy()
        for position in numpy.ndindex(indices.shape[:-1]):
            target = tuple(indices[position])
            out[target] = f(out[target], updates[position])

    Parameters
    ----------
    data : array_like, shape (d1, ..., dr) with r >= 1
        Any dtype for ``"none"``, bool or a real number type for the other reductions.
    indices : array_like of an integer type, shape (..., k) with k <= r
        Tuples of indices into the first k axes of `data`. A negative index counts from the end of its axis.
    updates : array_like, shape ``indices.shape[:-1] + data.shape[k:]``
        What comes to each tuple: dtype of `data`.
    reduction : {"none", "add", "mul", "min", "max"}, default "none"
        What f is; ``"none"`` is the update itself.
    out : numpy.ndarray, optional
        Where to write the result: shape and dtype of `data`, C-contiguous. It may be `data` itself, which is then
        updated in place.
    backend : {"cython", "numba", "cuda"}, optional
        None takes CUDA where an input lives on a GPU, else Cython.

    Returns
    -------
    numpy.ndarray
        Shape and dtype of `data`.

    Raises
    ------
    IndexError
        If an index is out of range: the message names the tuple and its position. Nothing is written then.
    TypeError
        If dtypes do not fit each other, the reduction, or, for Python objects, the GPU.
    ValueError
        If shapes do not fit, or there is no such reduction.

    Notes
    -----
    Where tuples are equal their updates come in order: with ``"none"`` the last one stays, and a floating-point sum is
    the same to the bit on every backend and any number of threads. The minimum and the maximum carry NaN, as NumPy's
    do; of 0.0 and -0.0 they keep what is there. Integers wrap around. For bool ``"add"`` and ``"max"`` are
    "or", ``"mul"`` and ``"min"`` are "and". float16 is reduced in float32 and rounded once. Strings
    of a fixed width take updates that are not wider. Python objects and strings of variable width live on the host.

    The definition is that of ONNX's ScatterND; MMCV's operator of that name is the case without a reduction.

    Examples
    --------
    >>> import numpy as np
    >>> import detops
    >>> detops.scatter_nd(np.arange(5), np.array([[1], [-1], [1]]), np.array([10, 20, 30]), reduction="add")
    array([ 0, 41,  2,  3, 24])
    """
    call = Call(backend, data=data, indices=indices, updates=updates)
    _checks.choice("reduction", reduction, REDUCTIONS)
    dtype, computed = _dtypes(call, reduction)
    shape = tuple(call["data"].shape)
    depth = _check_shapes(shape, call["indices"].shape, call["updates"].shape)
    results = call.results(out, (shape, dtype, computed), in_place="data")
    lengths = np.array(shape[:depth], np.int64)
    if dtype.hasobject:
        _scatter_objects(call, lengths, results.buffers[0])
        return results.deliver()
    code, unit = code_of(reduction, dtype), unit_of(computed)
    row = math.prod(shape[depth:]) * (computed.itemsize // unit.itemsize)
    tuples = math.prod(call["indices"].shape[:-1])
    positions = _checked_indices(call, (tuples, depth), lengths)
    arrays = (call.cast("data", computed), call.cast("updates", computed), results.buffers[0])
    before, after, target = (_as_rows(array, unit, row) for array in arrays)
    _registry.kernel("scatter_nd", call.backend, unit)(
        before, positions, after, call.space.cast(lengths, _INT64), code, target
    )
    return results.deliver()


def code_of(reduction: str, dtype: np.dtype) -> int:
    """Return the number by which kernels know a reduction of elements of this dtype."""
    return REDUCTIONS[_OF_BOOL.get(reduction, reduction) if dtype == np.bool_ else reduction]


def _dtypes(call: Call, reduction: str) -> tuple[np.dtype, np.dtype]:
    """Check the dtypes; return the result's, and the one to compute in."""
    call.check_dtype(_checks.INTEGERS, "indices")
    if reduction == "none":
        dtype = computed = _checks.native(call["data"].dtype)
    else:
        dtype, computed = _checks.native(call["data"].dtype), call.check_dtype(_checks.NUMBERS, "data")
    given = _checks.native(call["updates"].dtype)
    narrower = given.kind == dtype.kind and dtype.kind in "SU" and given.itemsize <= dtype.itemsize
    if given != dtype and not narrower:
        raise TypeError(f"updates: expected the dtype of data, {dtype}, got {given}")
    if dtype.hasobject and call.space is not HOST:
        raise TypeError(f"data: expected a dtype of plain bytes on the GPU, got {dtype}")
    return dtype, computed


def _check_shapes(data: tuple[int, ...], indices: tuple[int, ...], updates: tuple[int, ...]) -> int:
    """Check how the shapes fit; return the length of a tuple."""
    for name, shape in (("data", data), ("indices", indices)):
        if not shape:
            raise ValueError(f"{name}: expected at least 1 axis, got shape ()")
    depth = indices[-1]
    if depth > len(data):
        raise ValueError(f"indices: expected shape (..., k) with k from 0 to {len(data)}, got {tuple(indices)}")
    _checks.shape("updates", updates, (*indices[:-1], *data[depth:]))
    return depth


def unit_of(dtype: np.dtype) -> np.dtype:
    """The dtype that a kernel sees: numbers as they are, anything else as unsigned integers that it only moves."""
    if dtype in (np.float32, np.float64) or dtype in _checks.INTEGERS:
        return dtype
    return np.dtype(f"uint{8 * math.gcd(dtype.itemsize, 8)}")


def _as_rows(array: Any, unit: np.dtype, row: int) -> Any:
    """View an array as (slots, row) of units."""
    flat = array.reshape(array.size)
    flat = flat if flat.dtype == unit else flat.view(unit)
    return flat.reshape((flat.size // max(row, 1), row))


def _checked_indices(call: Call, shape: tuple[int, int], lengths: np.ndarray) -> Any:
    """Return the indices as (tuples, depth) of int64; IndexError if one is out of range."""
    if call["indices"].dtype.newbyteorder("=") == np.uint64:
        # Beyond int64 they would come out negative.
        _raise_first_bad(call, lengths)
    positions = call.cast("indices", _INT64).reshape(shape)
    bad = call.space.cast(np.zeros(1, np.int64), _INT64)
    _registry.kernel("scatter_check", call.backend, np.dtype(np.float32))(
        positions, call.space.cast(lengths, _INT64), bad
    )
    if call.space.to_host(bad)[0]:
        _raise_first_bad(call, lengths)
    return positions


def _raise_first_bad(call: Call, lengths: np.ndarray) -> None:
    """Raise IndexError for the first tuple with an index out of range, if there is any."""
    indices = call.space.to_host(call["indices"])
    bad = np.zeros(indices.shape[:-1], bool)
    for axis, length in enumerate(lengths.tolist()):
        bad |= (indices[..., axis] >= length) | (indices[..., axis] < -length)
    if bad.any():
        position = tuple(map(int, np.unravel_index(bad.argmax(), bad.shape)))
        got = tuple(map(int, indices[position]))
        raise IndexError(f"indices: expected indices into shape {tuple(lengths.tolist())}, got {got} at {position}")


def _scatter_objects(call: Call, lengths: np.ndarray, target: np.ndarray) -> None:
    _raise_first_bad(call, lengths)
    indices, updates = call["indices"], call["updates"]
    if target is not call["data"]:
        target[...] = call["data"]
    for position in np.ndindex(*indices.shape[:-1]):
        target[tuple(indices[position])] = updates[position]
