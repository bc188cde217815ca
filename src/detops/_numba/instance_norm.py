"""instance_norm over (images, channels, size): each is read once for its moments, and once more to be written."""

import numpy as np

from detops._core.normalization import merged_moments, normal_factor, normalized, shifted_moments
from detops._numba.parallel import inner, jit, parallel_for

# Elements whose moments are taken together.
BLOCK = 1024


@inner
def moments_of_block(x):
    """Mean and spread of a block."""
    origin = np.float64(x[0])
    total = squares = 0.0
    for value in x:
        apart = np.float64(value) - origin
        total += apart
        squares += apart * apart
    return shifted_moments(np.float64(x.size), origin, total, squares)


@inner
def moments_of(x):
    """Mean and spread of an instance, block after block."""
    count, mean, spread_so_far = 0.0, 0.0, 0.0
    for start in range(0, x.size, BLOCK):
        block = x[start : start + BLOCK]
        block_mean, block_spread = moments_of_block(block)
        count, mean, spread_so_far = merged_moments(
            count, mean, spread_so_far, np.float64(block.size), block_mean, block_spread
        )
    return mean, spread_so_far


@jit
def normalize_instances(begin, end, x, scale, bias, epsilon, out):
    """One item is one channel of one image."""
    channels, size = x.shape[1:]
    for item in range(begin, end):
        image, channel = item // channels, item % channels
        mean, spread_of_all = moments_of(x[image, channel])
        factor = normal_factor(np.float64(size), spread_of_all, epsilon, np.float64(scale[channel]))
        mean_high = x.dtype.type(mean)
        mean_low = x.dtype.type(mean - mean_high)
        multiplier, shift = x.dtype.type(factor), x.dtype.type(bias[channel])
        for i in range(size):
            out[image, channel, i] = normalized(x[image, channel, i], mean_high, mean_low, multiplier, shift)


def instance_norm(x, scale, bias, epsilon, out):
    """Kernel of instance_norm."""
    images, channels, size = x.shape
    scale = np.ones(channels, x.dtype) if scale is None else scale
    bias = np.zeros(channels, x.dtype) if bias is None else bias
    parallel_for(normalize_instances, images * channels, 1 + 16384 // size, (x, scale, bias, epsilon), out)
