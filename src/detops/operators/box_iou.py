"""How far boxes overlap."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detops._codes import BoxIouMode, words
from detops.operators import _checks, _suppression
from detops.operators._call import Call
from detops.operators._overlaps import two_sets
from detops.runtime import _registry
from detops.runtime._registry import Backend

MODES = words(BoxIouMode)


def box_iou(
    boxes_a: ArrayLike,
    boxes_b: ArrayLike,
    *,
    mode: Literal["iou", "iof", "giou", "diou", "ciou"] = "iou",
    aligned: bool = False,
    offset: int = 0,
    out: NDArray[Any] | None = None,
    backend: Backend | None = None,
) -> NDArray[np.floating[Any]]:
    """Return how far each box of one set overlaps each box of another: IoU, or what takes distance into account, too.

    With the hull of two boxes, the smallest box that encloses both, and d the distance of their centers::

        iou  = area(a and b) / area(a or b)
        iof  = area(a and b) / area(a)
        giou = iou - (area(hull) - area(a or b)) / area(hull)
        diou = iou - d**2 / diagonal(hull)**2
        ciou = diou - v**2 / (1 - iou + v),  v = 4 / pi**2 * (arctan(w_a / h_a) - arctan(w_b / h_b))**2

    Parameters
    ----------
    boxes_a : array_like of float16, float32, float64 or an integer type, shape (num_a, 4)
        (x1, y1, x2, y2), in pixels or any other unit. Integers are taken as float64, an empty list as no boxes.
    boxes_b : array_like of float16, float32, float64 or an integer type, shape (num_b, 4)
        As `boxes_a`, in the same unit.
    mode : {"iou", "iof", "giou", "diou", "ciou"}, default "iou"
        Intersection over union; intersection over foreground, which is the part of `boxes_a` that is covered;
        generalized, distance or complete IoU.
    aligned : bool, default False
        Compare the first box with the first, the second with the second, and so on, instead of each with each.
    offset : {0, 1}, default 0
        1 adds 1 to widths and heights, (x2 - x1) + 1, for corners that count whole pixels (as older detectors do);
        those of the intersection and of the hull too.
    out : numpy.ndarray, optional
        Where to write the result: its shape and dtype, C-contiguous.
    backend : {"cython", "numba", "cuda"}, optional
        None takes CUDA where an input lives on a GPU, else Cython.

    Returns
    -------
    numpy.ndarray, shape (num_a, num_b), or (num_a,) where aligned
        In the wider dtype of `boxes_a` and `boxes_b`. From 0 to 1 for iou and iof, from -1 to 1 for giou and diou, from
        -1.5 to 1 for ciou.

    Raises
    ------
    TypeError
        If an argument has a wrong dtype or type.
    ValueError
        If shapes do not fit, there is no such `mode`, or `offset` is neither 0 nor 1.

    See Also
    --------
    nms : Drops boxes whose IoU with a better one is too large.

    Notes
    -----
    No result is NaN or infinite, and no small number is added to a divisor:

    - A box of no area overlaps nothing, not even itself: iou and iof are 0. It has a place, so that giou, diou and ciou
      say how far away it is. They subtract nothing for the distance where the hull has no area (giou) or no diagonal
      (diou, ciou), and nothing for the aspect of a point, which has none (ciou).
    - A box that is turned (a width or height below 0), NaN or infinite has no place: iou and iof are 0; giou, diou and
      ciou are -1, as of boxes infinitely far apart.
    - An area that is infinite or rounds to 0 in the dtype (float32: sides above 1e19 or below 1e-23) counts as 0. Boxes
      whose hull has an infinite area (giou), or whose centers' squared distance is infinite (diou, ciou), are as far
      apart as can be.

    float16 is computed in float32 and rounded once. All but iof are symmetric to the bit, and no iou is above 1.
    The definitions are those of ``torchvision.ops.box_iou``, ``generalized_box_iou``, ``distance_box_iou`` and
    ``complete_box_iou`` [1]_ [2]_, and of MMCV's ``bbox_overlaps`` (iou, iof), which divide 0 by 0 or by a small number
    where the rules above apply.

    References
    ----------
    .. [1] Rezatofighi et al., "Generalized Intersection over Union", CVPR 2019.
    .. [2] Zheng et al., "Distance-IoU Loss", AAAI 2020.

    Examples
    --------
    >>> import numpy as np
    >>> import detops
    >>> boxes = np.array([[0.0, 0.0, 10.0, 10.0], [5.0, 0.0, 15.0, 10.0], [20.0, 0.0, 30.0, 10.0]])
    >>> detops.box_iou(boxes[:2], boxes).round(3)
    array([[1.   , 0.333, 0.   ],
           [0.333, 1.   , 0.   ]])
    >>> detops.box_iou(boxes[:2], boxes[1:], mode="giou", aligned=True).round(3)
    array([ 0.333, -0.2  ])
    """
    call = Call(backend, boxes_a=boxes_a, boxes_b=boxes_b)
    code = MODES[_checks.choice("mode", mode, MODES)]
    pairs, added = _checks.flag("aligned", aligned), _suppression.offset(offset)
    found = two_sets(call, out, 4, pairs)
    (target,) = found.buffers
    if target.size:
        dtype = target.dtype
        arrays = call.cast("boxes_a", dtype), call.cast("boxes_b", dtype)
        _registry.kernel("box_iou", call.backend, dtype)(*arrays, code, pairs, added, target)
    return found.deliver()
