"""Running maximum and minimum with their indices."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detops.operators import _checks
from detops.operators._call import Call
from detops.runtime import _registry
from detops.runtime._registry import Backend

_INT64 = np.dtype(np.int64)


class Extremes(NamedTuple):
    """Running extremes and where they were found.

    Attributes
    ----------
    values : numpy.ndarray
        The extreme of all elements up to and including each one.
    indices : numpy.ndarray of int64
        The position of that extreme along the axis.
    """

    values: NDArray[Any]
    indices: NDArray[np.int64]


def cummax(
    x: ArrayLike,
    axis: int = -1,
    *,
    out: tuple[NDArray[Any], NDArray[Any]] | None = None,
    backend: Backend | None = None,
) -> Extremes:
    """Return the running maximum along an axis, and the index where it stands.

    Parameters
    ----------
    x : array_like of bool, an integer type, float16, float32 or float64
        Any shape, 0-d included.
    axis : int, default -1
        The axis to run along.
    out : tuple of 2 numpy.ndarray, optional
        Where to write values and indices: their shapes and dtypes, C-contiguous.
    backend : {"cython", "numba", "cuda"}, optional
        None takes CUDA where the input lives on a GPU, else Cython.

    Returns
    -------
    values : numpy.ndarray
        Shape and dtype of `x`.
    indices : numpy.ndarray of int64
        Shape of `x`. On a tie the later index.

    Raises
    ------
    TypeError
        If `x` has another dtype, or `axis` is no integer.
    ValueError
        If `x` has no such axis, or `out` does not fit.

    See Also
    --------
    cummin : The running minimum.

    Notes
    -----
    Once a NaN is seen it stays, with the index of the latest NaN. 0.0 and -0.0 tie, and the value takes the sign of
    the later one. The definition is that of ``torch.cummax`` and of MMCV's operator ``cummax``.

    Examples
    --------
    >>> import numpy as np
    >>> import detops
    >>> detops.cummax(np.array([1, 3, 2, 3]))
    Extremes(values=array([1, 3, 3, 3]), indices=array([0, 1, 1, 3]))
    """
    return _scan(x, axis, False, out, backend)


def cummin(
    x: ArrayLike,
    axis: int = -1,
    *,
    out: tuple[NDArray[Any], NDArray[Any]] | None = None,
    backend: Backend | None = None,
) -> Extremes:
    """Return the running minimum along an axis, and the index where it stands.

    Parameters
    ----------
    x : array_like of bool, an integer type, float16, float32 or float64
        Any shape, 0-d included.
    axis : int, default -1
        The axis to run along.
    out : tuple of 2 numpy.ndarray, optional
        Where to write values and indices: their shapes and dtypes, C-contiguous.
    backend : {"cython", "numba", "cuda"}, optional
        None takes CUDA where the input lives on a GPU, else Cython.

    Returns
    -------
    values : numpy.ndarray
        Shape and dtype of `x`.
    indices : numpy.ndarray of int64
        Shape of `x`. On a tie the later index.

    Raises
    ------
    TypeError
        If `x` has another dtype, or `axis` is no integer.
    ValueError
        If `x` has no such axis, or `out` does not fit.

    See Also
    --------
    cummax : The running maximum.

    Notes
    -----
    Once a NaN is seen it stays, with the index of the latest NaN. 0.0 and -0.0 tie, and the value takes the sign of
    the later one. The definition is that of ``torch.cummin`` and of MMCV's operator ``cummin``.

    Examples
    --------
    >>> import numpy as np
    >>> import detops
    >>> detops.cummin(np.array([3, 1, 2, 1]))
    Extremes(values=array([3, 1, 1, 1]), indices=array([0, 1, 1, 3]))
    """
    return _scan(x, axis, True, out, backend)


def _scan(x: Any, axis: int, smallest: bool, out: Any, backend: str | None) -> Extremes:
    call = Call(backend, x=x)
    computed = call.check_dtype(_checks.NUMBERS, "x")
    x = call["x"]
    shape = x.shape
    position = _checks.axis("axis", axis, len(shape))
    results = call.results(out, (shape, _checks.native(x.dtype), computed), (shape, _INT64, _INT64))
    if x.size:
        # Any array is (outer, length, inner) to the kernel; 0-d is one row of one element.
        length, inner = shape[position] if shape else 1, math.prod(shape[position + 1 :])
        x = call.space.cast(x, computed).reshape((x.size // (length * inner), length, inner))
        _registry.kernel("cumulative", call.backend, computed)(x, smallest, *results.buffers)
    return Extremes._make(results.deliver())
