"""deform_conv2d inside compiled code."""

import numpy as np

from detops._numba.deform_conv import convolve
from detops.numba import _kinds
from detops.numba._kinds import inlined
from detops.numba._operator import operator
from detops.operators.deform_conv import MOST_PADDED, parts

# A padded length that is refused; the sum of two such and an array's is no more than an int64 holds.
TOO_MANY = MOST_PADDED + 1


def _sides(got):
    """Return a function for the padding as (top, left, bottom, right)."""
    checked = _kinds.whole_numbers("padding", got, (2, 4), "an int, 2 or 4 ints", 0)

    @inlined
    def sides(value):
        found = checked(value)
        top, left = min(found[0], TOO_MANY), min(found[1], TOO_MANY)
        return top, left, min(found[-2], TOO_MANY), min(found[-1], TOO_MANY)

    return sides


@inlined
def _length(size, before, after, taps, dilation, stride):
    """How many outputs an axis has; none is refused."""
    padded = size + before + after
    if padded >= TOO_MANY:
        raise ValueError("padding: expected a padded height and width of at most 2**60")
    if padded < 1 or (taps > 1 and dilation > (padded - 1) // (taps - 1)):
        raise ValueError("x: expected a padded height and width of at least the kernel's")
    return (padded - 1 - dilation * (taps - 1)) // stride + 1


def _groups(name, got):
    """Return a function for a number of groups: that given, or as many as the shapes say."""
    read = inlined(parts)
    if _kinds.absent(got):
        return inlined(lambda given, whole, part: read(whole, part))
    given = _kinds.integer(name, got, 1)
    return inlined(lambda value, whole, part: read(whole, part) if value is None else given(value))


@inlined
def _check_groups(x, weight, groups, offset_groups):
    if x.shape[1] % groups != 0 or x.shape[1] % offset_groups != 0:
        raise ValueError("x: expected a number of channels that groups and offset_groups divide")
    if weight.shape[1] != x.shape[1] // groups:
        raise ValueError("weight: expected shape (O, C / groups, kernel_H, kernel_W)")
    if weight.shape[0] % groups != 0:
        raise ValueError("weight: expected a number of outputs that groups divides")
    if weight.shape[2] == 0 or weight.shape[3] == 0:
        raise ValueError("weight: expected a kernel of at least 1 x 1")


def _bias(got, dtype):
    """Return a function for the terms of the outputs: none is an empty array."""
    element = dtype.type
    if _kinds.absent(got):
        return inlined(lambda bias, outputs: np.empty(0, element))
    found = _kinds.array("bias", got, ("O",))
    _kinds.floats("bias", found)
    cast = _kinds.cast(found, dtype)

    @inlined
    def terms(bias, outputs):
        if bias.shape[0] != outputs:
            raise ValueError("bias: expected shape (O,)")
        return cast(bias)

    return terms


def _maps(name, got, dtype):
    """Return a function for what each tap has at each output, (images, groups, taps, ...): none is an empty array."""
    element = dtype.type
    if _kinds.absent(got):
        return inlined(lambda array, shape: np.empty((shape[0], 0, 0, 0, 0), element))
    words = {"offset": "2 * offset_groups", "mask": "offset_groups"}[name] + " * kernel_H * kernel_W"
    found = _kinds.array(name, got, ("N", words, "out_H", "out_W"))
    _kinds.floats(name, found)
    cast, message = _kinds.cast(found, dtype), f"{name}: expected shape (N, {words}, out_H, out_W)"

    @inlined
    def maps(array, shape):
        wanted = 1
        for length in shape[1:-2]:
            wanted *= length
        fits = array.shape[0] == shape[0] and array.shape[1] == wanted
        if not (fits and array.shape[2] == shape[-2] and array.shape[3] == shape[-1]):
            raise ValueError(message)
        return cast(array).reshape(shape)

    return maps


@operator
def deform_conv2d(
    x,
    offset,
    weight,
    bias=None,
    *,
    mask=None,
    stride=1,
    padding=0,
    dilation=1,
    groups=None,
    offset_groups=None,
    im2col_step=None,
):
    """``detops.deform_conv2d`` for compiled code, which needs no ``im2col_step``: it holds the columns of one row."""
    x = _kinds.array("x", x, ("N", "C", "H", "W"))
    dtype = _kinds.floats("x", x)
    weight = _kinds.array("weight", weight, ("O", "C / groups", "kernel_H", "kernel_W"))
    _kinds.floats("weight", weight)
    if _kinds.absent(offset):
        _kinds.refuse("offset", "an array", "None")
    element, as_map, as_weight = dtype.type, _kinds.cast(x, dtype), _kinds.cast(weight, dtype)
    offsets, masks, terms = _maps("offset", offset, dtype), _maps("mask", mask, dtype), _bias(bias, dtype)
    as_stride, as_sides, as_dilation = (
        _kinds.pair("stride", stride, 1),
        _sides(padding),
        _kinds.pair("dilation", dilation, 1),
    )
    as_groups, as_offset_groups = _groups("groups", groups), _groups("offset_groups", offset_groups)
    step = _kinds.optional(im2col_step, _kinds.integer, "im2col_step", at_least=1)

    def deform_conv2d(x, offset, weight, bias, mask, stride, padding, dilation, groups, offset_groups, im2col_step):
        steps, sides, gaps = as_stride(stride), as_sides(padding), as_dilation(dilation)
        step(im2col_step)
        images, outputs, rows, columns = x.shape[0], weight.shape[0], weight.shape[2], weight.shape[3]
        taps = rows * columns
        count = as_groups(groups, x.shape[1], weight.shape[1])
        offset_count = as_offset_groups(offset_groups, offset.shape[1], 2 * taps)
        _check_groups(x, weight, count, offset_count)
        height = _length(x.shape[2], sides[0], sides[2], rows, gaps[0], steps[0])
        width = _length(x.shape[3], sides[1], sides[3], columns, gaps[1], steps[1])
        moved = offsets(offset, (images, offset_count, taps, 2, height, width))
        factors = masks(mask, (images, offset_count, taps, height, width))
        added = terms(bias, outputs)
        out = np.empty((images, outputs, height, width), element)
        if out.size > 0:
            kernel = as_weight(weight).reshape((outputs, weight.shape[1], taps))
            reads = as_map(x), moved, kernel, added, factors, steps, sides[:2], gaps, columns, count
            convolve(0, images * height, *reads, out)
        return out

    return deform_conv2d
