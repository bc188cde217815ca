"""instance_norm over (instances, size): moments of blocks, then of instances, then every element.

Moments keep the type of the elements, since few GPUs are fast in float64. A sum's second part
holds the digits that float32 loses where the mean is far from 0.
"""

import numpy as np

from detops._core.normalization import merged_moments, normal_factor, normalized, shifted_moments, two_sum
from detops._core.scalar import typed
from detops._cuda.device import cuda, empty, jit, launch, to_device
from detops.operators import _checks

# Elements whose moments one thread takes; it reads them twice, from the cache the second time.
BLOCK = 256


@jit
def moments_of_blocks(x, means, spreads):
    """One item is one block of one instance; means are (instances, blocks, 2), in two parts."""
    blocks = spreads.shape[1]
    for item in range(cuda.grid(1), spreads.size, cuda.gridsize(1)):
        instance, block = item // blocks, item % blocks
        start = block * BLOCK
        end = start + BLOCK if block < blocks - 1 else x.shape[1]
        origin = x[instance, start]
        count = typed(end - start, origin)
        total = squares = left = typed(0, origin)
        for i in range(start, end):
            total += x[instance, i] - origin
        mean, mean_low = two_sum(origin, total / count)
        for i in range(start, end):
            apart = x[instance, i] - mean - mean_low
            left += apart
            squares += apart * apart
        shift, spread = shifted_moments(count, typed(0, origin), left, squares)
        mean, mean_low = two_sum(mean, mean_low + shift)
        means[instance, block, 0] = mean
        means[instance, block, 1] = mean_low
        spreads[instance, block] = spread


@jit
def parts_of_instances(size, means, spreads, scale, epsilon, parts):
    """One item is one instance: its mean in two parts, and its factor."""
    blocks = spreads.shape[1]
    for instance in range(cuda.grid(1), spreads.shape[0], cuda.gridsize(1)):
        none = typed(0, epsilon)
        count, spread, lost = none, none, none
        mean, mean_low = means[instance, 0, 0], means[instance, 0, 1]
        for block in range(blocks):
            length = typed(BLOCK if block < blocks - 1 else size - block * BLOCK, epsilon)
            apart = (means[instance, block, 0] - mean) + (means[instance, block, 1] - mean_low)
            # Both groups as seen from the mean so far, and the spread's growth by itself, so that few digits get lost.
            count, shift, growth = merged_moments(count, none, none, length, apart, spreads[instance, block])
            mean, mean_low = two_sum(mean, mean_low + shift)
            spread, lost = two_sum(spread, lost + growth)
        parts[instance, 0] = mean
        parts[instance, 1] = mean_low
        parts[instance, 2] = normal_factor(count, spread, epsilon, scale[instance % scale.size])


@jit
def normalize(x, parts, bias, out):
    """One item is one element."""
    size = x.shape[1]
    for item in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        instance, i = item // size, item % size
        mean, mean_low, factor = parts[instance, 0], parts[instance, 1], parts[instance, 2]
        out[instance, i] = normalized(x[instance, i], mean, mean_low, factor, bias[instance % bias.size])


def instance_norm(x, scale, bias, epsilon, out):
    """Kernel of instance_norm."""
    images, channels, size = x.shape
    instances = images * channels
    scale = to_device(np.ones(channels, x.dtype)) if scale is None else scale
    bias = to_device(np.zeros(channels, x.dtype)) if bias is None else bias
    source, target = x.reshape((instances, size)), out.reshape((instances, size))
    blocks = -(-size // BLOCK)
    means = empty((instances, blocks, 2), x.dtype)
    spreads = empty((instances, blocks), x.dtype)
    parts = empty((instances, 3), x.dtype)
    # An epsilon that float32 takes for 0 would divide equal elements by 0.
    small = max(x.dtype.type(_checks.rounded(epsilon, x.dtype)), np.finfo(x.dtype).tiny)
    launch(moments_of_blocks, instances * blocks, source, means, spreads)
    launch(parts_of_instances, instances, size, means, spreads, scale, small, parts)
    launch(normalize, x.size, source, parts, bias, target)
