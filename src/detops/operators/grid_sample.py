"""Sampling of a map at the points of a grid."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detops._codes import Border, GridMode, words
from detops.operators import _checks
from detops.operators._call import Call
from detops.runtime import _registry
from detops.runtime._registry import Backend

MODES = words(GridMode)
PADDING_MODES = words(Border, without=[Border.REFLECT_FIRST])


def grid_sample(
    x: ArrayLike,
    grid: ArrayLike,
    *,
    mode: Literal["linear", "nearest", "cubic", "bilinear", "bicubic"] = "linear",
    padding_mode: Literal["zeros", "border", "reflection"] = "zeros",
    align_corners: bool = False,
    reflect_first: bool = False,
    out: NDArray[Any] | None = None,
    backend: Backend | None = None,
) -> NDArray[np.floating[Any]]:
    """Sample a map at the points of a grid.

    Parameters
    ----------
    x : array_like of float16, float32 or float64
        Shape (N, C, H, W) or (N, C, D, H, W).
    grid : array_like of float16, float32 or float64
        Where to sample: shape (N, out_H, out_W, 2) for a 4-D `x`, (N, out_D, out_H, out_W, 3) for a 5-D one. The last
        axis is (x, y) or (x, y, z) in units of half the map: -1 is its left, upper or front end, 1 the other one.
    mode : {"linear", "nearest", "cubic"}, default "linear"
        Interpolation: linear between the 2 neighbors along each axis, the nearest element (halfway goes to the even
        index), or cubic convolution with a = -0.75 over 4 neighbors along each axis. torch's names "bilinear" and
        "bicubic" mean linear and cubic.
    padding_mode : {"zeros", "border", "reflection"}, default "zeros"
        What lies outside the map: 0, the nearest element of the border, or the map mirrored at its ends as often as
        needed. It applies to each neighbor of a point on its own.
    align_corners : bool, default False
        Whether -1 and 1 (and the mirrors of "reflection") are the centers of the outermost elements, rather than
        their outer edges.
    reflect_first : bool, default False
        Of "nearest" under "reflection" alone: whether a point is mirrored into the map before its nearest element is
        chosen, as torch and MMCV do, rather than after it, as ONNX does. They differ for points outside the map that
        are exactly halfway between elements.
    out : numpy.ndarray, optional
        Where to write the result: its shape and dtype, C-contiguous.
    backend : {"cython", "numba", "cuda"}, optional
        None takes CUDA where an input lives on a GPU, else Cython.

    Returns
    -------
    numpy.ndarray
        Shape (N, C, out_H, out_W) or (N, C, out_D, out_H, out_W), dtype of `x`.

    Raises
    ------
    TypeError
        If an argument has a wrong dtype or type.
    ValueError
        If shapes do not fit, an option is unknown, or `x` has a spatial axis of length 0 while `padding_mode` is not
        "zeros".

    Notes
    -----
    Positions are computed in the dtype of `x` (float32 for float16); a `grid` of another dtype is rounded to it.

    A point that is not finite never fails. Under "zeros" a NaN or infinite coordinate is outside the map: the result
    is 0. Under "border" an infinite one is clamped, and a NaN samples index 0. Under "reflection" both sample index 0,
    and so does one that is more than about a billion map sizes away. A NaN or infinite element of `x` reaches every
    point that has it among its neighbors, with whatever weight.

    The definition is that of ONNX's GridSample, which agrees with ``torch.nn.functional.grid_sample`` but for what
    `reflect_first` says. A cubic sample of a volume, which ONNX defines, torch and ONNX Runtime do not have. There is
    no gradient.

    Examples
    --------
    >>> import numpy as np
    >>> import detops
    >>> x = np.array([[[[0.0, 1.0], [2.0, 3.0]]]])
    >>> grid = np.array([[[[0.0, 0.0], [-1.0, 1.0], [3.0, 0.0]]]])
    >>> detops.grid_sample(x, grid, align_corners=True)
    array([[[[1.5, 2. , 0. ]]]])
    """
    call = Call(backend, x=x, grid=grid)
    dtype = call.check_dtype(_checks.FLOATS, "x", "grid")
    taps = MODES[_checks.choice("mode", mode, MODES)]
    border = PADDING_MODES[_checks.choice("padding_mode", padding_mode, PADDING_MODES)]
    align_corners = _checks.flag("align_corners", align_corners)
    if _checks.flag("reflect_first", reflect_first) and (taps, border) == (GridMode.NEAREST, Border.REFLECTION):
        border = Border.REFLECT_FIRST.value
    shape, points = _shapes(tuple(call["x"].shape), tuple(call["grid"].shape))
    if border and 0 in shape[2:]:
        raise ValueError(f"x: expected spatial axes of at least 1 for padding_mode {padding_mode!r}, got {shape}")
    results = call.results(out, ((*shape[:2], *points), _checks.native(call["x"].dtype), dtype))
    count = math.prod(points)
    if shape[0] * shape[1] * count:
        # To the kernel a map is 5-D, and the points are in one row.
        volume = shape if len(shape) == 5 else (*shape[:2], 1, *shape[2:])
        _registry.kernel("grid_sample", call.backend, dtype)(
            call.cast("x", dtype).reshape(volume),
            call.cast("grid", dtype).reshape((shape[0], count, len(points))),
            taps,
            border,
            align_corners,
            results.buffers[0].reshape((*shape[:2], count)),
        )
    return results.deliver()


def _shapes(x: tuple[int, ...], grid: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shape of x and the spatial shape of the result."""
    if len(x) not in (4, 5):
        raise ValueError(f"x: expected shape (N, C, H, W) or (N, C, D, H, W), got {x}")
    axes = ("out_H", "out_W") if len(x) == 4 else ("out_D", "out_H", "out_W")
    _checks.shape("grid", grid, (x[0], *axes, len(axes)))
    return x, grid[1:-1]
