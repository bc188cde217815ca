"""A strategy per operator family, and the table of all: dtype -> (arrays by name, options by name)."""

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from detops.testing.arguments import FLOATS, array, boxes, integers

Call = tuple[dict[str, Any], dict[str, Any]]

COUNTS = st.integers(0, 9)
SIDES = st.integers(1, 5)
# No ratio of two small whole numbers, so that rounding cannot decide whether a box is dropped.
IOUS = st.sampled_from([0.0, 0.2503, 0.4001, 0.5003, 0.7001, 1.0])
LEAST_SCORES = [-np.inf, 0.0, 0.25, 0.5, 2.0]
TOP_KS = st.sampled_from([None, None, 0, 2, 3, 20])
SCORES: dict[str, Any] = {"low": 0, "high": 1, "parts": 8, "odd": [np.nan, -np.inf, 0.0625]}


@st.composite
def cumulative(draw: st.DrawFn, dtype: str) -> Call:
    """Running extremes: many ties, NaN and infinities."""
    shape = tuple(draw(st.lists(st.integers(0, 6), max_size=3)))
    odd = [np.nan, np.inf, -np.inf, -0.0] if dtype in FLOATS else []
    x = draw(array(dtype, shape, 0 if dtype.startswith(("u", "b")) else -3, 3, odd=odd))
    rank = max(len(shape), 1)
    return {"x": x}, {"axis": draw(st.integers(-rank, rank - 1))}


@st.composite
def _anchored(draw: st.DrawFn, dtype: str, subject: str, values: Callable) -> Call:
    count = draw(COUNTS)
    first = draw(st.booleans())
    classes = 1 if first else draw(st.integers(1, 3))
    # The same anchors may serve each image of a batch.
    batch = () if first else draw(st.sampled_from([(), (), (0,), (1,), (3,)]))
    subjects = draw(values(dtype, (*batch, count, classes))).reshape(*batch, count, 4 * classes)
    arrays = {subject: subjects, "anchors": draw(boxes(dtype, (count,)))}
    options: dict[str, Any] = {
        "scales": draw(st.sampled_from([(1, 1, 1, 1), (10, 10, 5, 5), (0.5, 0.25, -2, 4)])),
        "means": draw(st.sampled_from([(0, 0, 0, 0), (0.5, -0.25, 0.125, 0)])),
    }
    if first:
        arrays = {name: np.ascontiguousarray(value.T) for name, value in arrays.items()}
        options["axis"] = 0
    return arrays, options


@st.composite
def decode(draw: st.DrawFn, dtype: str) -> Call:
    """Box decoding: predictions up to 4, NaN and infinities."""

    def predictions(dtype: str, shape: tuple[int, ...]) -> st.SearchStrategy[np.ndarray]:
        return array(dtype, (*shape, 4), -4, 4, parts=8, odd=[np.nan, np.inf, -np.inf])

    arrays, options = draw(_anchored(dtype, "box_predictions", predictions))
    return arrays, {**options, "decode_clip": draw(st.sampled_from([None, 0, 1.5, 4.135]))}


def encode(dtype: str) -> st.SearchStrategy[Call]:
    """Box encoding: boxes and anchors of no size and turned ones too."""
    return _anchored(dtype, "boxes", boxes)


@st.composite
def box_iou(draw: st.DrawFn, dtype: str) -> Call:
    """Boxes of no size, turned, NaN and infinite ones among others, some of them equal."""
    aligned = draw(st.booleans())
    count = draw(COUNTS)
    arrays = {
        "boxes_a": draw(boxes(dtype, (count,))),
        "boxes_b": draw(boxes(dtype, (count if aligned else draw(COUNTS),))),
    }
    for name in draw(st.sets(st.sampled_from(sorted(arrays)))):
        odd = draw(st.sampled_from([np.nan, np.inf, -np.inf]))
        arrays[name][:1, draw(st.integers(0, 3))] = odd
    both = min(map(len, arrays.values()))
    arrays["boxes_b"][both // 2 : both] = arrays["boxes_a"][both // 2 : both]
    options = {
        "mode": draw(st.sampled_from(["iou", "iof", "giou", "diou", "ciou"])),
        "aligned": aligned,
        "offset": draw(st.sampled_from([0, 1])),
    }
    return arrays, options


@st.composite
def nms(draw: st.DrawFn, dtype: str, labeled: bool = False) -> Call:
    """Suppression of one list of boxes: tied and NaN scores."""
    count = draw(COUNTS)
    arrays = {"boxes": draw(boxes(dtype, (count,))), "scores": draw(array(dtype, (count,), **SCORES))}
    score_threshold: Any = draw(st.sampled_from([None, 0.0, 0.25]))
    if labeled:
        arrays["labels"] = draw(integers((count,), -1, 2))
        if draw(st.booleans()):
            arrays["labels"] = np.maximum(arrays["labels"], 0)
            score_threshold = draw(st.tuples(*[st.sampled_from(LEAST_SCORES)] * 3))
    options = {
        "iou_threshold": draw(IOUS),
        "score_threshold": score_threshold,
        "pre_nms_top_k": draw(TOP_KS),
        "max_output_boxes": draw(st.sampled_from([None, 0, 1, 4])),
        "offset": draw(st.sampled_from([0, 1])),
    }
    return arrays, options


@st.composite
def _onnx_nms(draw: st.DrawFn, dtype: str, score_thresholds: list[float | None]) -> Call:
    batches, classes, count = draw(st.integers(0, 2)), draw(st.integers(0, 3)), draw(COUNTS)
    arrays = {
        "boxes": draw(boxes(dtype, (batches, count))),
        "scores": draw(array(dtype, (batches, classes, count), **SCORES)),
    }
    options = {
        "max_output_boxes_per_class": draw(st.sampled_from([0, 1, 3, 20])),
        "iou_threshold": draw(IOUS),
        "score_threshold": draw(
            st.one_of(st.sampled_from(score_thresholds), st.tuples(*[st.sampled_from(LEAST_SCORES)] * classes))
        ),
        "center_point_box": draw(st.booleans()),
        "pre_nms_top_k": draw(TOP_KS),
        "max_output_boxes_total": draw(TOP_KS),
    }
    return arrays, options


def non_max_suppression(dtype: str) -> st.SearchStrategy[Call]:
    """ONNX's suppression, by batch and class."""
    return _onnx_nms(dtype, [None, 0.0, 0.25])


@st.composite
def non_max_suppression_padded(draw: st.DrawFn, dtype: str) -> Call:
    """MMCV's suppression, by batch and class."""
    arrays, options = draw(_onnx_nms(dtype, [0.0, 0.25]))
    return arrays, {**options, "offset": draw(st.sampled_from([0, 1]))}


@st.composite
def _rois(draw: st.DrawFn, dtype: str) -> Call:
    batches = draw(st.integers(1, 2))
    features = draw(array(dtype, (batches, draw(SIDES), draw(SIDES), draw(SIDES)), -8, 8))
    count = draw(st.integers(0, 4))
    rois = draw(boxes(dtype, (count,), extent=12))
    batch = draw(integers((count,), 0, batches - 1))
    options: dict[str, Any] = {
        "output_size": draw(st.one_of(st.integers(1, 3), st.tuples(st.integers(1, 3), st.integers(1, 3)))),
        "spatial_scale": draw(st.sampled_from([1.0, 0.5, 0.25])),
    }
    if draw(st.booleans()):
        return {"features": features, "rois": rois, "batch_indices": batch}, options
    return {"features": features, "rois": np.concatenate([batch[:, np.newaxis].astype(dtype), rois], 1)}, options


@st.composite
def roi_align(draw: st.DrawFn, dtype: str) -> Call:
    """Rois of whole coordinates, which may lie outside the map, have no area or be turned."""
    arrays, options = draw(_rois(dtype))
    more = {
        "sampling_ratio": draw(st.integers(-2, 3)),
        "aligned": draw(st.booleans()),
        "mode": draw(st.sampled_from(["avg", "max", "corner_max"])),
    }
    return arrays, {**options, **more}


@st.composite
def scatter_nd(draw: st.DrawFn, dtype: str) -> Call:
    """Indices from both ends, with duplicates."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    depth = draw(st.integers(0, len(shape)))
    where = tuple(draw(st.lists(st.integers(0, 4), min_size=0, max_size=2)))
    positions = [draw(integers(where, -length, length - 1)) for length in shape[:depth]]
    indices = np.stack(positions, axis=-1) if positions else np.zeros((*where, 0), np.int64)
    low = 0 if dtype.startswith(("u", "b")) else -3
    arrays = {
        "data": draw(array(dtype, shape, low, 3)),
        "indices": indices,
        "updates": draw(array(dtype, (*where, *shape[depth:]), low, 3)),
    }
    reductions = ["none"] if dtype == "bool" else ["none", "add", "mul", "min", "max"]
    return arrays, {"reduction": draw(st.sampled_from(reductions))}


@st.composite
def deform_conv2d(draw: st.DrawFn, dtype: str) -> Call:
    """Groups, strides and unequal padding; offsets that leave the map."""
    groups, offset_groups = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    channels = 2 * draw(st.integers(1, 2))
    kernel = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    stride, dilation = (draw(st.tuples(st.integers(1, 2), st.integers(1, 2))) for _ in range(2))
    padding = draw(st.tuples(*[st.integers(0, 2)] * 4))
    reach = [dilation[i] * (kernel[i] - 1) + 1 for i in range(2)]
    size = [max(draw(SIDES), reach[i] - padding[i] - padding[i + 2], 1) for i in range(2)]
    out = tuple((size[i] + padding[i] + padding[i + 2] - reach[i]) // stride[i] + 1 for i in range(2))
    batches, points = draw(st.integers(0, 2)), kernel[0] * kernel[1] * offset_groups
    maps = groups * draw(st.integers(1, 2))
    arrays = {
        "x": draw(array(dtype, (batches, channels, *size), -4, 4)),
        "offset": draw(array(dtype, (batches, 2 * points, *out), -3, 3, parts=4, odd=[1e4, -1e4])),
        "weight": draw(array(dtype, (maps, channels // groups, *kernel), -4, 4)),
        "bias": draw(st.one_of(st.none(), array(dtype, (maps,), -4, 4))),
        "mask": draw(st.one_of(st.none(), array(dtype, (batches, points, *out), 0, 1, parts=4))),
    }
    options: dict[str, Any] = {"stride": stride, "padding": padding, "dilation": dilation}
    # Left out, both are read off the shapes.
    if draw(st.booleans()):
        options |= {"groups": groups, "offset_groups": offset_groups}
    return arrays, options


@st.composite
def grid_sample(draw: st.DrawFn, dtype: str) -> Call:
    """Points in, on the border of and far outside a map of two or three dimensions."""
    mode = draw(st.sampled_from(["linear", "nearest", "cubic"]))
    dims = draw(st.integers(2, 3))
    batches = draw(st.integers(0, 2))
    x = draw(array(dtype, (batches, draw(SIDES), *(draw(SIDES) for _ in range(dims))), -8, 8))
    points = tuple(draw(st.integers(0, 3)) for _ in range(dims))
    padding_mode = draw(st.sampled_from(["zeros", "border", "reflection"]))
    # Far out, rounding decides where a reflected point comes down.
    odd = [np.nan, np.inf, -np.inf] + ([] if padding_mode == "reflection" else [1e30, -1e30])
    grid = draw(array(dtype, (batches, *points, dims), -2, 2, parts=16, odd=odd))
    options = {
        "mode": mode,
        "padding_mode": padding_mode,
        "align_corners": draw(st.booleans()),
        "reflect_first": draw(st.booleans()),
    }
    return {"x": x, "grid": grid}, options


@st.composite
def instance_norm(draw: st.DrawFn, dtype: str) -> Call:
    """Maps of any rank; some are constant, some have a mean far above their deviation."""
    channels = draw(SIDES)
    shape = (draw(st.integers(0, 2)), channels, *draw(st.lists(SIDES, min_size=1, max_size=3)))
    x = draw(array(dtype, shape, -4, 4)) + np.dtype(dtype).type(draw(st.sampled_from([0, 0, 100])))
    parameters = {
        name: draw(st.one_of(st.none(), array(dtype, (channels,), -4, 4, parts=4))) for name in ("scale", "bias")
    }
    return {"x": x, **parameters}, {"epsilon": draw(st.sampled_from([1e-5, 0.1]))}


STRATEGIES: dict[str, Callable[[str], st.SearchStrategy[Call]]] = {
    "batched_nms": lambda dtype: nms(dtype, labeled=True),
    "box_iou": box_iou,
    "cummax": cumulative,
    "cummin": cumulative,
    "decode_bbox": decode,
    "deform_conv2d": deform_conv2d,
    "encode_bbox": encode,
    "grid_sample": grid_sample,
    "instance_norm": instance_norm,
    "nms": nms,
    "non_max_suppression": non_max_suppression,
    "non_max_suppression_padded": non_max_suppression_padded,
    "roi_align": roi_align,
    "roi_pool": _rois,
    "scatter_nd": scatter_nd,
}
