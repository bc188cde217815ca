"""Weighted sums of samples from maps of several sizes, whose channels are innermost."""

from detops._core.sampling import bilinear_weights, blend, element_position, linear_taps
from detops._numba.parallel import inner, jit, parallel_for


@inner
def element(maps, key, y, x, width, head, channel):
    """An element of a map that begins at a key; 0 outside."""
    if y < 0 or x < 0:
        return maps.dtype.type(0)
    return maps[key + y * width + x, head, channel]


@jit
def attend(begin, end, value, spatial_shapes, level_start_index, sampling_locations, attention_weights, out):
    """One item is one query of one image."""
    queries, heads, levels, points = attention_weights.shape[1:]
    for item in range(begin, end):
        image, query = item // queries, item % queries
        maps = value[image]
        out[image, query] = 0
        for head in range(heads):
            for level in range(levels):
                height, width = spatial_shapes[level, 0], spatial_shapes[level, 1]
                key = level_start_index[level]
                for point in range(points):
                    location = sampling_locations[image, query, head, level, point]
                    share = attention_weights[image, query, head, level, point]
                    left, right, along = linear_taps(element_position(location[0], width), width)
                    top, bottom, down = linear_taps(element_position(location[1], height), height)
                    a, b, c, d = bilinear_weights(down, along)
                    for channel in range(value.shape[3]):
                        out[image, query, head, channel] += share * blend(
                            element(maps, key, top, left, width, head, channel),
                            element(maps, key, top, right, width, head, channel),
                            element(maps, key, bottom, left, width, head, channel),
                            element(maps, key, bottom, right, width, head, channel),
                            a,
                            b,
                            c,
                            d,
                        )


def multi_scale_deform_attn(value, spatial_shapes, level_start_index, sampling_locations, attention_weights, out):
    """Kernel of multi_scale_deform_attn."""
    images, queries, heads, levels, points = attention_weights.shape
    grain = 1 + 32768 // (1 + heads * levels * points * value.shape[3])
    reads = (value, spatial_shapes, level_start_index, sampling_locations, attention_weights)
    parallel_for(attend, images * queries, grain, reads, out.reshape(images, queries, heads, value.shape[3]))
