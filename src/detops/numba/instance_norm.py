"""instance_norm inside compiled code."""

import numpy as np

from detops._numba.instance_norm import normalize_instances
from detops.numba import _kinds
from detops.numba._kinds import inlined
from detops.numba._operator import operator


def _per_channel(name, got, dtype, default):
    """Return a function for a number of each channel, which is a default where there is no array."""
    element = dtype.type
    if _kinds.absent(got):
        return inlined(lambda values, channels: np.full(channels, element(default), element))
    found = _kinds.array(name, got, ("num_channels",))
    _kinds.floats(name, found)
    cast, message = _kinds.cast(found, dtype), f"{name}: expected shape (num_channels,)"

    @inlined
    def per_channel(values, channels):
        if values.shape[0] != channels:
            raise ValueError(message)
        return cast(values)

    return per_channel


@operator
def instance_norm(x, scale=None, bias=None, *, epsilon=1e-5):
    """``detops.instance_norm`` for compiled code."""
    x = _kinds.array("x", x)
    dtype = _kinds.floats("x", x)
    if x.ndim < 3:
        _kinds.refuse("x", "shape (num_images, num_channels, d1, ...)", f"an array of {x.ndim} axes")
    element, contiguous = dtype.type, _kinds.cast(x, dtype)
    factors, shifts = _per_channel("scale", scale, dtype, 1), _per_channel("bias", bias, dtype, 0)
    positive = _kinds.real("epsilon", epsilon, positive=True)

    def instance_norm(x, scale, bias, epsilon):
        multipliers, terms = factors(scale, x.shape[1]), shifts(bias, x.shape[1])
        number = positive(epsilon)
        out = np.empty(x.shape, element)
        if x.size > 0:
            split = (x.shape[0], x.shape[1], x.size // (x.shape[0] * x.shape[1]))
            source = contiguous(x).reshape(split)
            normalize_instances(0, split[0] * split[1], source, multipliers, terms, number, out.reshape(split))
        return out

    return instance_norm
