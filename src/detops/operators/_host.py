"""Arguments of functions that NumPy computes: arrays in host memory, in the type to compute in."""

from typing import Any

import numpy as np

from detops.operators import _call, _checks, _plain


def array(name: str, value: Any, allowed: _checks.Dtypes) -> tuple[np.ndarray, np.dtype]:
    """Return an argument in the type to compute in, and the type of what is computed of it: integers give float64."""
    given = plain(name, value)
    computed = allowed.of(name, given.dtype)
    return np.asarray(given, computed), _checks.native(given.dtype) if given.dtype.kind == "f" else computed


def plain(name: str, value: Any) -> np.ndarray:
    """Return an argument as it is; TypeError for one on a GPU."""
    if _call.on_gpu(value):
        raise TypeError(f"{name}: expected an array in host memory, got {type(value).__name__} on a GPU")
    return _plain.array(name, value)


def rows(name: str, array: np.ndarray, columns: int) -> np.ndarray:
    """Return an array of so many numbers along its last axis; an empty list is none."""
    if array.shape == (0,):
        return array.reshape(0, columns)
    if array.ndim == 0 or array.shape[-1] != columns:
        raise ValueError(f"{name}: expected shape (..., {columns}), got {array.shape}")
    return array


def rounded(result: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return a result in its type. What is beyond the range of float16 is infinite: rounding, not an error."""
    with np.errstate(over="ignore"):
        return result.astype(dtype, copy=False)
