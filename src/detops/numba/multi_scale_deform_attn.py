"""multi_scale_deform_attn inside compiled code."""

import numpy as np

from detops._numba.multi_scale_deform_attn import attend
from detops._numba.parallel import inner
from detops.numba import _kinds
from detops.numba._operator import operator

_INT64 = np.dtype(np.int64)


@inner
def _within(shapes, starts, keys):
    """Whether all maps lie within the keys; a quotient cannot overflow."""
    for level in range(starts.size):
        height, width, left = shapes[level, 0], shapes[level, 1], keys - starts[level]
        if height < 0 or width < 0 or starts[level] < 0 or left < 0 or (width > 0 and height > left // width):
            return False
    return True


@operator
def multi_scale_deform_attn(value, spatial_shapes, level_start_index, sampling_locations, attention_weights):
    """``detops.multi_scale_deform_attn`` for compiled code."""
    value = _kinds.array("value", value, ("num_images", "num_keys", "num_heads", "channels"))
    shapes = _kinds.array("spatial_shapes", spatial_shapes, ("num_levels", "2"))
    starts = _kinds.array("level_start_index", level_start_index, ("num_levels",))
    axes = ("num_images", "num_queries", "num_heads", "num_levels", "num_points")
    locations = _kinds.array("sampling_locations", sampling_locations, (*axes, "2"))
    weights = _kinds.array("attention_weights", attention_weights, axes)
    dtype = _kinds.floats("value", value)
    _kinds.floats("sampling_locations", locations)
    _kinds.floats("attention_weights", weights)
    _kinds.integers("spatial_shapes", shapes)
    _kinds.integers("level_start_index", starts)
    element = dtype.type
    maps, points, shares = (_kinds.cast(each, dtype) for each in (value, locations, weights))
    sizes, firsts = _kinds.cast(shapes, _INT64), _kinds.cast(starts, _INT64)

    def multi_scale_deform_attn(value, spatial_shapes, level_start_index, sampling_locations, attention_weights):
        images, keys, heads, channels = value.shape
        queries, levels = attention_weights.shape[1], attention_weights.shape[3]
        if attention_weights.shape[0] != images or attention_weights.shape[2] != heads:
            raise ValueError("attention_weights: expected the images and heads of value")
        if sampling_locations.shape[:5] != attention_weights.shape or sampling_locations.shape[5] != 2:
            raise ValueError("sampling_locations: expected the shape of attention_weights, and 2")
        if spatial_shapes.shape != (levels, 2):
            raise ValueError("spatial_shapes: expected shape (num_levels, 2)")
        if level_start_index.shape[0] != levels:
            raise ValueError("level_start_index: expected shape (num_levels,)")
        lengths, begins = sizes(spatial_shapes), firsts(level_start_index)
        if not _within(lengths, begins, keys):
            raise ValueError("level_start_index: expected maps within the keys")
        out = np.empty((images, queries, heads, channels), element)
        given = (maps(value), lengths, begins, points(sampling_locations), shares(attention_weights))
        if out.size > 0:
            attend(0, images * queries, given[0], given[1], given[2], given[3], given[4], out)
        return out.reshape((images, queries, heads * channels))

    return multi_scale_deform_attn
