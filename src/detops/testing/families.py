"""Calls of each operator, dtype -> (arrays by name, options by name).

Options are drawn from the specification. What is written here, once for each operator, is how the shapes of its arrays
fit them and each other.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from detops._specification import OPERATORS, Option
from detops.testing.arguments import FLOATS, array, boxes, integers

Options = dict[str, Any]
Arrays = dict[str, Any]
Drawn = tuple[Arrays, Options]

COUNTS = st.integers(0, 9)
SIDES = st.integers(1, 5)
SCORES: dict[str, Any] = {"low": 0, "high": 1, "parts": 8, "odd": [np.nan, -np.inf, 0.0625]}

# What bounds do not tell: which numbers decide something, and which do not round.
USUAL: dict[str, list[Any]] = {
    "decode_clip": [None, 0, 1.5, 4.135],
    "epsilon": [1e-5, 0.1],
    # No ratio of two small whole numbers, so that rounding cannot decide whether a box is dropped.
    "iou_threshold": [0.0, 0.2503, 0.4001, 0.5003, 0.7001, 1.0],
    "lower_clip": [None, None, -1.0, 0.5],
    "means": [(0, 0, 0, 0), (0.5, -0.25, 0.125, 0)],
    "scales": [(1, 1, 1, 1), (10, 10, 5, 5), (0.5, 0.25, -2, 4)],
    "min_score": [1e-3, 0.0503, 0.3007],
    "score_threshold": [None, 0.0, 0.25],
    "sigma": [0.5, 0.1],
    "spatial_scale": [1.0, 0.5, 0.25],
}
LEAST_SCORES = [-np.inf, 0.0, 0.25, 0.5, 2.0]


def values(option: Option) -> st.SearchStrategy[Any]:
    """Values of an option by itself."""
    if option.kind == "bool":
        return st.booleans()
    if option.kind == "word":
        return st.sampled_from(sorted(option.words))
    if option.name in USUAL:
        return st.sampled_from([value for value in USUAL[option.name] if value is not None or option.optional])
    if option.kind == "integers":
        number = st.integers(int(option.least or 0), int(option.least or 0) + 2)
        return st.one_of(number, st.tuples(number, number))
    if option.kind != "integer":
        raise ValueError(f"option: expected one with values in USUAL, got {option.name}")
    if option.least is None:
        return st.integers(-2, 3)
    if option.most is not None:
        return st.integers(int(option.least), int(option.most))
    numbers = [int(option.least) + step for step in (0, 1, 2, 3, 20)]
    return st.sampled_from([None, None, *numbers] if option.optional else numbers)


@st.composite
def calls(draw: st.DrawFn, operator: str, dtype: str, **fixed: Any) -> Drawn:
    """Calls of an operator whose float arrays have a dtype; ``fixed`` are options that are not to be drawn."""
    options = {
        each.name: fixed[each.name] if each.name in fixed else draw(values(each))
        for each in OPERATORS[operator].options
    }
    arrays = ARRAYS[operator](draw, dtype, options)
    return arrays, options


def _lowest(dtype: str) -> int:
    return 0 if dtype.startswith(("u", "b")) else -3


def cumulative(draw: st.DrawFn, dtype: str, options: Options) -> Arrays:
    """Running extremes: many ties, NaN and infinities."""
    shape = tuple(draw(st.lists(st.integers(0, 6), max_size=3)))
    rank = max(len(shape), 1)
    options["axis"] = draw(st.integers(-rank, rank - 1))
    odd = [np.nan, np.inf, -np.inf, -0.0] if dtype in FLOATS else []
    return {"x": draw(array(dtype, shape, _lowest(dtype), 3, odd=odd))}


def _anchored(draw: st.DrawFn, dtype: str, options: Options, subject: str, values: Callable) -> Arrays:
    around = draw(st.lists(st.sampled_from([1, 2, 3, 9, 0]), max_size=2))
    position = draw(st.integers(0, len(around)))
    options["axis"] = position - draw(st.sampled_from([0, len(around) + 1]))
    # Only where the coordinates come last, an anchor may be that of several boxes.
    classes = draw(st.integers(0, 3)) if position == len(around) else 1
    subjects = draw(values(dtype, (*around, classes)))
    anchors = draw(boxes(dtype, _served(draw, around, position)))
    subjects = subjects.reshape(*around, 4 * classes)
    missing = len(around) + 1 - anchors.ndim
    arrays = {subject: np.moveaxis(subjects, -1, position), "anchors": np.moveaxis(anchors, -1, position - missing)}
    return {name: np.ascontiguousarray(value) for name, value in arrays.items()}


def _served(draw: st.DrawFn, around: list[int], position: int) -> tuple[int, ...]:
    """The axes of anchors, of which the same may serve each image of a batch: leading axes are missing, or are 1."""
    missing = draw(st.integers(0, position))
    return tuple(around[missing:]) if draw(st.booleans()) else (*[1] * missing, *around[missing:])


def decode_bbox(draw: st.DrawFn, dtype: str, options: Options) -> Arrays:
    """Box decoding: predictions up to 4, NaN and infinities."""

    def predictions(dtype: str, shape: tuple[int, ...]) -> st.SearchStrategy[np.ndarray]:
        return array(dtype, (*shape, 4), -4, 4, parts=8, odd=[np.nan, np.inf, -np.inf])

    return _anchored(draw, dtype, options, "box_predictions", predictions)


def encode_bbox(draw: st.DrawFn, dtype: str, options: Options) -> Arrays:
    """Box encoding: boxes and anchors of no size and turned ones too."""
    return _anchored(draw, dtype, options, "boxes", boxes)


def box_iou(draw: st.DrawFn, dtype: str, options: Options) -> Arrays:
    """Boxes of no size, turned, NaN and infinite ones among others, some of them equal."""
    return _two_sets(draw, boxes, dtype, options)


def _two_sets(draw: st.DrawFn, strategy: Callable, dtype: str, options: Options) -> Arrays:
    count = draw(COUNTS)
    arrays = {
        "boxes_a": draw(strategy(dtype, (count,))),
        "boxes_b": draw(strategy(dtype, (count if options["aligned"] else draw(COUNTS),))),
    }
    for name in draw(st.sets(st.sampled_from(sorted(arrays)))):
        odd = draw(st.sampled_from([np.nan, np.inf, -np.inf]))
        arrays[name][:1, draw(st.integers(0, arrays[name].shape[1] - 1))] = odd
    both = min(map(len, arrays.values()))
    arrays["boxes_b"][both // 2 : both] = arrays["boxes_a"][both // 2 : both]
    return arrays


def rotated_boxes(dtype: str, shape: tuple[int, ...]) -> st.SearchStrategy[np.ndarray]:
    """Boxes (..., 5) of whole centers and sizes, some of no size; angles of halves."""
    parts = array(dtype, (*shape, 2), -9, 9), array(dtype, (*shape, 2), -1, 12), array(dtype, (*shape, 1), -4, 4, 2)
    return st.tuples(*parts).map(lambda drawn: np.concatenate(drawn, axis=-1))


def box_iou_rotated(draw: st.DrawFn, dtype: str, options: Options) -> Arrays:
    """Turned boxes, NaN and infinite ones among others, some of them equal."""
    return _two_sets(draw, rotated_boxes, dtype, options)


def nms(draw: st.DrawFn, dtype: str, options: Options) -> Arrays:
    """Suppression of one list of boxes: tied and NaN scores."""
    count = draw(COUNTS)
    return {"boxes": draw(boxes(dtype, (count,))), "scores": draw(array(dtype, (count,), **SCORES))}


def nms_rotated(draw: st.DrawFn, dtype: str, options: Options) -> Arrays:
    """Suppression of turned boxes, with labels or without."""
    count = draw(COUNTS)
    arrays = {"boxes": draw(rotated_boxes(dtype, (count,))), "scores": draw(array(dtype, (count,), **SCORES))}
    return {**arrays, "labels": draw(st.one_of(st.none(), integers((count,), -1, 1)))}


def soft_nms(draw: st.DrawFn, dtype: str, options: Options) -> Arrays:
    """Suppression that lowers scores: no two products of scores and weights are near each other but equal ones."""
    count = draw(COUNTS)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    scores = rng.uniform(0.01, 1, count).astype(dtype)
    for odd in draw(st.lists(st.sampled_from([np.nan, np.inf, -np.inf]), max_size=1)):
        scores[:1] = odd
    return {"boxes": draw(boxes(dtype, (count,))), "scores": scores}


def batched_nms(draw: st.DrawFn, dtype: str, options: Options) -> Arrays:
    """The same with labels, for each of which there may be a threshold."""
    arrays = nms(draw, dtype, options)
    labels = draw(integers(arrays["scores"].shape, -1, 2))
    if draw(st.booleans()):
        labels = np.maximum(labels, 0)
        options["score_threshold"] = draw(st.tuples(*[st.sampled_from(LEAST_SCORES)] * 3))
    return {**arrays, "labels": labels}


def non_max_suppression(draw: st.DrawFn, dtype: str, options: Options) -> Arrays:
    """Suppression by batch and class."""
    batches, classes, count = draw(st.integers(0, 2)), draw(st.integers(0, 3)), draw(COUNTS)
    if options["score_threshold"] == 0.25 and draw(st.booleans()):
        options["score_threshold"] = draw(st.tuples(*[st.sampled_from(LEAST_SCORES)] * classes))
    return {
        "boxes": draw(boxes(dtype, (batches, count))),
        "scores": draw(array(dtype, (batches, classes, count), **SCORES)),
    }


def rois(draw: st.DrawFn, dtype: str, options: Options) -> Arrays:
    """Rois of whole coordinates, which may lie outside the map, have no area or be turned."""
    batches = draw(st.integers(1, 2))
    features = draw(array(dtype, (batches, draw(SIDES), draw(SIDES), draw(SIDES)), -8, 8))
    count = draw(st.integers(0, 4))
    rois = draw(boxes(dtype, (count,), extent=12))
    batch = draw(integers((count,), 0, batches - 1))
    if draw(st.booleans()):
        return {"features": features, "rois": rois, "batch_indices": batch}
    return {"features": features, "rois": np.concatenate([batch[:, np.newaxis].astype(dtype), rois], 1)}


def scatter_nd(draw: st.DrawFn, dtype: str, options: Options) -> Arrays:
    """Indices from both ends, with duplicates."""
    if dtype == "bool":
        options["reduction"] = "none"
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    depth = draw(st.integers(0, len(shape)))
    where = tuple(draw(st.lists(st.integers(0, 4), min_size=0, max_size=2)))
    positions = [draw(integers(where, -length, length - 1)) for length in shape[:depth]]
    return {
        "data": draw(array(dtype, shape, _lowest(dtype), 3)),
        "indices": np.stack(positions, axis=-1) if positions else np.zeros((*where, 0), np.int64),
        "updates": draw(array(dtype, (*where, *shape[depth:]), _lowest(dtype), 3)),
    }


def deform_conv2d(draw: st.DrawFn, dtype: str, options: Options) -> Arrays:
    """Groups, strides and unequal padding; offsets that leave the map."""
    if draw(st.booleans()):
        options["padding"] = draw(st.tuples(*[st.integers(0, 2)] * 4))
    stride, dilation = _pair(options["stride"]), _pair(options["dilation"])
    padding = _pair(options["padding"]) * (1 if np.size(options["padding"]) == 4 else 2)
    groups, offset_groups = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    # The shapes say them as well.
    options["groups"] = draw(st.sampled_from([None, groups]))
    options["offset_groups"] = draw(st.sampled_from([None, offset_groups]))
    channels = 2 * draw(st.integers(1, 2))
    kernel = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    reach = [dilation[i] * (kernel[i] - 1) + 1 for i in range(2)]
    size = [max(draw(SIDES), reach[i] - padding[i] - padding[i + 2], 1) for i in range(2)]
    out = tuple((size[i] + padding[i] + padding[i + 2] - reach[i]) // stride[i] + 1 for i in range(2))
    batches, points = draw(st.integers(0, 2)), kernel[0] * kernel[1] * offset_groups
    maps = groups * draw(st.integers(1, 2))
    return {
        "x": draw(array(dtype, (batches, channels, *size), -4, 4)),
        "offset": draw(array(dtype, (batches, 2 * points, *out), -3, 3, parts=4, odd=[1e4, -1e4])),
        "weight": draw(array(dtype, (maps, channels // groups, *kernel), -4, 4)),
        "bias": draw(st.one_of(st.none(), array(dtype, (maps,), -4, 4))),
        "mask": draw(st.one_of(st.none(), array(dtype, (batches, points, *out), 0, 1, parts=4))),
    }


def _pair(value: Any) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else (value, value)


def grid_sample(draw: st.DrawFn, dtype: str, options: Options) -> Arrays:
    """Points in, on the border of and far outside a map of two or three dimensions."""
    dims = draw(st.integers(2, 3))
    batches = draw(st.integers(0, 2))
    points = tuple(draw(st.integers(0, 3)) for _ in range(dims))
    # Far out, rounding decides where a reflected point comes down.
    odd = [np.nan, np.inf, -np.inf] + ([] if options["padding_mode"] == "reflection" else [1e30, -1e30])
    return {
        "x": draw(array(dtype, (batches, draw(SIDES), *(draw(SIDES) for _ in range(dims))), -8, 8)),
        "grid": draw(array(dtype, (batches, *points, dims), -2, 2, parts=16, odd=odd)),
    }


def instance_norm(draw: st.DrawFn, dtype: str, options: Options) -> Arrays:
    """Maps of any rank; some are constant, some have a mean far above their deviation."""
    channels = draw(SIDES)
    shape = (draw(st.integers(0, 2)), channels, *draw(st.lists(SIDES, min_size=1, max_size=3)))
    x = draw(array(dtype, shape, -4, 4)) + np.dtype(dtype).type(draw(st.sampled_from([0, 0, 100])))
    parameters = {
        name: draw(st.one_of(st.none(), array(dtype, (channels,), -4, 4, parts=4))) for name in ("scale", "bias")
    }
    return {"x": x, **parameters}


def multi_scale_deform_attn(draw: st.DrawFn, dtype: str, options: Options) -> Arrays:
    """Maps of some sizes, empty ones too, in any order among the keys; points in and around them."""
    images, heads, channels = draw(st.integers(0, 2)), draw(st.integers(1, 2)), draw(SIDES)
    shapes = draw(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=3))
    starts, keys = [0] * len(shapes), 0
    for level in draw(st.permutations(range(len(shapes)))):
        starts[level] = keys + draw(st.integers(0, 1))
        keys = starts[level] + shapes[level][0] * shapes[level][1]
    around = (images, draw(st.integers(0, 3)), heads, len(shapes), draw(st.integers(0, 2)))
    return {
        "value": draw(array(dtype, (images, keys + 1, heads, channels), -8, 8)),
        "spatial_shapes": np.array(shapes, np.int64).reshape(-1, 2),
        "level_start_index": np.array(starts, np.int64),
        "sampling_locations": draw(array(dtype, (*around, 2), -1, 2, parts=16, odd=[np.nan, np.inf, -np.inf])),
        "attention_weights": draw(array(dtype, around, 0, 1, parts=8)),
    }


ARRAYS: dict[str, Callable[[st.DrawFn, str, Options], Arrays]] = {
    "batched_nms": batched_nms,
    "box_iou": box_iou,
    "box_iou_rotated": box_iou_rotated,
    "cummax": cumulative,
    "cummin": cumulative,
    "decode_bbox": decode_bbox,
    "deform_conv2d": deform_conv2d,
    "encode_bbox": encode_bbox,
    "grid_sample": grid_sample,
    "instance_norm": instance_norm,
    "multi_scale_deform_attn": multi_scale_deform_attn,
    "nms": nms,
    "nms_rotated": nms_rotated,
    "non_max_suppression": non_max_suppression,
    "non_max_suppression_padded": non_max_suppression,
    "roi_align": rois,
    "roi_pool": rois,
    "scatter_nd": scatter_nd,
    "soft_nms": soft_nms,
}

STRATEGIES: dict[str, Callable[..., st.SearchStrategy[Drawn]]] = {
    operator: functools.partial(calls, operator) for operator in ARRAYS
}
