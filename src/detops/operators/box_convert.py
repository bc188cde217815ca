"""Boxes in other numbers: corners, sizes, centers, angles. NumPy computes it."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detops.operators import _checks, _host

Format = Literal["xyxy", "xywh", "cxcywh", "cxcywha", "xyxyxyxy"]
COLUMNS = {"xyxy": 4, "xywh": 4, "cxcywh": 4, "cxcywha": 5, "xyxyxyxy": 8}
UPRIGHT = ("xyxy", "xywh", "cxcywh")


def box_convert(
    boxes: ArrayLike, in_fmt: Format, out_fmt: Format, *, clockwise: bool = True
) -> NDArray[np.floating[Any]]:
    """Return boxes in another format.

    ==============  ================================================================================================
    format          numbers of a box
    ==============  ================================================================================================
    ``"xyxy"``      x1, y1, x2, y2: the first and the last corner
    ``"xywh"``      x1, y1, width, height
    ``"cxcywh"``    center_x, center_y, width, height
    ``"cxcywha"``   center_x, center_y, width, height, angle in radians: a turned box
    ``"xyxyxyxy"``  the four corners of a turned box, in the order (x1, y1), (x2, y1), (x2, y2), (x1, y2) that they have
                    where the angle is 0
    ==============  ================================================================================================

    Parameters
    ----------
    boxes : array_like of float16, float32, float64 or an integer type, shape (..., 4), (..., 5) or (..., 8)
        Boxes in the format `in_fmt`. Integers are taken as float64, an empty list as no boxes.
    in_fmt : {"xyxy", "xywh", "cxcywh", "cxcywha", "xyxyxyxy"}
        The format of `boxes`.
    out_fmt : {"xyxy", "xywh", "cxcywh", "cxcywha", "xyxyxyxy"}
        The format of the result. An upright one of a turned box is that of the upright box around it.
    clockwise : bool, default True
        Whether a positive angle turns a box clockwise in an image, whose y axis points down, as
        :func:`box_iou_rotated` has it.

    Returns
    -------
    numpy.ndarray, shape (..., 4), (..., 5) or (..., 8)
        In the dtype of `boxes`, or float64 for integers; always a new array.

    Raises
    ------
    TypeError
        If `boxes` has a wrong dtype, or lies on a GPU.
    ValueError
        If `boxes` hasn't the shape of `in_fmt`, or there is no such format.

    See Also
    --------
    decode_bbox : Boxes from what a network predicts.

    Notes
    -----
    A NaN reaches the numbers that are computed of it. Sizes below 0 pass through. Angles are computed in float64, and
    come back from -pi to pi. Four corners that are no rectangle give their mean as center, the mean length of opposite
    sides, and the direction of the first of these.

    The definition is that of torchvision's ``box_convert``, whose ``"cxcywhr"`` has degrees that turn the other way.

    Examples
    --------
    >>> import numpy as np
    >>> import detops
    >>> detops.box_convert([[10, 20, 4, 6]], "cxcywh", "xyxy")
    array([[ 8., 17., 12., 23.]])
    >>> corners = detops.box_convert([[0.0, 0.0, 4.0, 2.0, np.pi / 2]], "cxcywha", "xyxyxyxy")
    >>> corners.round(6)
    array([[ 1., -2.,  1.,  2., -1.,  2., -1., -2.]])
    >>> detops.box_convert(corners, "xyxyxyxy", "xyxy").round(6)
    array([[-1., -2.,  1.,  2.]])
    """
    given, dtype = _host.array("boxes", boxes, _checks.COORDINATES)
    source, target = (
        _checks.choice(name, value, COLUMNS) for name, value in (("in_fmt", in_fmt), ("out_fmt", out_fmt))
    )
    sign = 1 if _checks.flag("clockwise", clockwise) else -1
    given = _host.rows("boxes", given, COLUMNS[source])
    if source == target:
        return given.astype(dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        if source in UPRIGHT and target in UPRIGHT:
            return _host.rounded(_upright(given, source, target), dtype)
        return _host.rounded(_turned(given.astype(np.float64), source, target, sign), dtype)


def _upright(boxes: np.ndarray, source: str, target: str) -> np.ndarray:
    """Return boxes along the axes in another format, column by column: NumPy is slow along an axis of 2."""
    result = np.empty((*boxes.shape[:-1], 4), boxes.dtype)
    half = boxes.dtype.type(0.5)
    for axis in (0, 1):
        first, second = boxes[..., axis], boxes[..., axis + 2]
        low, high = result[..., axis], result[..., axis + 2]
        if source == "cxcywh":
            np.subtract(first, second * half, out=low)
            high[...] = first + second * half if target == "xyxy" else second
        elif source == "xywh":
            low[...] = first + second * half if target == "cxcywh" else first
            high[...] = first + second if target == "xyxy" else second
        else:
            low[...] = first * half + second * half if target == "cxcywh" else first
            np.subtract(second, first, out=high)
    return result


def _turned(boxes: np.ndarray, source: str, target: str, sign: int) -> np.ndarray:
    """Return boxes of which one format is that of turned ones, by way of centers, sizes and angles, or of corners."""
    if source in UPRIGHT:
        boxes = boxes if source == "cxcywh" else _upright(boxes, source, "cxcywh")
        boxes = np.concatenate([boxes, np.zeros_like(boxes[..., :1])], axis=-1)
        return boxes if target == "cxcywha" else _corners(boxes, sign)
    if target == "cxcywha":
        return _by_angle(boxes, sign)
    corners = boxes if source == "xyxyxyxy" else _corners(boxes, sign)
    if target == "xyxyxyxy":
        return corners
    pairs = corners.reshape(*corners.shape[:-1], 4, 2)
    bounds = np.concatenate([pairs.min(axis=-2), pairs.max(axis=-2)], axis=-1)
    return bounds if target == "xyxy" else _upright(bounds, "xyxy", target)


def _corners(boxes: np.ndarray, sign: int) -> np.ndarray:
    """Return the corners of centers, sizes and angles."""
    center, angle = boxes[..., :2], boxes[..., 4] * sign
    cos, sin = np.cos(angle)[..., None], np.sin(angle)[..., None]
    along = np.concatenate([cos, sin], axis=-1) * (boxes[..., 2:3] / 2)
    across = np.concatenate([-sin, cos], axis=-1) * (boxes[..., 3:4] / 2)
    ends = (center - along - across, center + along - across, center + along + across, center - along + across)
    return np.concatenate(ends, axis=-1)


def _by_angle(corners: np.ndarray, sign: int) -> np.ndarray:
    """Return the centers, sizes and angles of corners."""
    pairs = corners.reshape(*corners.shape[:-1], 4, 2)
    first, second, third, fourth = (pairs[..., corner, :] for corner in range(4))
    along, across = (second - first, third - fourth), (fourth - first, third - second)
    sizes = [(np.hypot(a[..., 0], a[..., 1]) + np.hypot(b[..., 0], b[..., 1])) / 2 for a, b in (along, across)]
    direction = along[0] + along[1]
    angle = np.arctan2(direction[..., 1] * sign, direction[..., 0])
    return np.concatenate([pairs.mean(axis=-2), np.stack([*sizes, angle], axis=-1)], axis=-1)
