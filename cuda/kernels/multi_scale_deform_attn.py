"""Weighted sums of samples from maps of several sizes, whose channels are innermost."""

from numba.extending import register_jitable

from detops._core.sampling import bilinear_weights, blend, element_position, linear_taps
from detops._cuda.device import cuda, jit, launch


@register_jitable
def element(maps, key, y, x, width, channel):
    """An element of a map that begins at a key; 0 outside."""
    if y < 0 or x < 0:
        return maps.dtype.type(0)
    return maps[key + y * width + x, channel]


@jit
def attend(value, spatial_shapes, level_start_index, sampling_locations, attention_weights, out):
    """One item is one channel of one head of one query of one image."""
    queries, heads, levels, points = attention_weights.shape[1:]
    channels = value.shape[3]
    for item in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        channel, head = item % channels, item // channels % heads
        query, image = item // channels // heads % queries, item // channels // heads // queries
        maps = value[image, :, head]
        total = value.dtype.type(0)
        for level in range(levels):
            height, width = spatial_shapes[level, 0], spatial_shapes[level, 1]
            key = level_start_index[level]
            for point in range(points):
                location = sampling_locations[image, query, head, level, point]
                left, right, along = linear_taps(element_position(location[0], width), width)
                top, bottom, down = linear_taps(element_position(location[1], height), height)
                a, b, c, d = bilinear_weights(down, along)
                total += attention_weights[image, query, head, level, point] * blend(
                    element(maps, key, top, left, width, channel),
                    element(maps, key, top, right, width, channel),
                    element(maps, key, bottom, left, width, channel),
                    element(maps, key, bottom, right, width, channel),
                    a,
                    b,
                    c,
                    d,
                )
        out[image, query, head, channel] = total


def multi_scale_deform_attn(value, spatial_shapes, level_start_index, sampling_locations, attention_weights, out):
    """Kernel of multi_scale_deform_attn."""
    images, queries, heads = attention_weights.shape[:3]
    split = out.reshape((images, queries, heads, value.shape[3]))
    launch(attend, split.size, value, spatial_shapes, level_start_index, sampling_locations, attention_weights, split)
