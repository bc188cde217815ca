"""deform_conv2d inside compiled code."""

import numpy as np

from detops._numba.deform_conv import convolve
from detops._numba.spread import jit


@jit
def _floats(array, like, shape):
    """An array in the dtype of another one and of this shape."""
    if array.size != _size(shape):
        raise ValueError("offset, mask or bias: does not fit")
    return np.ascontiguousarray(array).astype(like.dtype).reshape(shape)


@jit
def _size(shape):
    total = 1
    for length in shape:
        total *= length
    return total


@jit
def deform_conv2d(
    x,
    offset,
    weight,
    bias=None,
    mask=None,
    stride=(1, 1),
    padding=(0, 0, 0, 0),
    dilation=(1, 1),
    groups=1,
    offset_groups=1,
):
    """``detops.deform_conv2d`` for compiled code.

    Shapes are those of the public function; ``stride`` and ``dilation`` are (y, x), ``padding`` is (top, left, bottom,
    right).
    """
    if min(stride) < 1 or min(dilation) < 1 or min(padding) < 0 or groups < 1 or offset_groups < 1:
        raise ValueError("stride, dilation, padding or groups: out of range")
    images, channels, height, width = x.shape
    outputs, group_width, rows, columns = weight.shape
    if channels % groups or channels % offset_groups or outputs % groups or group_width != channels // groups:
        raise ValueError("weight: does not fit x and the groups")
    reach_y = height + padding[0] + padding[2] - dilation[0] * (rows - 1) - 1
    reach_x = width + padding[1] + padding[3] - dilation[1] * (columns - 1) - 1
    if min(reach_y, reach_x) < 0 or min(rows, columns) < 1:
        raise ValueError("weight: does not fit the padded x")
    out_height, out_width = reach_y // stride[0] + 1, reach_x // stride[1] + 1
    taps = rows * columns
    terms = np.empty(0, x.dtype) if bias is None else _floats(bias, x, (outputs,))
    if mask is None:
        factors = np.empty((images, 0, 0, 0, 0), x.dtype)
    else:
        factors = _floats(mask, x, (images, offset_groups, taps, out_height, out_width))
    out = np.empty((images, outputs, out_height, out_width), x.dtype)
    convolve(
        0,
        images * out_height,
        np.ascontiguousarray(x),
        _floats(offset, x, (images, offset_groups, taps, 2, out_height, out_width)),
        _floats(weight, x, (outputs, group_width, taps)),
        terms,
        factors,
        stride,
        padding[:2],
        dilation,
        columns,
        groups,
        out,
    )
    return out
