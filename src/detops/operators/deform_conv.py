"""Deformable convolution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detops._messages import shown
from detops.operators import _checks
from detops.operators._call import Call
from detops.runtime import _registry
from detops.runtime._registry import Backend


def deform_conv2d(
    x: ArrayLike,
    offset: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    *,
    mask: ArrayLike | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int | None = None,
    offset_groups: int | None = None,
    im2col_step: int | None = None,
    out: NDArray[Any] | None = None,
    backend: Backend | None = None,
) -> NDArray[np.floating[Any]]:
    """Convolve a map whose sampling points are moved by offsets, and weighed by a mask (version 2).

    At each position of the output, tap (i, j) of the kernel reads `x` at::

        y = out_y * stride - padding_top + i * dilation + offset_y
        x = out_x * stride - padding_left + j * dilation + offset_x

    bilinearly, times the mask. With offsets of 0 and no mask that is an ordinary convolution.

    Parameters
    ----------
    x : array_like of float16, float32 or float64
        Shape (N, C, H, W).
    offset : array_like of float16, float32 or float64
        In pixels: shape (N, 2 * offset_groups * kernel_H * kernel_W, out_H, out_W), for each tap dy, then dx.
    weight : array_like of float16, float32 or float64
        Shape (O, C / groups, kernel_H, kernel_W).
    bias : array_like of float16, float32 or float64, optional
        Shape (O,); None for zeros.
    mask : array_like of float16, float32 or float64, optional
        Shape (N, offset_groups * kernel_H * kernel_W, out_H, out_W); None for ones.
    stride : int or (int, int), default 1
        Along y and x, at least 1.
    padding : int, (int, int) or (int, int, int, int), default 0
        Zeros around the map: everywhere, (above and below, left and right), or (top, left, bottom, right).
    dilation : int or (int, int), default 1
        Along y and x, at least 1.
    groups : int, optional
        Number of groups of channels and outputs; each output sees the channels of its group. None reads it off the
        shapes of `x` and `weight`.
    offset_groups : int, optional
        Number of groups of channels, each with its own offsets and mask. Independent of `groups`. None reads it off
        the shapes of `offset` and `weight`.
    im2col_step : int, optional
        How many images at most are worked on at a time. It bounds the scratch memory: beside the weights once more, it
        is `im2col_step` copies of an image and 2 MiB or less for each thread (on CUDA, the columns of
        `im2col_step` images: kernel_H * kernel_W * C * out_H * out_W numbers each). None chooses by the size of
        the cache. It never changes the result.
    out : numpy.ndarray, optional
        Where to write the result: its shape and dtype, C-contiguous.
    backend : {"cython", "numba", "cuda"}, optional
        None takes CUDA where an input lives on a GPU, else Cython.

    Returns
    -------
    numpy.ndarray
        Shape (N, O, out_H, out_W), dtype of `x`, where out_H = (H + padding_top + padding_bottom - dilation *
        (kernel_H - 1) - 1) // stride + 1, and out_W likewise.

    Raises
    ------
    TypeError
        If an argument has a wrong dtype or type.
    ValueError
        If shapes do not fit each other or the groups, or the output would have no element along an axis.

    Notes
    -----
    A point that is not strictly inside (-1, H) x (-1, W) reads 0, and so does one with a NaN or infinite
    coordinate. Between the outermost elements and that frame the map fades to 0. A NaN or infinite element
    reaches every point that has it among its four neighbors, with whatever weight.

    All is computed in the dtype of `x` (float32 for float16); arguments of other dtypes are rounded to it.

    The definition is that of ONNX's DeformConv, torchvision's deform_conv2d and MMCV's DeformConv2d (without mask)
    and ModulatedDeformConv2d (with mask). The original code of the first paper treated points at the border in
    another way. There is no gradient.

    Examples
    --------
    >>> import numpy as np
    >>> import detops
    >>> x = np.arange(9.0).reshape(1, 1, 3, 3)
    >>> offset = np.zeros((1, 2, 3, 3))
    >>> offset[0, 1] = 0.5  # half a pixel to the right
    >>> detops.deform_conv2d(x, offset, np.ones((1, 1, 1, 1)))
    array([[[[0.5, 1.5, 1. ],
             [3.5, 4.5, 2.5],
             [6.5, 7.5, 4. ]]]])
    """
    call = Call(backend, x=x, offset=offset, weight=weight, bias=bias, mask=mask)
    dtype = call.check_dtype(_checks.FLOATS, "x", "offset", "weight", "bias", "mask")
    strides = _steps("stride", stride)
    dilations = _steps("dilation", dilation)
    sides = _sides(padding)
    step = 0 if im2col_step is None else min(_checks.integer("im2col_step", im2col_step, at_least=1), MOST_PADDED)
    groups, offset_groups = _counts(call, groups, offset_groups)
    shape = _result_shape(call, strides, sides, dilations, groups, offset_groups)
    results = call.results(out, (shape, _checks.native(call["x"].dtype), dtype))
    if 0 not in shape:
        _registry.kernel("deform_conv2d", call.backend, dtype)(
            *(call.cast(name, dtype) for name in ("x", "offset", "weight", "bias", "mask")),
            strides,
            sides[:2],
            dilations,
            groups,
            offset_groups,
            step,
            *results.buffers,
        )
    return results.deliver()


# Positions are sums of a few numbers, none of them larger than this, so that no index overflows.
MOST_PADDED = 1 << 60


def _steps(name: str, value: Any) -> tuple[int, int]:
    """Return a stride or dilation. One beyond all positions is never taken, and need not fit an index."""
    rows, columns = _checks.pair(name, value, at_least=1)
    return min(rows, MOST_PADDED), min(columns, MOST_PADDED)


def _sides(padding: Any) -> tuple[int, ...]:
    """Return the padding as (top, left, bottom, right)."""
    items = _checks.items(padding)
    if items is None:
        items = (padding,) * 2
    if len(items) not in (2, 4):
        raise ValueError(f"padding: expected an int, 2 or 4 ints, got {shown(items)}")
    numbers = tuple(_checks.integer("padding", item, at_least=0) for item in items)
    return numbers if len(numbers) == 4 else numbers * 2


def parts(whole: int, part: int) -> int:
    """Return how many parts make the whole; 1 where no number does, so that a check of shapes says what is wrong."""
    return whole // part if whole > 0 and part > 0 and whole % part == 0 else 1


def _counts(call: Call, groups: Any, offset_groups: Any) -> tuple[int, int]:
    """Return the numbers of groups, those that are not given as the shapes have them."""
    x, weight, offset = (tuple(call[name].shape) for name in ("x", "weight", "offset"))
    _checks.shape("x", x, ("N", "C", "H", "W"))
    _checks.shape("weight", weight, ("O", "C / groups", "kernel_H", "kernel_W"))
    _checks.shape("offset", offset, ("N", "2 * offset_groups * kernel_H * kernel_W", "out_H", "out_W"))
    return (
        parts(x[1], weight[1]) if groups is None else _checks.integer("groups", groups, at_least=1),
        parts(offset[1], 2 * weight[2] * weight[3])
        if offset_groups is None
        else _checks.integer("offset_groups", offset_groups, at_least=1),
    )


def _result_shape(
    call: Call,
    stride: tuple[int, int],
    sides: tuple[int, ...],
    dilation: tuple[int, int],
    groups: int,
    offset_groups: int,
) -> tuple[int, ...]:
    """Return the shape of the result; ValueError if the arguments' shapes do not fit each other."""
    x, weight = tuple(call["x"].shape), tuple(call["weight"].shape)
    _checks.divisible("x: the number of channels", x[1], "groups", groups)
    _checks.divisible("x: the number of channels", x[1], "offset_groups", offset_groups)
    _checks.shape("weight", weight, ("O", x[1] // groups, "kernel_H", "kernel_W"))
    _checks.divisible("weight: the number of outputs", weight[0], "groups", groups)
    if 0 in weight[2:]:
        raise ValueError(f"weight: expected a kernel of at least 1 x 1, got shape {weight}")
    size = []
    for axis in range(2):
        padded = x[2 + axis] + sides[axis] + sides[2 + axis]
        if padded > MOST_PADDED:
            raise ValueError(f"padding: expected a padded {'HW'[axis]} of at most {MOST_PADDED}, got {shown(padded)}")
        reach = dilation[axis] * (weight[2 + axis] - 1) + 1
        if padded < reach:
            raise ValueError(f"x: expected a padded {'HW'[axis]} of at least the kernel's {reach}, got {padded}")
        size.append((padded - reach) // stride[axis] + 1)
    taps = offset_groups * weight[2] * weight[3]
    _checks.shape("offset", call["offset"].shape, (x[0], 2 * taps, *size))
    if call.get("mask") is not None:
        _checks.shape("mask", call["mask"].shape, (x[0], taps, *size))
    if call.get("bias") is not None:
        _checks.shape("bias", call["bias"].shape, (weight[0],))
    return x[0], weight[0], *size
