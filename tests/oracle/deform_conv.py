"""Deformable convolution, one output and one tap at a time."""

import math

import numpy as np


def _read(plane, y, x):
    """Return the bilinear sample of a plane that is surrounded by zeros."""
    height, width = plane.shape
    if not (-1 < y < height and -1 < x < width):
        return 0.0
    top, left = math.floor(y), math.floor(x)
    total = 0.0
    for row, weight_y in ((top, top + 1 - y), (top + 1, y - top)):
        for column, weight_x in ((left, left + 1 - x), (left + 1, x - left)):
            if 0 <= row < height and 0 <= column < width:
                total += weight_y * weight_x * plane[row, column]
    return total


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
    (stride_y, stride_x), (dilation_y, dilation_x) = (np.broadcast_to(pair, 2).tolist() for pair in (stride, dilation))
    top, left = np.broadcast_to(padding, 2).tolist() if np.size(padding) < 4 else padding[:2]
    x, offset, weight = (np.asarray(array, np.float64) for array in (x, offset, weight))
    images, _, out_height, out_width = offset.shape
    outputs, width, kernel_height, kernel_width = weight.shape
    groups = groups or x.shape[1] // max(width, 1) or 1
    offset_groups = offset_groups or offset.shape[1] // (2 * kernel_height * kernel_width)
    offset = offset.reshape(images, offset_groups, kernel_height, kernel_width, 2, out_height, out_width)
    factor = np.ones(offset[:, :, :, :, 0].shape)
    if mask is not None:
        factor = np.asarray(mask, np.float64).reshape(factor.shape)
    result = np.zeros((images, outputs, out_height, out_width))
    for n, channel, i, j, row, column in np.ndindex(
        images, x.shape[1], kernel_height, kernel_width, out_height, out_width
    ):
        at = n, channel // (x.shape[1] // offset_groups), i, j
        dy, dx = offset[at][:, row, column].tolist()
        sample = factor[at][row, column] * _read(
            x[n, channel],
            row * stride_y - top + i * dilation_y + dy,
            column * stride_x - left + j * dilation_x + dx,
        )
        # The outputs that see this channel are those of its group.
        group = channel // width
        for output in range(group * (outputs // groups), (group + 1) * (outputs // groups)):
            result[n, output, row, column] += weight[output, channel - group * width, i, j] * sample
    if bias is not None:
        result += np.asarray(bias, np.float64)[:, None, None]
    return result
