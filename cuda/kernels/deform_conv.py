"""Deformable convolution: columns of sampled elements, some images at a time, times the kernel's weights."""

from detops._core.sampling import bilinear_weights, blend, deformed, linear_taps
from detops._cuda.device import cuda, empty, jit, launch

# Bytes of columns that are made at a time where im2col_step is not given.
STEP_BYTES = 1 << 28


@jit
def sample(first, x, offset, mask, stride, padding, dilation, kernel_width, columns):
    """One item is one element of the columns (images of the step, channels, taps, out_height, out_width)."""
    channels, taps, out_height, out_width = columns.shape[1:]
    shared = channels // offset.shape[1]
    for item in range(cuda.grid(1), columns.size, cuda.gridsize(1)):
        column, row = item % out_width, item // out_width % out_height
        tap = item // out_width // out_height % taps
        channel = item // out_width // out_height // taps % channels
        image = item // out_width // out_height // taps // channels
        group = channel // shared
        moved = offset[first + image, group, tap]
        i, j = tap // kernel_width, tap % kernel_width
        y = deformed(row, i, stride[0], padding[0], dilation[0], moved[0, row, column])
        z = deformed(column, j, stride[1], padding[1], dilation[1], moved[1, row, column])
        plane = x[first + image, channel]
        top, bottom, fraction_y = linear_taps(y, plane.shape[0])
        left, right, fraction_x = linear_taps(z, plane.shape[1])
        weights = bilinear_weights(fraction_y, fraction_x)
        # Linear in each corner: one that is missing is left out by its value, not by its weight.
        zero = x.dtype.type(0)
        a = plane[top, left] if top >= 0 and left >= 0 else zero
        b = plane[top, right] if top >= 0 and right >= 0 else zero
        c = plane[bottom, left] if bottom >= 0 and left >= 0 else zero
        d = plane[bottom, right] if bottom >= 0 and right >= 0 else zero
        factor = mask[first + image, group, tap, row, column] if mask.size > 0 else x.dtype.type(1)
        columns[image, channel, tap, row, column] = blend(a, b, c, d, *weights) * factor


@jit
def multiply(items, first, columns, weight, bias, groups, out):
    """One item is one element of the output of the step's images; the weight is (outputs, channels / groups, taps)."""
    outputs, out_height, out_width = out.shape[1:]
    width, taps = weight.shape[1], weight.shape[2]
    for item in range(cuda.grid(1), items, cuda.gridsize(1)):
        column, row = item % out_width, item // out_width % out_height
        output = item // out_width // out_height % outputs
        image = item // out_width // out_height // outputs
        start = output // (outputs // groups) * width
        total = bias[output] if bias.size > 0 else out.dtype.type(0)
        for channel in range(width):
            for tap in range(taps):
                total += weight[output, channel, tap] * columns[image, start + channel, tap, row, column]
        out[first + image, output, row, column] = total


def deform_conv2d(x, offset, weight, bias, mask, stride, padding, dilation, groups, offset_groups, im2col_step, out):
    """Kernel of deform_conv2d."""
    images, positions = x.shape[0], out.shape[2:]
    taps, kernel_width = weight.shape[2] * weight.shape[3], weight.shape[3]
    one = x.shape[1] * taps * positions[0] * positions[1]
    step = min(images, im2col_step or STEP_BYTES // max(one * x.dtype.itemsize, 1) + 1)
    # The shape of an absent array has its number of axes, and no elements.
    mask = empty((0,) * 5, x.dtype) if mask is None else mask.reshape((images, offset_groups, taps, *positions))
    bias = empty(0, x.dtype) if bias is None else bias
    offset = offset.reshape((images, offset_groups, taps, 2, *positions))
    weight = weight.reshape((*weight.shape[:2], taps))
    columns = empty((step, x.shape[1], taps, *positions), x.dtype)
    for first in range(0, images, step):
        count = min(step, images - first)
        if one:
            launch(
                sample, count * one, first, x, offset, mask, stride, padding, dilation, kernel_width, columns[:count]
            )
        launch(multiply, count * out[0].size, count * out[0].size, first, columns, weight, bias, groups, out)
