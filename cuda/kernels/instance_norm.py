"""instance_norm over (images, channels, size): moments of blocks, then of instances, then every element."""

import numpy as np

from detops._core.normalization import merged_moments, normal_factor, normalized, shifted_moments
from detops._cuda.device import cuda, jit, launch

# Elements whose moments one thread takes.
BLOCK = 256


@jit
def moments_of_blocks(x, means, spreads):
    """One item is one block of one instance; x is (instances, size), the moments (instances, blocks)."""
    blocks = means.shape[1]
    for item in range(cuda.grid(1), means.size, cuda.gridsize(1)):
        instance, block = item // blocks, item % blocks
        start = block * BLOCK
        end = start + BLOCK if block < blocks - 1 else x.shape[1]
        origin = np.float64(x[instance, start])
        total = squares = np.float64(0)
        for i in range(start, end):
            apart = np.float64(x[instance, i]) - origin
            total += apart
            squares += apart * apart
        mean, spread = shifted_moments(np.float64(end - start), origin, total, squares)
        means[instance, block] = mean
        spreads[instance, block] = spread


@jit
def parts_of_instances(size, means, spreads, scale, epsilon, parts):
    """One item is one instance: its mean in two parts, and its factor."""
    blocks = means.shape[1]
    for instance in range(cuda.grid(1), means.shape[0], cuda.gridsize(1)):
        count, mean, spread = np.float64(0), np.float64(0), np.float64(0)
        for block in range(blocks):
            length = BLOCK if block < blocks - 1 else size - block * BLOCK
            count, mean, spread = merged_moments(
                count, mean, spread, np.float64(length), means[instance, block], spreads[instance, block]
            )
        parts[instance, 0] = mean
        parts[instance, 1] = mean - np.float64(parts[instance, 0])
        parts[instance, 2] = normal_factor(count, spread, epsilon, np.float64(scale[instance % scale.size]))


@jit
def normalize(x, parts, bias, out):
    """One item is one element."""
    size = x.shape[1]
    for item in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        instance, i = item // size, item % size
        mean, rest, factor = parts[instance, 0], parts[instance, 1], parts[instance, 2]
        out[instance, i] = normalized(x[instance, i], mean, rest, factor, bias[instance % bias.size])


def instance_norm(x, scale, bias, epsilon, out):
    """Kernel of instance_norm."""
    images, channels, size = x.shape
    instances = images * channels
    scale = cuda.to_device(np.ones(channels, x.dtype)) if scale is None else scale
    bias = cuda.to_device(np.zeros(channels, x.dtype)) if bias is None else bias
    source, target = x.reshape((instances, size)), out.reshape((instances, size))
    blocks = -(-size // BLOCK)
    means, spreads = (cuda.device_array((instances, blocks), np.float64) for _ in range(2))
    parts = cuda.device_array((instances, 3), x.dtype)
    launch(moments_of_blocks, instances * blocks, source, means, spreads)
    launch(parts_of_instances, instances, size, means, spreads, scale, epsilon, parts)
    launch(normalize, x.size, source, parts, bias, target)
