"""grid_sample inside compiled code."""

import functools

import numpy as np

from detops._codes import Border, GridMode
from detops._numba.grid_sample import sample
from detops.numba import _kinds
from detops.numba._kinds import inlined
from detops.numba._operator import operator
from detops.operators.grid_sample import MODES, PADDING_MODES

MAPS = {4: ("N", "C", "H", "W"), 5: ("N", "C", "D", "H", "W")}
GRIDS = {4: ("N", "out_H", "out_W", "2"), 5: ("N", "out_D", "out_H", "out_W", "3")}


@inlined
def _as_volume(x):
    return x.reshape((x.shape[0], x.shape[1], 1, x.shape[2], x.shape[3]))


@inlined
def _points_of_map(grid):
    return grid.shape[1], grid.shape[2]


@inlined
def _points_of_volume(grid):
    return grid.shape[1], grid.shape[2], grid.shape[3]


@functools.partial(operator, constants=("mode", "padding_mode"))
def grid_sample(x, grid, *, mode="linear", padding_mode="zeros", align_corners=False, reflect_first=False):
    """``detops.grid_sample`` for compiled code."""
    x = _kinds.array("x", x)
    dtype = _kinds.floats("x", x)
    if x.ndim not in MAPS:
        _kinds.refuse("x", "shape (N, C, H, W) or (N, C, D, H, W)", f"an array of {x.ndim} axes")
    grid = _kinds.array("grid", grid, GRIDS[x.ndim])
    _kinds.floats("grid", grid)
    element, axes = dtype.type, x.ndim - 2
    as_map, as_grid = _kinds.cast(x, dtype), _kinds.cast(grid, dtype)
    as_volume = _as_volume if axes == 2 else inlined(lambda x: x)
    points_of = _points_of_map if axes == 2 else _points_of_volume
    taps = MODES[_kinds.text("mode", mode, MODES)]
    border = PADDING_MODES[_kinds.text("padding_mode", padding_mode, PADDING_MODES)]
    aligned, first = _kinds.flag("align_corners", align_corners), _kinds.flag("reflect_first", reflect_first)
    may_reflect_first = (taps, border) == (GridMode.NEAREST, Border.REFLECTION)
    reflect_before = Border.REFLECT_FIRST.value
    misfit = f"grid: expected shape ({', '.join(GRIDS[x.ndim])})"

    def grid_sample(x, grid, mode, padding_mode, align_corners, reflect_first):
        corners, rule = aligned(align_corners), border
        if first(reflect_first) and may_reflect_first:
            rule = reflect_before
        if grid.shape[0] != x.shape[0] or grid.shape[axes + 1] != axes:
            raise ValueError(misfit)
        points = points_of(grid)
        count, elements = 1, 1
        for i in range(axes):
            count *= points[i]
            elements *= x.shape[2 + i]
        if elements == 0 and border > 0:
            raise ValueError("x: expected spatial axes of at least 1 for this padding_mode")
        out = np.empty((x.shape[0], x.shape[1], *points), element)
        if out.size > 0:
            source, where = as_volume(as_map(x)), as_grid(grid).reshape((x.shape[0], count, axes))
            flat = out.reshape((x.shape[0], x.shape[1], count))
            sample(0, x.shape[0] * count, source, where, taps, rule, corners, flat)
        return out

    return grid_sample
