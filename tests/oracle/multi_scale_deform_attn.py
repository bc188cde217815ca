"""Multi-scale deformable attention, one sample and one neighbor at a time."""

import math

import numpy as np


def multi_scale_deform_attn(value, spatial_shapes, level_start_index, sampling_locations, attention_weights):
    value, locations, weights = (
        np.asarray(array, np.float64) for array in (value, sampling_locations, attention_weights)
    )
    images, queries, heads, levels, points = weights.shape
    result = np.zeros((images, queries, heads, value.shape[3]))
    for image, query, head, level, point in np.ndindex(images, queries, heads, levels, points):
        height, width = (int(size) for size in spatial_shapes[level])
        start = int(level_start_index[level])
        map = value[image, start : start + height * width, head].reshape(height, width, value.shape[3])
        sample = np.zeros(value.shape[3])
        x, y = locations[image, query, head, level, point].tolist()
        x, y = x * width - 0.5, y * height - 0.5
        if -1 < x < width and -1 < y < height:
            for row in (math.floor(y), math.floor(y) + 1):
                for column in (math.floor(x), math.floor(x) + 1):
                    if 0 <= row < height and 0 <= column < width:
                        sample += (1 - abs(y - row)) * (1 - abs(x - column)) * map[row, column]
        result[image, query, head] += weights[image, query, head, level, point] * sample
    return result.reshape(images, queries, heads * value.shape[3])
