"""How far boxes overlap that are turned by angles."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detops._codes import OF_DISTANCE, BoxIouMode, words
from detops.operators import _checks
from detops.operators._call import Call
from detops.operators._overlaps import two_sets
from detops.runtime import _registry
from detops.runtime._registry import Backend

MODES = words(BoxIouMode, OF_DISTANCE)
# Far along a thin box, float32 is too coarse for what lies across it.
DOUBLE = np.dtype(np.float64)


def box_iou_rotated(
    boxes_a: ArrayLike,
    boxes_b: ArrayLike,
    *,
    mode: Literal["iou", "iof"] = "iou",
    clockwise: bool = True,
    aligned: bool = False,
    out: NDArray[Any] | None = None,
    backend: Backend | None = None,
) -> NDArray[np.floating[Any]]:
    """Return how far each turned box of one set overlaps each of another: the exact area that they share, as a ratio.

    ::

        iou = area(a and b) / area(a or b)
        iof = area(a and b) / area(a)

    Parameters
    ----------
    boxes_a : array_like of float16, float32, float64 or an integer type, shape (num_a, 5)
        (center_x, center_y, width, height, angle), the angle in radians. Integers are taken as float64, an empty list
        as no boxes.
    boxes_b : array_like of float16, float32, float64 or an integer type, shape (num_b, 5)
        As `boxes_a`, in the same unit.
    mode : {"iou", "iof"}, default "iou"
        Intersection over union, or over foreground, which is the part of `boxes_a` that is covered.
    clockwise : bool, default True
        Whether a positive angle turns a box clockwise in an image, whose y axis points down: its width then lies along
        (cos(angle), sin(angle)). False turns it counterclockwise.
    aligned : bool, default False
        Compare the first box with the first, the second with the second, and so on, instead of each with each.
    out : numpy.ndarray, optional
        Where to write the result: its shape and dtype, C-contiguous.
    backend : {"cython", "numba", "cuda"}, optional
        None takes CUDA where an input lives on a GPU, else Cython.

    Returns
    -------
    numpy.ndarray, shape (num_a, num_b), or (num_a,) where aligned
        In the wider dtype of `boxes_a` and `boxes_b`; from 0 to 1.

    Raises
    ------
    TypeError
        If an argument has a wrong dtype or type.
    ValueError
        If shapes do not fit, or there is no such `mode`.

    See Also
    --------
    box_iou : Overlaps of boxes along the axes, given by their corners.

    Notes
    -----
    No result is NaN. A box overlaps nothing, not even itself, where its width or height is not above 0, where one of
    its numbers is NaN or infinite, or where its area is infinite or rounds to 0. Boxes that touch, or are apart,
    share 0. Any box of some area has an IoU of exactly 1 with itself, and an IoU does not depend on which of two boxes
    comes first.

    All is computed in float64, whatever the dtype, and relative to one box's center; the result is rounded once.
    So the same boxes in float32 and in float64 differ by no more than that rounding. An angle has no bounds; but a
    large one says little in float32, whose numbers around 1000 are 6e-5 apart.

    The definition is that of MMCV's ``box_iou_rotated`` [1]_, which calls its arguments `bboxes1` and `bboxes2`.

    References
    ----------
    .. [1] https://mmcv.readthedocs.io/en/latest/api.html#mmcv.ops.box_iou_rotated

    Examples
    --------
    >>> import numpy as np
    >>> import detops
    >>> square, diamond = [[0.0, 0.0, 2.0, 2.0, 0.0]], [[0.0, 0.0, 2.0, 2.0, np.pi / 4], [1.0, 0.0, 2.0, 2.0, 0.0]]
    >>> detops.box_iou_rotated(square, diamond).round(3)
    array([[0.707, 0.333]])
    >>> detops.box_iou_rotated(square, diamond, mode="iof").round(3)
    array([[0.828, 0.5  ]])
    """
    call = Call(backend, boxes_a=boxes_a, boxes_b=boxes_b)
    code = MODES[_checks.choice("mode", mode, MODES)]
    turned, pairs = _checks.flag("clockwise", clockwise), _checks.flag("aligned", aligned)
    results = two_sets(call, out, 5, pairs, DOUBLE)
    (target,) = results.buffers
    if target.size:
        arrays = call.cast("boxes_a", DOUBLE), call.cast("boxes_b", DOUBLE)
        _registry.kernel("box_iou_rotated", call.backend, DOUBLE)(*arrays, code, turned, pairs, target)
    return results.deliver()
