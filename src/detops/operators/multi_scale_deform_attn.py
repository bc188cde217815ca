"""Multi-scale deformable attention."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detops.operators import _checks
from detops.operators._call import Call
from detops.runtime import _registry
from detops.runtime._registry import Backend

_INT64 = np.dtype(np.int64)


def multi_scale_deform_attn(
    value: ArrayLike,
    spatial_shapes: ArrayLike,
    level_start_index: ArrayLike,
    sampling_locations: ArrayLike,
    attention_weights: ArrayLike,
    *,
    out: NDArray[Any] | None = None,
    backend: Backend | None = None,
) -> NDArray[np.floating[Any]]:
    """Sum what each query samples from the maps of all levels, weighed by attention.

    For query q and head h, with the levels l and their points p::

        out[q, h] = sum over l, p of  attention_weights[q, h, l, p] * map[l, h](x[l, p], y[l, p])

    Parameters
    ----------
    value : array_like of float16, float32 or float64, shape (num_images, num_keys, num_heads, channels)
        The elements of all maps, level after level and row after row, channels innermost.
    spatial_shapes : array_like of an integer type, shape (num_levels, 2)
        Height and width of each level's map.
    level_start_index : array_like of an integer type, shape (num_levels,)
        The key that is the first element of each map. All of a map must lie within the keys.
    sampling_locations : array_like of float16, float32 or float64
        Shape (num_images, num_queries, num_heads, num_levels, num_points, 2): x and y of each point, 0 and 1 being the
        outer edges of the map.
    attention_weights : array_like of float16, float32 or float64
        Shape (num_images, num_queries, num_heads, num_levels, num_points). They are taken as they are, no softmax.
    out : numpy.ndarray, optional
        Where to write the result: its shape and dtype, C-contiguous.
    backend : {"cython", "numba", "cuda"}, optional
        None takes CUDA where an input lives on a GPU, else Cython.

    Returns
    -------
    numpy.ndarray
        Shape (num_images, num_queries, num_heads * channels), dtype of `value`.

    Raises
    ------
    TypeError
        If an argument has a wrong dtype.
    ValueError
        If shapes do not fit each other, or a map does not lie within the keys.

    Notes
    -----
    A sample is bilinear between the centers of four elements, which are at (i + 0.5) / size; elements outside the map
    count as 0, so that it fades to 0 within half an element beyond its edge. A point with a NaN or infinite coordinate
    reads 0. A NaN or infinite element reaches each point that has it among its four neighbors, with whatever weight.

    All is computed in the dtype of `value` (float32 for float16); locations and weights of other dtypes are rounded to
    it. There is no gradient.

    The definition is that of Deformable DETR [1]_ and of MMCV's ``MultiScaleDeformableAttnFunction``, whose
    ``im2col_step`` bounds the memory of its implementation, and has no counterpart.

    References
    ----------
    .. [1] Zhu et al., "Deformable DETR: Deformable Transformers for End-to-End Object Detection", ICLR 2021.

    Examples
    --------
    >>> import numpy as np
    >>> import detops
    >>> value = np.arange(6.0).reshape(1, 6, 1, 1)  # a map of 2 x 2, and one of 1 x 2
    >>> locations = np.array([[[0.5, 0.5]], [[0.25, 0.5]]]).reshape(1, 1, 1, 2, 1, 2)
    >>> weights = np.array([0.5, 0.5]).reshape(1, 1, 1, 2, 1)
    >>> detops.multi_scale_deform_attn(value, [[2, 2], [1, 2]], [0, 4], locations, weights)
    array([[[2.75]]])
    """
    call = Call(
        backend,
        value=value,
        spatial_shapes=spatial_shapes,
        level_start_index=level_start_index,
        sampling_locations=sampling_locations,
        attention_weights=attention_weights,
    )
    dtype = call.check_dtype(_checks.FLOATS, "value", "sampling_locations", "attention_weights")
    _checks.INTEGERS.of("spatial_shapes", call["spatial_shapes"].dtype)
    _checks.INTEGERS.of("level_start_index", call["level_start_index"].dtype)
    shape = _result_shape(call)
    results = call.results(out, (shape, _checks.native(call["value"].dtype), dtype))
    if 0 not in shape:
        _registry.kernel("multi_scale_deform_attn", call.backend, dtype)(
            call.cast("value", dtype),
            call.cast("spatial_shapes", _INT64),
            call.cast("level_start_index", _INT64),
            call.cast("sampling_locations", dtype),
            call.cast("attention_weights", dtype),
            *results.buffers,
        )
    return results.deliver()


def _result_shape(call: Call) -> tuple[int, ...]:
    """Return the shape of the result; ValueError if the arguments do not fit each other."""
    value, weights = tuple(call["value"].shape), tuple(call["attention_weights"].shape)
    _checks.shape("value", value, ("num_images", "num_keys", "num_heads", "channels"))
    images, keys, heads, channels = value
    _checks.shape("attention_weights", weights, (images, "num_queries", heads, "num_levels", "num_points"))
    _checks.shape("sampling_locations", call["sampling_locations"].shape, (*weights, 2))
    _checks.shape("spatial_shapes", call["spatial_shapes"].shape, (weights[3], 2))
    _checks.shape("level_start_index", call["level_start_index"].shape, (weights[3],))
    shapes, starts = (call.space.to_host(call[name]).tolist() for name in ("spatial_shapes", "level_start_index"))
    _check_levels(shapes, starts, keys)
    _checks.result_shape("attention_weights", (images, weights[1], heads, channels), np.dtype(np.float64))
    return images, weights[1], heads * channels


def _check_levels(shapes: list[Any], starts: list[int], keys: int) -> None:
    """Raise ValueError for a map that does not lie within the keys."""
    for level, ((height, width), start) in enumerate(zip(shapes, starts, strict=True)):
        if height < 0 or width < 0:
            raise ValueError(f"spatial_shapes: expected sizes of at least 0, got {height} x {width} in level {level}")
        if start < 0 or start + height * width > keys:
            raise ValueError(
                f"level_start_index: expected maps within {keys} keys, got {height} x {width} elements from {start} on"
                f" in level {level}"
            )
