"""Boxes from distances to their sides, also as distributions. NumPy computes it."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detops.operators import _checks, _host

ORDERS = {"ltrb": (0, 1, 2, 3), "tblr": (2, 0, 3, 1)}  # where left, top, right and bottom are


def decode_distance(
    distances: ArrayLike,
    points: ArrayLike,
    *,
    strides: ArrayLike | None = None,
    bins: int = 1,
    order: Literal["ltrb", "tblr"] = "ltrb",
    axis: int = -1,
) -> NDArray[np.floating[Any]]:
    """Turn distances from points to the sides of boxes into boxes.

    ::

        x1, y1, x2, y2 = x - left * stride, y - top * stride, x + right * stride, y + bottom * stride

    With `bins` above 1, each distance is the mean of a distribution over 0, 1, ..., bins - 1, whose logits are given
    (distribution focal loss, DFL)::

        left = sum(softmax(logits) * (0, 1, ..., bins - 1))

    Parameters
    ----------
    distances : array_like of float16, float32 or float64
        (left, top, right, bottom) along `axis`: shape (..., 4), or (4, ...) with ``axis=0``, and so on; with `bins`,
        the logits of left, then those of top, and so on: shape (..., 4 * bins).
    points : array_like of float16, float32, float64 or an integer type
        (x, y) along the same axis: shape (..., 2). Leading axes may be missing, or of length 1. Empty lists are no
        distances and no points.
    strides : array_like of float16, float32, float64 or an integer type, optional
        What a distance of 1 is in the unit of `points`: a number, or one for each point, in the shape of `points`
        without its `axis`. None takes 1.
    bins : int, default 1
        The number of logits of each distance; 1 for plain distances.
    order : {"ltrb", "tblr"}, default "ltrb"
        The order of the distances: left, top, right, bottom, or top, bottom, left, right.
    axis : int, default -1
        The axis of the coordinates.

    Returns
    -------
    numpy.ndarray
        Boxes (x1, y1, x2, y2) along `axis`, in the dtype of `distances`, and its shape with 4 in place of 4 * bins.

    Raises
    ------
    TypeError
        If an argument has a wrong dtype or type, or lies on a GPU.
    ValueError
        If shapes do not fit, `bins` is below 1, or there is no such `axis` or `order`.

    See Also
    --------
    decode_bbox : Boxes from shifts and growths relative to anchors.
    decode_yolo : Boxes and scores from the maps of a YOLO.
    box_convert : Boxes in other formats.

    Notes
    -----
    Negative distances pass through. A NaN stays in the coordinate that it enters. A distribution with an infinite logit
    is NaN.

    The definition is that of ``distance2bbox`` in MMDetection (FCOS, ATSS, RTMDet), and with `bins` that of its
    ``Integral`` and of ultralytics' ``DFL`` and ``dist2bbox``. torchvision's FCOS has distances relative to the size of
    an anchor, which `strides` say.

    Examples
    --------
    >>> import detops
    >>> detops.decode_distance([[1.0, 2.0, 3.0, 4.0]], [[10, 20]], strides=8)
    array([[ 2.,  4., 34., 52.]])
    >>> detops.decode_distance([[0.0, 0.0] * 4], [[10, 20]], bins=2)
    array([[ 9.5, 19.5, 10.5, 20.5]])
    """
    given, dtype = _host.array("distances", distances, _checks.FLOATS)
    centers, _ = _host.array("points", points, _checks.COORDINATES)
    count = _checks.integer("bins", bins, at_least=1)
    turn = ORDERS[_checks.choice("order", order, ORDERS)]
    given = given.reshape(0, 4 * count) if given.shape == (0,) else given
    centers = centers.reshape(0, 2) if centers.shape == (0,) else centers
    along = _checks.axis("axis", axis, given.ndim)
    sides = _last("distances", given, along, 4 * count)
    centers = _last("points", centers, along - given.ndim + centers.ndim, 2).astype(given.dtype, copy=False)
    sides = sides.reshape(*sides.shape[:-1], 4, count)
    with np.errstate(over="ignore", invalid="ignore"):
        sides = sides[..., 0] if count == 1 else mean(sides)
        if strides is not None:
            sides = sides * _spread("strides", strides, sides.shape[:-1], given.dtype)[..., None]
        if not _broadcasts(centers.shape[:-1], sides.shape[:-1]):
            raise ValueError(
                f"points: expected leading axes that broadcast to {sides.shape[:-1]}, got {centers.shape[:-1]}"
            )
        boxes = np.empty_like(sides)
        for side in range(4):  # column by column: NumPy is slow along an axis of 2
            join = np.subtract if side < 2 else np.add
            join(centers[..., side % 2], sides[..., turn[side]], out=boxes[..., side])
        return np.ascontiguousarray(np.moveaxis(_host.rounded(boxes, dtype), -1, along))


def mean(logits: np.ndarray) -> np.ndarray:
    """Return the means of distributions over 0, 1, 2, and so on, whose logits lie along the last axis."""
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True, initial=-np.inf))
    steps = np.arange(logits.shape[-1], dtype=logits.dtype)
    result: np.ndarray = weights @ steps / weights.sum(axis=-1)
    return result


def _last(name: str, array: np.ndarray, axis: int, length: int) -> np.ndarray:
    """Return an array with an axis of such a length at its end."""
    if not 0 <= axis < array.ndim or array.shape[axis] != length:
        at = f"along axis {axis}" if axis >= 0 else "along the axis of coordinates"
        raise ValueError(f"{name}: expected {length} elements {at}, got shape {array.shape}")
    return np.moveaxis(array, axis, -1)


def _spread(name: str, value: Any, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Return numbers that broadcast to a shape."""
    given, _ = _host.array(name, value, _checks.COORDINATES)
    if not _broadcasts(given.shape, shape):
        raise ValueError(f"{name}: expected a shape that broadcasts to {shape}, got {given.shape}")
    return given.astype(dtype, copy=False)


def _broadcasts(ours: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    pairs = zip(ours[::-1], wanted[::-1], strict=False)
    return len(ours) <= len(wanted) and all(one in (1, other) for one, other in pairs)
