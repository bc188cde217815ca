"""What is asked of a set of boxes, or done to it: areas, bounds, sizes; boxes of masks. NumPy computes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detops.operators import _checks, _host


def box_area(boxes: ArrayLike) -> NDArray[np.floating[Any]]:
    """Return the areas of boxes.

    Parameters
    ----------
    boxes : array_like of float16, float32, float64 or an integer type, shape (..., 4)
        (x1, y1, x2, y2). Integers are taken as float64, an empty list as no boxes.

    Returns
    -------
    numpy.ndarray, shape (...)
        (x2 - x1) * (y2 - y1), in the dtype of `boxes`, or float64 for integers.

    Raises
    ------
    TypeError
        If `boxes` has a wrong dtype, or lies on a GPU.
    ValueError
        If `boxes` has another shape.

    Notes
    -----
    A width or height below 0 counts as 0, unlike in torchvision's ``box_area``, where two of them make an area. A NaN
    gives NaN.

    Examples
    --------
    >>> import detops
    >>> detops.box_area([[0, 0, 10, 20], [5, 5, 4, 4]])
    array([200.,   0.])
    """
    given, dtype = _host.array("boxes", boxes, _checks.COORDINATES)
    given = _host.rows("boxes", given, 4)
    with np.errstate(over="ignore", invalid="ignore"):
        width, height = _sides(given)
        return _host.rounded(np.maximum(width, 0) * np.maximum(height, 0), dtype)


def _sides(boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return boxes[..., 2] - boxes[..., 0], boxes[..., 3] - boxes[..., 1]


def clip_boxes(boxes: ArrayLike, size: Sequence[int]) -> NDArray[Any]:
    """Move the corners of boxes that lie outside of an image to its border.

    Parameters
    ----------
    boxes : array_like of float16, float32, float64 or an integer type, shape (..., 4)
        (x1, y1, x2, y2) in pixels. An empty list is no boxes.
    size : int, or sequence of 2 ints
        (height, width) of the image, at least 0; one number stands for both.

    Returns
    -------
    numpy.ndarray
        The boxes with x from 0 to the width and y from 0 to the height, in the shape and dtype of `boxes`.

    Raises
    ------
    TypeError
        If `boxes` has a wrong dtype, or lies on a GPU, or `size` holds no integers.
    ValueError
        If `boxes` has another shape, or `size` is below 0.

    Notes
    -----
    A NaN stays NaN. The definition is that of torchvision's ``clip_boxes_to_image``.

    Examples
    --------
    >>> import detops
    >>> detops.clip_boxes([[-5, 2, 700, 500]], (480, 640))
    array([[  0,   2, 640, 480]])
    """
    given = _host.plain("boxes", boxes)
    _checks.COORDINATES.of("boxes", given.dtype)
    given = _host.rows("boxes", given, 4)
    bounds = _checks.pair("size", size, at_least=0)
    most = np.iinfo(given.dtype).max if given.dtype.kind in "iu" else None
    # A float16 cannot say more than 65504, which lies within any larger image.
    height, width = (bound if most is None else min(bound, most) for bound in bounds)
    result = np.empty(given.shape, _checks.native(given.dtype))
    with np.errstate(over="ignore"):
        limits = np.array([width, height]).astype(result.dtype)
    for column in range(4):  # one by one: NumPy is slow along an axis of 4
        np.clip(given[..., column], result.dtype.type(0), limits[column % 2], out=result[..., column])
    return result


def remove_small_boxes(boxes: ArrayLike, min_size: float) -> NDArray[np.int64]:
    """Return the indices of the boxes whose width and height are at least `min_size`.

    Parameters
    ----------
    boxes : array_like of float16, float32, float64 or an integer type, shape (num_boxes, 4)
        (x1, y1, x2, y2). Integers are taken as float64, an empty list as no boxes.
    min_size : float
        The least width and height, in the unit of `boxes`.

    Returns
    -------
    numpy.ndarray of int64, shape (num_kept,)
        The indices, ascending.

    Raises
    ------
    TypeError
        If `boxes` has a wrong dtype, or lies on a GPU, or `min_size` is no number.
    ValueError
        If `boxes` has another shape, or `min_size` isn't finite.

    Notes
    -----
    A box with a NaN is small. The definition is that of torchvision's ``remove_small_boxes``.

    Examples
    --------
    >>> import detops
    >>> detops.remove_small_boxes([[0, 0, 10, 10], [0, 0, 10, 1], [2, 2, 4, 4]], 2)
    array([0, 2])
    """
    given, _ = _host.array("boxes", boxes, _checks.COORDINATES)
    given = _host.rows("boxes", given, 4)
    _checks.shape("boxes", given.shape, ("num_boxes", 4))
    least = _checks.rounded(_checks.real("min_size", min_size), given.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        width, height = _sides(given)
    return np.flatnonzero((width >= least) & (height >= least)).astype(np.int64, copy=False)


def masks_to_boxes(masks: ArrayLike) -> NDArray[np.float32]:
    """Return the smallest box around each mask.

    Parameters
    ----------
    masks : array_like of bool, a float or an integer type, shape (num_masks, height, width)
        What isn't 0 belongs to the mask. An empty list is no masks.

    Returns
    -------
    numpy.ndarray of float32, shape (num_masks, 4)
        (x1, y1, x2, y2): the first and the last column and row of each mask. An empty mask has (0, 0, 0, 0).

    Raises
    ------
    TypeError
        If `masks` has a wrong dtype, or lies on a GPU.
    ValueError
        If `masks` has another shape.

    Notes
    -----
    The last column and row belong to the mask, as in torchvision's ``masks_to_boxes``: such a box is x2 - x1 + 1 wide,
    which ``offset=1`` says to other functions. Add 1 to x2 and y2 for one that ends where the mask does. A NaN
    belongs to the mask.

    Examples
    --------
    >>> import numpy as np
    >>> import detops
    >>> mask = np.zeros((1, 8, 8), bool)
    >>> mask[0, 2:5, 3:7] = True
    >>> detops.masks_to_boxes(mask)
    array([[3., 2., 6., 4.]], dtype=float32)
    """
    given = _host.plain("masks", masks)
    _checks.NUMBERS.of("masks", given.dtype)
    given = given.reshape(0, 0, 0) if given.shape == (0,) else given
    _checks.shape("masks", given.shape, ("num_masks", "height", "width"))
    result = np.zeros((len(given), 4), np.float32)
    if given.size:
        inside = given.astype(bool, copy=False)
        columns, rows = np.asarray(inside.any(axis=1)), np.asarray(inside.any(axis=2))
        for first, used in enumerate((columns, rows)):
            result[:, first] = used.argmax(axis=1)
            result[:, first + 2] = used.shape[1] - 1 - used[:, ::-1].argmax(axis=1)
        result[~rows.any(axis=1)] = 0
    return result
