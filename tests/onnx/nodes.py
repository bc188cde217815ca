"""Nodes to run in both engines, inputs in the order of the operator and attributes: made of calls of the functions."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from detops.onnx._table import OPERATORS, Attribute, Input, NodeType
from detops.testing import STRATEGIES

Node = tuple[list[np.ndarray | None], dict[str, Any]]
NATIVE = [operator for operator in OPERATORS if operator.native]


def typed(operator: NodeType, node: Node, types: Sequence[str]) -> Node:
    """Return the node with inputs of these types, one of the operator's combinations."""
    inputs, attributes = node
    with np.errstate(over="ignore"):
        cast = [None if array is None else array.astype(dtype) for array, dtype in zip(inputs, types, strict=False)]
    return cast, attributes


@st.composite
def nodes(draw: st.DrawFn, operator: NodeType) -> Node:
    """Nodes of an operator, with arrays in float64; cast them with `typed`."""
    fixed = {"score_threshold": draw(st.sampled_from([-0.5, 0.0, 0.5]))}
    function = "cummax" if operator.family == "cumulative" else operator.family
    arrays, options = draw(STRATEGIES[function]("float64", **fixed))
    arrays = _required(operator, arrays)
    values = {**options, **_shapes(arrays, options)}
    for each in operator.inputs:
        if each.argument in options:
            arrays[each.argument] = draw(_number(each, values))
    attributes = {}
    for declared in operator.attributes:
        value = draw(_value(declared, values.get(declared.argument)))
        if value is not None and not (value == declared.default and draw(st.booleans())):
            attributes[draw(st.sampled_from(declared.names))] = value
    inputs = [arrays.get(declared.argument) for declared in operator.inputs]
    while inputs and inputs[-1] is None:
        inputs.pop()
    return inputs, attributes


def _required(operator: NodeType, arrays: dict[str, Any]) -> dict[str, Any]:
    """Arrays that mean the same, with those that the operator's nodes have to hold."""
    wanted = {each.argument for each in operator.inputs if each.required}
    meant = dict(arrays)
    if "batch_indices" in wanted and "batch_indices" not in arrays:
        meant |= {"rois": arrays["rois"][:, 1:], "batch_indices": arrays["rois"][:, 0].astype(np.int64)}
    elif "batch_indices" in arrays and "batch_indices" not in wanted:
        meant["rois"] = np.concatenate([arrays["batch_indices"][:, np.newaxis], arrays["rois"]], 1)
    absent = {name for name in wanted if arrays.get(name) is None}
    if absent & {"scale", "bias"}:
        channels = arrays["x"].shape[1]
        meant |= {name: np.full(channels, float(name == "scale")) for name in absent}
    if "mask" in absent:
        images, points, *sides = arrays["offset"].shape
        meant["mask"] = np.ones((images, points // 2, *sides))
    return meant


def _shapes(arrays: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """What a node says and a function is not told, or need not be: it is in the shapes, or in another form."""
    found: dict[str, Any] = {}
    if "output_size" in options:
        found["output_size"] = _pair(options["output_size"])
        found["output_height"], found["output_width"] = found["output_size"]
    if "weight" in arrays:
        x, offset, weight = (arrays[name].shape for name in ("x", "offset", "weight"))
        found = {
            "kernel_shape": weight[2:],
            "groups": x[1] // weight[1],
            "offset_groups": offset[1] // (2 * weight[2] * weight[3]),
            **{name: _pair(options[name]) for name in ("stride", "padding", "dilation")},
        }
    return found


def _pair(value: Any) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else (value, value)


@st.composite
def _number(draw: st.DrawFn, declared: Input, values: dict[str, Any]) -> np.ndarray | None:
    """An option as an input, of no axes or one; or as what the node says otherwise, or does not say."""
    value = values[declared.argument]
    where = draw(st.sampled_from(["input", "attribute", "absent"]))
    if where != "attribute":
        values[declared.argument] = None
    if where != "input":
        return None
    return np.full(draw(st.sampled_from([(), (1,)])), value, declared.dtype)


@st.composite
def _value(draw: st.DrawFn, declared: Attribute, value: Any) -> Any:
    """What a node holds for an option; None where it holds nothing."""
    if declared.words and declared.kind != "float":
        return draw(st.sampled_from(list(declared.words)))
    if value is None:
        return None
    if declared.argument == "padding":
        # ONNX has four numbers, MMCV two or four.
        four = value if len(value) == 4 else value * 2
        return list(value) if declared.order and len(value) == 2 else [four[i] for i in declared.order or range(4)]
    if declared.kind in ("ints", "floats"):
        return [int(each) if declared.kind == "ints" else float(each) for each in value]
    return int(value) if declared.kind == "int" else float(value)
