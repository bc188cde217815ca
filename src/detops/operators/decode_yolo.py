"""Boxes and scores from what the last convolutions of a YOLO give. NumPy computes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detops.operators import _checks, _host, decode_distance

ANCHORED = ("yolov3", "yolov5")
FORMS = (*ANCHORED, "yolox", "yolov8")


def decode_yolo(
    maps: Sequence[ArrayLike],
    strides: Sequence[float],
    *,
    form: Literal["yolov3", "yolov5", "yolox", "yolov8"],
    anchors: ArrayLike | None = None,
    bins: int = 16,
    activated: bool = False,
) -> tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]]]:
    """Turn what the last convolutions of a YOLO give into boxes and scores.

    With s the sigmoid, (column, row) a cell of a map, and a score that is s(class), times s(object) where there is one:

    ============  ==========================  ======================================================  ==================
    form          channels                    center and size                                         as in
    ============  ==========================  ======================================================  ==================
    ``"yolov3"``  for each anchor x, y, w, h  (s(x) + column) * stride, exp(w) * anchor width         YOLOv3
                  object, classes
    ``"yolov5"``  for each anchor x, y, w, h  (2 s(x) - 0.5 + column) * stride, (2 s(w))^2 * width    YOLOv5, YOLOv7
                  object, classes
    ``"yolox"``   x, y, w, h, object,         (x + column) * stride, exp(w) * stride                  YOLOX
                  classes
    ``"yolov8"``  4 * bins, classes           by :func:`decode_distance` from (column + 0.5) *        YOLOv8 and later,
                                              stride                                                  YOLOv6, PP-YOLOE
    ============  ==========================  ======================================================  ==================

    Parameters
    ----------
    maps : sequence of array_like of float16, float32 or float64, shape (batch, channels, height, width)
        What each level gives, before any sigmoid.
    strides : sequence of floats
        How many pixels of the image a cell of each level is wide and high, above 0.
    form : {"yolov3", "yolov5", "yolox", "yolov8"}
        How the channels are read.
    anchors : array_like of float16, float32, float64 or an integer type, shape (levels, num_anchors, 2), optional
        Widths and heights of the anchors of each level in pixels, for the forms that have them.
    bins : int, default 16
        The number of logits of each distance of ``"yolov8"``; 1 for plain distances.
    activated : bool, default False
        Whether what the sigmoid is asked of above has gone through it already, as some exports do.

    Returns
    -------
    boxes : numpy.ndarray, shape (batch, num_boxes, 4)
        (x1, y1, x2, y2) in pixels, in the dtype of the first map: level by level, within one anchor by anchor, within
        one row by row.
    scores : numpy.ndarray, shape (batch, num_boxes, num_classes)
        The scores of each class, from 0 to 1, in the same dtype.

    Raises
    ------
    TypeError
        If an argument has a wrong dtype or type, or lies on a GPU.
    ValueError
        If shapes do not fit, a stride is not above 0, `bins` is below 1, or there is no such `form`; if `anchors` are
        missing, or the form has none.

    See Also
    --------
    decode_distance : Boxes from distances to their sides.
    batched_nms : What usually comes next.

    Notes
    -----
    A NaN reaches the box, or the scores, whose channel it is in. The definitions are those of the detection heads of
    YOLOv3, YOLOv5 and YOLOv8 in ultralytics and of YOLOX in Megvii's repository, with torch's sigmoid.

    Examples
    --------
    >>> import numpy as np
    >>> import detops
    >>> level = np.zeros((1, 6, 1, 2), np.float32)
    >>> boxes, scores = detops.decode_yolo([level], [8], form="yolox")
    >>> boxes
    array([[[-4., -4.,  4.,  4.],
            [ 4., -4., 12.,  4.]]], dtype=float32)
    >>> scores.ravel()
    array([0.25, 0.25], dtype=float32)
    """
    _checks.choice("form", form, FORMS)
    count, done = _checks.integer("bins", bins, at_least=1), _checks.flag("activated", activated)
    levels = _maps(maps)
    dtype = levels[0][1]
    steps = _checks.reals("strides", strides, len(levels))
    steps = tuple(_checks.real(f"strides[{at}]", step, positive=True) for at, step in enumerate(steps))
    sizes = _anchors(anchors, form, len(levels))
    pairs = []
    with np.errstate(over="ignore", invalid="ignore"):
        for at, ((level, _), stride) in enumerate(zip(levels, steps, strict=True)):
            if form == "yolov8":
                pairs.append(_by_distances(f"maps[{at}]", level, stride, count, done))
            else:
                pairs.append(_by_sizes(f"maps[{at}]", level, stride, form, None if sizes is None else sizes[at], done))
        boxes, scores = (np.concatenate(parts, axis=1, dtype=levels[0][0].dtype) for parts in zip(*pairs, strict=True))
        return _host.rounded(boxes, dtype), _host.rounded(scores, dtype)


def _maps(maps: Any) -> list[tuple[np.ndarray, np.dtype]]:
    listed = _checks.items(maps)
    if not listed:
        raise ValueError("maps: expected a sequence of at least one array, got none")
    found = [_host.array(f"maps[{at}]", level, _checks.FLOATS) for at, level in enumerate(listed)]
    for at, (level, _) in enumerate(found):
        batch = "batch" if at == 0 or level.ndim != 4 else len(found[0][0])
        _checks.shape(f"maps[{at}]", level.shape, (batch, "channels", "height", "width"))
    return found


def _anchors(anchors: Any, form: str, levels: int) -> np.ndarray | None:
    if form not in ANCHORED:
        if anchors is not None:
            raise ValueError(f"anchors: expected none with form={form!r}, got some")
        return None
    if anchors is None:
        raise ValueError(f"anchors: expected shape ({levels}, num_anchors, 2) with form={form!r}, got none")
    sizes, _ = _host.array("anchors", anchors, _checks.COORDINATES)
    _checks.shape("anchors", sizes.shape, (levels, "num_anchors", 2))
    return sizes


def _channels(name: str, level: np.ndarray, anchors: int, least: int) -> np.ndarray:
    """Return a map as (batch, anchors, channels of one anchor, height, width)."""
    batch, channels, *cells = level.shape
    if not anchors or channels % anchors or channels // anchors <= least:
        each = f"{anchors} * ({least} + num_classes)" if anchors > 1 else f"{least} + num_classes"
        raise ValueError(f"{name}: expected {each} channels, got {channels}")
    return level.reshape(batch, anchors, channels // anchors, *cells)


def _cells(level: np.ndarray) -> np.ndarray:
    """Return the columns and rows of a map's cells, as (2, height, width)."""
    height, width = level.shape[-2:]
    rows, columns = np.indices((height, width), dtype=level.dtype)
    return np.stack([columns, rows])


def _sigmoid(values: np.ndarray, done: bool) -> np.ndarray:
    return values if done else 1 / (1 + np.exp(-values))


def _in_rows(channels: np.ndarray) -> np.ndarray:
    """Return (batch, anchors, channels, height, width) as (batch, boxes, channels)."""
    return np.moveaxis(channels, 2, -1).reshape(len(channels), -1, channels.shape[2])


def _by_sizes(
    name: str, level: np.ndarray, stride: float, form: str, sizes: np.ndarray | None, done: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the boxes and scores of a level that has centers and sizes."""
    number = level.dtype.type
    given = _channels(name, level, 1 if sizes is None else len(sizes), 5)
    shift, growth, scores = given[:, :, :2], given[:, :, 2:4], _sigmoid(given[:, :, 4:], done)
    unit = number(stride) if sizes is None else sizes[:, :, None, None].astype(level.dtype)
    if form == "yolov5":
        shift = _sigmoid(shift, done) * number(2) - number(0.5)
        size = np.square(_sigmoid(growth, done) * number(2)) * unit
    else:
        shift = shift if form == "yolox" else _sigmoid(shift, done)
        size = np.exp(growth) * unit
    center, reach = (shift + _cells(level)) * number(stride), size * number(0.5)
    boxes = np.concatenate([center - reach, center + reach], axis=2)
    return _in_rows(boxes), _in_rows(scores[:, :, 1:] * scores[:, :, :1])


def _by_distances(name: str, level: np.ndarray, stride: float, bins: int, done: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the boxes and scores of a level that has distances."""
    given = _channels(name, level, 1, 4 * bins)
    points = (_cells(level) + level.dtype.type(0.5)) * level.dtype.type(stride)
    boxes = decode_distance.decode_distance(given[:, :, : 4 * bins], points, strides=stride, bins=bins, axis=2)
    return _in_rows(boxes), _in_rows(_sigmoid(given[:, :, 4 * bins :], done))
