"""Box decoding and encoding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detops._codes import AnchorForm, words
from detops.operators import _checks, _suppression
from detops.operators._call import Call
from detops.runtime import _registry
from detops.runtime._registry import Backend

FORMS = words(AnchorForm)
# The defaults of options: what they are need not be checked.
ONES, ZEROS = (1, 1, 1, 1), (0, 0, 0, 0)
CORNER: Final = "corner"
NO_OFFSET = 0
_NO_NORMALIZATION = (1.0,) * 4, (0.0,) * 4
_USUAL_FORM = AnchorForm.CORNER.value, 0.0


def decode_bbox(
    box_predictions: ArrayLike,
    anchors: ArrayLike,
    *,
    decode_clip: float | None = None,
    lower_clip: float | None = None,
    scales: Sequence[float] = ONES,
    means: Sequence[float] = ZEROS,
    anchor_form: Literal["corner", "center"] = CORNER,
    offset: int = NO_OFFSET,
    axis: int = -1,
    out: NDArray[Any] | None = None,
    backend: Backend | None = None,
) -> NDArray[np.floating[Any]]:
    """Turn what a detector predicts relative to its anchors into boxes.

    With w, h, cx, cy the size and center of an anchor and (tx, ty, tw, th) = prediction / scale + mean::

        center = t * size + center of the anchor
        size   = exp(min(max(t, lower_clip), decode_clip)) * size of the anchor
        box    = (center - (size - offset) / 2, center + (size - offset) / 2)

    The size of an anchor (x1, y1, x2, y2) is (x2 - x1 + offset, y2 - y1 + offset), its center ((x1 + x2) / 2,
    (y1 + y2) / 2).

    Parameters
    ----------
    box_predictions : array_like of float16, float32 or float64
        (tx, ty, tw, th) along `axis`: shape (..., 4), or (4, ...) with ``axis=0``, and so on; or
        (..., 4 * num_classes) against anchors (..., 4).
    anchors : array_like of float16, float32, float64 or an integer type
        (x1, y1, x2, y2) along `axis`, or what `anchor_form` says, in pixels or any other unit; the result is in the
        same unit. Leading axes may be missing, or of length 1: anchors (num_boxes, 4) serve each image of predictions
        (batch, num_boxes, 4). Empty lists are no predictions and no anchors.
    decode_clip : float, optional
        Upper bound of tw and th before the exponential; None for no bound. 0 bounds them at 0.
    lower_clip : float, optional
        Lower bound of tw and th before `decode_clip` applies, as in MMDetection's coder; None for no bound.
    scales, means : sequence of 4 floats, default 1 and 0
        Undo the normalization of the predictions. MMDetection's ``stds`` are ``1 / scales`` and its ``means``
        are `means`; torchvision's ``weights`` are `scales`.
    anchor_form : {"corner", "center"}, default "corner"
        What an anchor's numbers are: its corners (x1, y1, x2, y2), or its center and size (cx, cy, w, h), as the priors
        of SSD and RetinaFace. The result has corners in any case.
    offset : {0, 1}, default 0
        1 counts whole pixels, as older detectors do: a box from x1 to x2 is x2 - x1 + 1 wide. A size that is given,
        as w is with ``anchor_form="center"``, has been counted so.
    axis : int, default -1
        The axis of the four coordinates.
    out : numpy.ndarray, optional
        Where to write the result: its shape and dtype, C-contiguous.
    backend : {"cython", "numba", "cuda"}, optional
        None takes CUDA where an input lives on a GPU, else Cython.

    Returns
    -------
    numpy.ndarray
        Boxes (x1, y1, x2, y2) with the shape and dtype of `box_predictions`.

    Raises
    ------
    TypeError
        If an argument has a wrong dtype or type.
    ValueError
        If shapes do not fit, a scale is 0, an option is no finite number, there is no such `axis` or `anchor_form`, or
        `offset` is neither 0 nor 1.

    See Also
    --------
    encode_bbox : The inverse.

    Notes
    -----
    A NaN stays in the coordinates that it enters. An anchor of negative width or height passes through the formula.
    One whose width or height is beyond the range of the dtype gives inf or NaN.
    The definition is that of CANN's DecodeBbox and DecodeBboxV2, and of the box coders of tensorpack, torchvision,
    Detectron2 and MMDetection. With an offset of 1 it is that of maskrcnn-benchmark's ``BoxCoder`` and of
    ``delta2bbox`` in MMDetection 1, which write it in other ways: the former has the center half a pixel further, and
    takes 1 from the right and bottom. Coders that take nothing from the decoded size, as py-faster-rcnn's, have no
    offset here, but anchors that end a pixel later.

    Examples
    --------
    >>> import numpy as np
    >>> import detops
    >>> anchors = np.array([[0.0, 0.0, 10.0, 20.0]])
    >>> detops.decode_bbox(np.array([[0.1, 0.0, np.log(2), 0.0]]), anchors)
    array([[-4.,  0., 16., 20.]])
    >>> detops.decode_bbox(np.array([[0.1, 0.0, np.log(2), 0.0]]), np.array([[5.0, 10, 10, 20]]), anchor_form="center")
    array([[-4.,  0., 16., 20.]])
    """
    lower = -math.inf if lower_clip is None else _checks.real("lower_clip", lower_clip)
    upper = math.inf if decode_clip is None else _checks.real("decode_clip", decode_clip)
    given = box_predictions, anchors, (lower, upper), scales, means, anchor_form, offset, axis, out, backend
    return _transform("decode_bbox", "box_predictions", *given)


def encode_bbox(
    boxes: ArrayLike,
    anchors: ArrayLike,
    *,
    scales: Sequence[float] = ONES,
    means: Sequence[float] = ZEROS,
    anchor_form: Literal["corner", "center"] = CORNER,
    offset: int = NO_OFFSET,
    axis: int = -1,
    out: NDArray[Any] | None = None,
    backend: Backend | None = None,
) -> NDArray[np.floating[Any]]:
    """Express boxes relative to anchors: the inverse of :func:`decode_bbox`.

    Parameters
    ----------
    boxes : array_like of float16, float32, float64 or an integer type
        (x1, y1, x2, y2) along `axis`: shape (..., 4), or (4, ...) with ``axis=0``, and so on; or
        (..., 4 * num_classes) against anchors (..., 4). Integers are taken as float64, an empty list as no boxes.
    anchors : array_like of float16, float32, float64 or an integer type
        (x1, y1, x2, y2) along `axis`, or what `anchor_form` says, in the unit of `boxes`. Leading axes may be missing,
        or of length 1.
    scales, means : sequence of 4 floats, default 1 and 0
        The normalization of the result: (t - mean) * scale.
    anchor_form : {"corner", "center"}, default "corner"
        Whether an anchor is (x1, y1, x2, y2) or (cx, cy, w, h); `boxes` have corners in any case.
    offset : {0, 1}, default 0
        1 counts whole pixels: it is added to widths and heights that follow from corners.
    axis : int, default -1
        The axis of the four coordinates.
    out : numpy.ndarray, optional
        Where to write the result: its shape and dtype, C-contiguous.
    backend : {"cython", "numba", "cuda"}, optional
        None takes CUDA where an input lives on a GPU, else Cython.

    Returns
    -------
    numpy.ndarray
        (tx, ty, tw, th) with the shape of `boxes`, and their dtype: float64 for integers.

    Raises
    ------
    TypeError
        If an argument has a wrong dtype or type.
    ValueError
        If shapes do not fit, a scale is 0, an option is no finite number, there is no such `axis` or `anchor_form`, or
        `offset` is neither 0 nor 1.

    See Also
    --------
    decode_bbox : The inverse.

    Notes
    -----
    The definition is the encoder of the same box coders: tensorpack's, torchvision's, Detectron2's and MMDetection's.
    NaN stays in its own coordinates. A side of no length has the logarithm -inf, an anchor's side of no length gives
    inf or NaN, and a box and an anchor of opposite orientation give NaN for tw or th.

    Examples
    --------
    >>> import numpy as np
    >>> import detops
    >>> anchors = np.array([[0.0, 0.0, 10.0, 20.0]])
    >>> detops.encode_bbox(np.array([[1.0, 0.0, 11.0, 20.0]]), anchors)
    array([[0.1, 0. , 0. , 0. ]])
    """
    given = boxes, anchors, (), scales, means, anchor_form, offset, axis, out, backend
    return _transform("encode_bbox", "boxes", *given)


def _transform(
    kernel: str,
    name: str,
    subject: Any,
    anchors: Any,
    attributes: tuple[float, ...],
    scales: Sequence[float],
    means: Sequence[float],
    anchor_form: str,
    offset: int,
    axis: int,
    out: Any,
    backend: str | None,
) -> NDArray[np.floating[Any]]:
    call = Call(backend, **{name: subject, "anchors": anchors})
    dtype = call.check_dtype(_checks.FLOATS if name == "box_predictions" else _checks.COORDINATES, name)
    call.check_dtype(_checks.COORDINATES, "anchors")
    if not call["anchors"].size:
        call.read_empty("anchors", 4)
        call.read_empty(name, 4)
    classes, inner = _layout(name, call[name].shape, call["anchors"].shape, axis)
    normalization = _normalization(scales, means, dtype)
    form = _form(anchor_form, offset)
    given = call[name].dtype
    results = call.results(out, (call[name].shape, _checks.native(given) if given.kind == "f" else dtype, dtype))
    _registry.kernel(kernel, call.backend, dtype)(
        call.cast(name, dtype),
        call.cast("anchors", dtype),
        *_checks.in_range(attributes, dtype),
        *normalization,
        *form,
        classes,
        inner,
        *results.buffers,
    )
    return results.deliver()


def _normalization(scales: Any, means: Any, dtype: np.dtype) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return scales and means as kernels take them."""
    if scales is ONES and means is ZEROS:
        return _NO_NORMALIZATION
    scales, means = _checks.reals("scales", scales, 4), _checks.reals("means", means, 4)
    if 0 in scales:
        raise ValueError(f"scales: expected numbers other than 0, got {scales}")
    return _checks.in_range(scales, dtype), _checks.in_range(means, dtype)


def _form(anchor_form: Any, offset: Any) -> tuple[int, float]:
    """Return the form of anchors and the offset as kernels take them."""
    if anchor_form is CORNER and offset is NO_OFFSET:
        return _USUAL_FORM
    return FORMS[_checks.choice("anchor_form", anchor_form, FORMS)], _suppression.offset(offset)


def _fits(anchors: tuple[int, ...], wanted: tuple[int, ...], position: int) -> bool:
    """Whether anchors have this shape, but for leading axes that they lack, or where they have length 1."""
    missing = len(wanted) - len(anchors)
    if not 0 <= missing <= position:
        return False
    while missing < position and anchors[0] == 1:
        anchors, missing = anchors[1:], missing + 1
    return anchors == wanted[missing:]


def _layout(name: str, shape: tuple[int, ...], anchors: tuple[int, ...], axis: int) -> tuple[int, int]:
    """Return how many boxes in a row share an anchor, and how many have their first coordinates side by side."""
    # One box for each anchor is the usual case.
    if type(axis) is int and axis == -1 and shape == anchors and shape[-1:] == (4,):
        return 1, 1
    if not shape:
        raise ValueError(f"{name}: expected shape (..., 4), got ()")
    position = _checks.axis("axis", axis, len(shape))
    last = position == len(shape) - 1
    if shape[position] % 4 or (shape[position] != 4 and not last):
        fitting = "(..., 4) or (..., 4 * num_classes)" if last else f"with 4 coordinates on axis {position}"
        raise ValueError(f"{name}: expected shape {fitting}, got {shape}")
    wanted = (*shape[:position], 4, *shape[position + 1 :])
    if anchors != wanted and not _fits(anchors, wanted, position):
        leading = ", or its last axes" if position else ""
        raise ValueError(f"anchors: expected shape {wanted}{leading}, got {anchors}")
    return max(shape[position] // 4, 1), max(math.prod(shape[position + 1 :]), 1)
