"""Sampling at the points of a grid, one point at a time, from the text of ONNX's GridSample."""

import itertools
import math

import numpy as np


def _pixel(i, size, padding_mode, align_corners):
    """Return the element that an index stands for, None for a zero."""
    if padding_mode == "border":
        return min(max(i, 0), size - 1)
    if padding_mode == "reflection":
        if size == 1:
            return 0
        # The map and its mirror image, over and over: about the centers of its ends, or about their outer edges.
        row = list(range(size))
        period = row + row[-2:0:-1] if align_corners else row + row[::-1]
        return period[i % len(period)]
    return i if 0 <= i < size else None


def _keys(distance, a=-0.75):
    s = abs(distance)
    if s <= 1:
        return (a + 2) * s**3 - (a + 3) * s**2 + 1
    return a * s**3 - 5 * a * s**2 + 8 * a * s - 4 * a if s < 2 else 0.0


def _mirrored(position, size, align_corners):
    """Return where a position is seen in the map itself, as MMCV's kernel and torch do."""
    low, high = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
    if low == high:
        return 0.0
    turns, rest = divmod(abs(position - low), high - low)
    inside = low + rest if turns % 2 == 0 else high - rest
    return min(max(inside, 0.0), size - 1.0)


def _neighbors(coordinate, size, mode, padding_mode, align_corners, reflect_first):
    """Return (element or None, weight) along one axis."""
    position = (coordinate + 1) / 2 * (size - 1) if align_corners else ((coordinate + 1) * size - 1) / 2
    if math.isnan(position) or (padding_mode == "reflection" and math.isinf(position)):
        return [(None if padding_mode == "zeros" else 0, 1.0)]
    if math.isinf(position):
        return [(_pixel(size if position > 0 else -1, size, padding_mode, align_corners), 1.0)]
    if mode == "nearest" and padding_mode == "reflection" and reflect_first:
        position = _mirrored(position, size, align_corners)
    if mode == "nearest":
        # Python rounds halves to even, and its integers cannot overflow.
        weights = {round(position): 1.0}
    else:
        # Counted from the tap below: far out, floats cannot tell one element from the next.
        low = math.floor(position)
        above = position - low
        taps = {0: 1 - above, 1: above} if mode == "linear" else {k: _keys(above - k) for k in (-1, 0, 1, 2)}
        weights = {low + k: weight for k, weight in taps.items()}
    return [(_pixel(i, size, padding_mode, align_corners), weight) for i, weight in weights.items()]


def grid_sample(x, grid, *, mode="linear", padding_mode="zeros", align_corners=False, reflect_first=False):
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    x, grid = np.asarray(x, np.float64), np.asarray(grid, np.float64)
    result = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for at in np.ndindex(*grid.shape[:-1]):
        # The grid's last axis is x, y, z; the map's axes are z, y, x.
        axes = [
            _neighbors(float(coordinate), size, mode, padding_mode, align_corners, reflect_first)
            for coordinate, size in zip(grid[at][::-1], x.shape[2:], strict=True)
        ]
        for corner in itertools.product(*axes):
            elements = tuple(element for element, _ in corner)
            if None not in elements:
                weight = math.prod(weight for _, weight in corner)
                result[(at[0], slice(None), *at[1:])] += weight * x[(at[0], slice(None), *elements)]
    return result
