"""Deformable convolution: columns of sampled elements, row by row of the output, times the kernel's weights."""

import numpy as np

from detops._core.sampling import bilinear_weights, blend, deformed, linear_taps
from detops._numba.parallel import inner, jit, parallel_for


@inner
def read(plane, y, x):
    """An element of a plane; 0 where there is none."""
    return plane[y, x] if y >= 0 and x >= 0 else plane.dtype.type(0)


@inner
def sample_row(x, offset, mask, row, stride, padding, dilation, kernel_width, columns):
    """Columns (channels, taps, out_width) of one row of the output.

    The offset is (offset_groups, taps, 2, out_height, out_width), the mask the same without the 2.
    """
    height, width = x.shape[1], x.shape[2]
    shared = x.shape[0] // offset.shape[0]
    for group in range(offset.shape[0]):
        for tap in range(offset.shape[1]):
            i, j = tap // kernel_width, tap % kernel_width
            for column in range(offset.shape[4]):
                y = deformed(row, i, stride[0], padding[0], dilation[0], offset[group, tap, 0, row, column])
                z = deformed(column, j, stride[1], padding[1], dilation[1], offset[group, tap, 1, row, column])
                top, bottom, fraction_y = linear_taps(y, height)
                left, right, fraction_x = linear_taps(z, width)
                a, b, c, d = bilinear_weights(fraction_y, fraction_x)
                factor = mask[group, tap, row, column] if mask.size > 0 else x.dtype.type(1)
                for channel in range(group * shared, (group + 1) * shared):
                    plane = x[channel]
                    corners = read(plane, top, left), read(plane, top, right), read(plane, bottom, left)
                    sample = blend(*corners, read(plane, bottom, right), a, b, c, d)
                    columns[channel, tap, column] = sample * factor


@jit
def convolve(begin, end, x, offset, weight, bias, mask, stride, padding, dilation, kernel_width, groups, out):
    """One item is one row of one image's output; the weight is (outputs, channels / groups, taps)."""
    out_height, out_width = out.shape[2], out.shape[3]
    outputs, width = weight.shape[0] // groups, weight.shape[1]
    columns = np.empty((x.shape[1], weight.shape[2], out_width), x.dtype)
    for item in range(begin, end):
        image, row = item // out_height, item % out_height
        sample_row(x[image], offset[image], mask[image], row, stride, padding, dilation, kernel_width, columns)
        for output in range(weight.shape[0]):
            total = out[image, output, row]
            total[:] = bias[output] if bias.size > 0 else x.dtype.type(0)
            for channel in range(width):
                for tap in range(weight.shape[2]):
                    factor = weight[output, channel, tap]
                    source = columns[output // outputs * width + channel, tap]
                    for column in range(out_width):
                        total[column] += factor * source[column]


def deform_conv2d(x, offset, weight, bias, mask, stride, padding, dilation, groups, offset_groups, im2col_step, out):
    """Kernel of deform_conv2d. A thread holds the columns of one row, so that no step is needed to bound them."""
    taps = weight.shape[2] * weight.shape[3]
    shape = (x.shape[0], offset_groups, taps, *out.shape[2:])
    none = np.empty(0, x.dtype)
    reads = (
        x,
        offset.reshape((*shape[:3], 2, *out.shape[2:])),
        weight.reshape((*weight.shape[:2], taps)),
        none if bias is None else bias,
        np.empty((shape[0], 0, 0, 0, 0), x.dtype) if mask is None else mask.reshape(shape),
        stride,
        padding,
        dilation,
        weight.shape[3],
        groups,
    )
    parallel_for(convolve, out.shape[0] * out.shape[2], 1, reads, out)
