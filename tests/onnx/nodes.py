"""For each family of operators: nodes to run, as inputs in the operator's order and attributes."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from detops.onnx._table import OPERATORS, Operator

Node = tuple[list[np.ndarray | None], dict[str, Any]]
NATIVE = [operator for operator in OPERATORS if operator.native]
_STRATEGIES: dict[str, Callable[[Operator], st.SearchStrategy[Node]]] = {}


def nodes(operator: Operator) -> st.SearchStrategy[Node]:
    """Nodes of an operator, with arrays in the types that its family asks for; cast them with `typed`."""
    return _STRATEGIES[operator.family](operator)


def typed(operator: Operator, node: Node, types: Sequence[str]) -> Node:
    """Return the node with inputs of these types, one of the operator's combinations."""
    inputs, attributes = node
    cast = [None if array is None else array.astype(dtype) for array, dtype in zip(inputs, types, strict=False)]
    return cast, attributes


def ordered(operator: Operator, arrays: dict[str, np.ndarray | None]) -> list[np.ndarray | None]:
    """Bring arrays by argument into the order of the operator's inputs; trailing absent ones fall away."""
    found = [arrays.get(declared.argument) for declared in operator.inputs]
    while found and found[-1] is None:
        found.pop()
    return found


def named(operator: Operator, arguments: dict[str, Any]) -> dict[str, Any]:
    """Spell attributes as the operator does, from what the node should hold by argument."""
    return {
        declared.name: arguments[declared.argument]
        for declared in operator.attributes
        if declared.argument in arguments
    }


def _family(*names: str) -> Callable[..., Any]:
    def register(make: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            _STRATEGIES[name] = make
        return make

    return register


def _floats(draw: Any, *shape: int, low: float = -4, high: float = 4, odd: bool = True) -> np.ndarray:
    """Quarters, which no dtype rounds, and sometimes a NaN or an infinity among them."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    array = np.asarray(rng.integers(round(4 * low), round(4 * high) + 1, shape) / 4)
    if odd and array.size and draw(st.integers(0, 4)) == 0:
        array.flat[draw(st.integers(0, array.size - 1))] = draw(st.sampled_from([np.nan, np.inf, -np.inf]))
    return array


_few = st.integers(0, 3)


@_family("cumulative")
@st.composite
def _cumulative(draw: Any, operator: Operator) -> Node:
    shape = draw(st.lists(_few, max_size=4))
    axis = draw(st.integers(-max(len(shape), 1), max(len(shape), 1) - 1))
    return [_floats(draw, *shape)], {"dim": axis}


@_family("decode_bbox")
@st.composite
def _decode_bbox(draw: Any, operator: Operator) -> Node:
    around = draw(st.lists(_few, max_size=3))
    place = draw(st.integers(0, len(around)))
    last = place == len(around)
    classes = draw(st.integers(0, 3)) if last else 1
    shape, narrow = list(around), list(around)
    shape.insert(place, 4 * classes)
    narrow.insert(place, 4)
    attributes: dict[str, Any] = {"axis": place - draw(st.sampled_from([0, len(shape)]))}
    for _ in range(draw(st.integers(0, place))):
        narrow = draw(st.sampled_from([narrow[1:], [1, *narrow[1:]]]))
        if narrow[0] == 1:
            break
    if draw(st.booleans()):
        attributes["decode_clip"] = draw(st.sampled_from([0.0, 1.5, -1.0, float("inf")]))
    if operator.name == "DecodeBboxV2" and draw(st.booleans()):
        attributes["lower_clip"] = draw(st.sampled_from([-1.0, float("-inf")]))
        attributes["scales"] = [10.0, 10.0, 5.0, 5.0]
        attributes["means"] = [0.0, 0.5, 0.0, -0.5]
    return [_floats(draw, *shape), _floats(draw, *narrow, low=-9, high=9)], attributes


@_family("nms")
@st.composite
def _nms(draw: Any, operator: Operator) -> Node:
    count = draw(st.integers(0, 9))
    boxes = _floats(draw, count, 4, low=0, high=8)
    boxes[:, 2:] += boxes[:, :2]
    attributes = {"iou_threshold": draw(st.sampled_from([0.0, 0.25, 0.5, 1.0])), "offset": draw(st.integers(0, 1))}
    return [boxes, _floats(draw, count, low=-1, high=1)], attributes


@_family("non_max_suppression_padded")
@st.composite
def _non_max_suppression_padded(draw: Any, operator: Operator) -> Node:
    batches, classes, count = draw(_few), draw(_few), draw(st.integers(0, 9))
    boxes = _floats(draw, batches, count, 4, low=0, high=8)
    boxes[..., 2:] += boxes[..., :2]
    scores = _floats(draw, batches, classes, count, low=-1, high=1)
    numbers = {
        "max_output_boxes_per_class": draw(st.integers(0, 6)),
        "iou_threshold": draw(st.sampled_from([0.0, 0.25, 0.5, 1.0])),
        "score_threshold": draw(st.sampled_from([-0.5, 0.0, 0.25])),
    }
    attributes: dict[str, Any] = {"center_point_box": draw(st.integers(0, 1)), "offset": draw(st.integers(0, 1))}
    arrays: dict[str, np.ndarray | None] = {"boxes": boxes, "scores": scores}
    for name, value in numbers.items():
        match draw(st.sampled_from(["input", "attribute", "absent"])):
            case "input":
                shape = draw(st.sampled_from([(), (1,)]))
                arrays[name] = np.full(shape, value, np.int64 if isinstance(value, int) else np.float32)
            case "attribute":
                attributes[name] = value
    return ordered(operator, arrays), attributes


@_family("roi_align", "roi_pool")
@st.composite
def _rois(draw: Any, operator: Operator) -> Node:
    batch, channels, count = draw(st.integers(1, 2)), draw(_few), draw(_few)
    features = _floats(draw, batch, channels, draw(st.integers(1, 5)), draw(st.integers(1, 5)))
    rois = np.concatenate([_floats(draw, count, 1, odd=False), _floats(draw, count, 4, low=-2, high=9, odd=False)], 1)
    rois[:, 0] = np.arange(count) % batch
    height, width = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    arguments = {
        "output_size": [height, width],
        "output_height": height,
        "output_width": width,
        "spatial_scale": draw(st.sampled_from([1.0, 0.5])),
        "sampling_ratio": draw(st.integers(-2, 2)),
        "mode": draw(st.sampled_from(["avg", "max"])),
        "aligned": draw(st.sampled_from(["half_pixel", "output_half_pixel"] if operator.domain == "" else [0, 1])),
    }
    arrays = {"features": features, "rois": rois}
    if len(operator.inputs) == 3:
        arrays |= {"rois": rois[:, 1:], "batch_indices": rois[:, 0].astype(np.int64)}
    return ordered(operator, arrays), named(operator, arguments)


@_family("grid_sample")
@st.composite
def _grid_sample(draw: Any, operator: Operator) -> Node:
    axes = draw(st.integers(2, 3))
    sizes = [draw(st.integers(1, 4)) for _ in range(axes)]
    images, channels = draw(_few), draw(_few)
    x = _floats(draw, images, channels, *sizes)
    grid = _floats(draw, images, *[draw(_few) for _ in range(axes)], axes, low=-1.5, high=1.5)
    (modes,) = (declared for declared in operator.attributes if declared.argument == "mode")
    (padding,) = (declared for declared in operator.attributes if declared.argument == "padding_mode")
    arguments = {
        "mode": draw(st.sampled_from(list(modes.words))),
        "padding_mode": draw(st.sampled_from(list(padding.words))),
        "align_corners": draw(st.integers(0, 1)),
    }
    return [x, grid], named(operator, arguments)


@_family("instance_norm")
@st.composite
def _instance_norm(draw: Any, operator: Operator) -> Node:
    channels = draw(_few)
    x = _floats(draw, draw(_few), channels, *draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    attributes = draw(st.sampled_from([{}, {"epsilon": 0.25}]))
    return [x, _floats(draw, channels), _floats(draw, channels)], attributes


@_family("deform_conv2d")
@st.composite
def _deform_conv2d(draw: Any, operator: Operator) -> Node:
    groups, offset_groups = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    stride, dilation = [[draw(st.integers(1, 2)) for _ in range(2)] for _ in range(2)]
    kernel = [draw(st.integers(1, 3)) for _ in range(2)]
    onnx = operator.name == "DeformConv"
    padding = [draw(_few) for _ in range(4 if onnx else draw(st.sampled_from([2, 4])))]
    # What the list means as (top, left, bottom, right).
    order = (0, 1, 2, 3) if onnx else (0, 2, 1, 3) if len(padding) == 4 else (0, 1, 0, 1)
    top, left, bottom, right = (padding[i] for i in order)
    shape = [draw(st.integers(5, 7)) for _ in range(2)]
    out = [
        (length + both - d * (k - 1) - 1) // s + 1
        for length, both, k, s, d in zip(shape, (top + bottom, left + right), kernel, stride, dilation, strict=True)
    ]
    images, outputs = draw(st.integers(0, 2)), 2 * groups
    arrays = {
        "x": _floats(draw, images, 4, *shape, odd=False),
        "weight": _floats(draw, outputs, 4 // groups, *kernel, odd=False),
        "offset": _floats(draw, images, 2 * offset_groups * kernel[0] * kernel[1], *out, odd=False),
        "mask": _floats(draw, images, offset_groups * kernel[0] * kernel[1], *out, low=0, high=1, odd=False),
        "bias": _floats(draw, outputs, odd=False),
    }
    for declared in operator.inputs:
        if not declared.required and draw(st.booleans()):
            arrays[declared.argument] = None
    arguments = {
        "stride": stride,
        "padding": padding,
        "dilation": dilation,
        "groups": groups,
        "offset_groups": offset_groups,
        "kernel_shape": kernel,
        "im2col_step": 1,
    }
    attributes = named(operator, arguments)
    if not onnx and draw(st.booleans()):  # as the documentation for TensorRT spells them
        attributes["group"] = attributes.pop("groups")
        attributes["deformable_group"] = attributes.pop("deform_groups")
    return ordered(operator, arrays), attributes
