"""Instance normalization."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detops.operators import _checks
from detops.operators._call import Call
from detops.runtime import _registry
from detops.runtime._registry import Backend


def instance_norm(
    x: ArrayLike,
    scale: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    *,
    epsilon: float = 1e-5,
    out: NDArray[Any] | None = None,
    backend: Backend | None = None,
) -> NDArray[np.floating[Any]]:
    """Bring each channel of each image to mean `bias` and standard deviation `scale`.

    ::

        y = scale * (x - mean) / sqrt(variance + epsilon) + bias

    Parameters
    ----------
    x : array_like of float16, float32 or float64, shape (num_images, num_channels, d1, ..., dn) with n >= 1
        What to normalize. Mean and variance are taken over d1, ..., dn.
    scale : array_like of float16, float32 or float64, shape (num_channels,), optional
        None for 1.
    bias : array_like of float16, float32 or float64, shape (num_channels,), optional
        None for 0.
    epsilon : float, default 1e-5
        Added to the variance; above 0.
    out : numpy.ndarray, optional
        Where to write the result: shape and dtype of `x`, C-contiguous.
    backend : {"cython", "numba", "cuda"}, optional
        None takes CUDA where an input lives on a GPU, else Cython.

    Returns
    -------
    numpy.ndarray
        Shape and dtype of `x`.

    Raises
    ------
    TypeError
        If an argument has a wrong dtype, or `epsilon` is no number.
    ValueError
        If shapes do not fit, or `epsilon` is not above 0.

    Notes
    -----
    The variance is the biased one. Moments are taken from blocks of differences, on the CPU in float64 for every
    dtype, on CUDA in that of the computation with sums in two parts: the result is right for a mean that is a million
    times the deviation, and for float16 whose squares overflow. (On CUDA, float32 whose squared deviations sum to more
    than 3e38 gives `bias` or NaN.) A channel of one element, or of equal ones, gives `bias`. A NaN or an infinity makes
    its own channel of its own image NaN.

    The definition is that of ONNX's InstanceNormalization, which is MMCV's as well.

    Examples
    --------
    >>> import numpy as np
    >>> import detops
    >>> detops.instance_norm(np.array([[[1.0, 3.0]]]), bias=np.array([5.0])).round(3)
    array([[[4., 6.]]])
    """
    call = Call(backend, x=x, scale=scale, bias=bias)
    dtype = call.check_dtype(_checks.FLOATS, "x", "scale", "bias")
    shape = tuple(call["x"].shape)
    if len(shape) < 3:
        raise ValueError(f"x: expected shape (num_images, num_channels, d1, ...), got {shape}")
    for name in ("scale", "bias"):
        if call.get(name) is not None:
            _checks.shape(name, call[name].shape, (shape[1],))
    epsilon = _checks.real("epsilon", epsilon, positive=True)
    results = call.results(out, (shape, _checks.native(call["x"].dtype), dtype))
    if 0 not in shape:
        split = (*shape[:2], math.prod(shape[2:]))
        source, target = (array.reshape(split) for array in (call.cast("x", dtype), *results.buffers))
        _registry.kernel("instance_norm", call.backend, dtype)(
            source, call.cast("scale", dtype), call.cast("bias", dtype), epsilon, target
        )
    return results.deliver()
