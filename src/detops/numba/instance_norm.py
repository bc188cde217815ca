"""instance_norm inside compiled code."""

import numpy as np

from detops._numba.instance_norm import normalize_instances
from detops._numba.spread import jit


@jit
def _per_channel(values, x, default):
    if values is None:
        return np.full(x.shape[1], default, x.dtype)
    if values.shape != (x.shape[1],):
        raise ValueError("scale, bias: expected shape (num_channels,)")
    return values


@jit
def instance_norm(x, scale=None, bias=None, epsilon=1e-5):
    """``detops.instance_norm`` for compiled code."""
    if x.ndim < 3:
        raise ValueError("x: expected shape (num_images, num_channels, d1, ...)")
    factors, shifts = _per_channel(scale, x, 1), _per_channel(bias, x, 0)
    out = np.empty(x.shape, x.dtype)
    if x.size > 0:
        split = (x.shape[0], x.shape[1], x.size // (x.shape[0] * x.shape[1]))
        source = np.ascontiguousarray(x).reshape(split)
        number = np.float64(epsilon)
        normalize_instances(0, split[0] * split[1], source, factors, shifts, number, out.reshape(split))
    return out
