"""Models of custom nodes, right and wrong: any attributes, domains, types, functions and bodies."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import helper

from detops.onnx._table import OPERATORS, NodeType, find

TYPES = ("float16", "float32", "float64", "int64")
DOMAINS = ("mmcv", "mmdeploy", "detops", "", "ai.onnx", "com.microsoft", "elsewhere")
CUSTOM = [operator for operator in OPERATORS if operator.domain]
WRONG_VALUES: list[Any] = [1, 1.0, 2.0, "avg", "other", [2], [1.0], 7, -1, [1, 1]]

# Shapes that fit an argument of a family, so that most models run.
SHAPES: dict[str, tuple[int, ...]] = {
    "features": (1, 2, 4, 4),
    "rois": (2, 5),
    "x": (1, 2, 4, 4),
    "grid": (1, 3, 3, 2),
    "weight": (2, 2, 1, 1),
    "offset": (1, 2, 4, 4),
    "mask": (1, 1, 4, 4),
    "scale": (2,),
    "bias": (2,),
    "box_predictions": (3, 4),
    "anchors": (3, 4),
    "boxes": (3, 4),
    "scores": (3,),
}
REQUIRED = {"output_height": 2, "output_width": 2, "dim": 1}


@dataclass(frozen=True)
class Drawn:
    """A model and arrays for its inputs."""

    proto: onnx.ModelProto
    feeds: dict[str, np.ndarray]


@st.composite
def _attributes(draw: st.DrawFn, operator: NodeType) -> dict[str, Any]:
    """What the node must hold, and sometimes a value of whatever kind, or one that is missing."""
    names = [each.name for each in operator.attributes]
    found = {name: value for name, value in REQUIRED.items() if name in names}
    if names and draw(st.integers(0, 2)) == 0:
        found[draw(st.sampled_from(names))] = draw(st.sampled_from(WRONG_VALUES))
    if found and draw(st.integers(0, 9)) == 0:
        del found[draw(st.sampled_from(sorted(found)))]
    return found


def _array(operator: NodeType, argument: str, dtype: str) -> np.ndarray:
    shape = SHAPES.get(argument, ())
    if operator.family == "non_max_suppression_padded":
        shape = {"boxes": (1, 3, 4), "scores": (1, 1, 3)}.get(argument, ())
    return np.zeros(shape) if dtype == "T" else np.zeros(shape, dtype)


@st.composite
def models(draw: st.DrawFn) -> Drawn:
    """A model of one custom node, in the main graph, in a body, or in a function that may be called in a body."""
    operator = draw(st.sampled_from(CUSTOM))
    domain = operator.domain if draw(st.integers(0, 3)) else draw(st.sampled_from(DOMAINS))
    if domain in ("", "ai.onnx") and onnx.defs.has(operator.name):
        domain = operator.domain  # there it is ONNX's own, and nothing custom is in the model
    name = operator.name if draw(st.integers(0, 9)) else "NoSuch"
    kind = draw(st.sampled_from(TYPES[:3] if draw(st.integers(0, 4)) else TYPES))
    arrays: dict[str, np.ndarray] = {}
    for declared in operator.inputs:
        if declared.required:
            dtype = kind if declared.dtype == "T" else declared.dtype
            if declared.dtype == "T" and draw(st.integers(0, 9)) == 0:
                dtype = draw(st.sampled_from(TYPES))
            arrays[declared.name] = _array(operator, declared.argument, dtype).astype(dtype)
    if draw(st.integers(0, 19)) == 0 and len(arrays) > 1:
        arrays.popitem()
    attributes = draw(_attributes(operator))
    outputs = [f"{name}_result" for name, _ in operator.outputs]
    node = helper.make_node(name, list(arrays), outputs, name="custom", domain=domain)
    node.attribute.extend(helper.make_attribute(key, value) for key, value in attributes.items())
    first = next(iter(arrays.values())).dtype.name
    meant = find(domain, name, 1) or operator  # the other domain may have another form
    types = [first if dtype == "T" else dtype for _, dtype in meant.outputs]
    place = draw(st.sampled_from(sorted(PLACES)))
    return Drawn(
        PLACES[place](node, arrays, types), arrays if "If" not in place else arrays | {"choice": np.array(True)}
    )


def _value(name: str, dtype: Any) -> onnx.ValueInfoProto:
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    tensor = onnx.TypeProto.Tensor(elem_type=element)
    return onnx.ValueInfoProto(name=name, type=onnx.TypeProto(tensor_type=tensor))


def _model(nodes: list[Any], arrays: Any, outputs: list[Any], domain: str, functions: Any = ()) -> onnx.ModelProto:
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in arrays.items()
    ]
    return helper.make_model(
        helper.make_graph(nodes, "graph", inputs, outputs),
        opset_imports=_opsets(domain),
        functions=list(functions),
        ir_version=8,
    )


def _opsets(domain: str) -> list[Any]:
    versions = {"": 17} if domain in ("", "ai.onnx") else {"": 17, domain: 1}
    return [helper.make_opsetid(each, version) for each, version in versions.items()]


def _values(node: Any, types: list[str]) -> list[Any]:
    return [_value(name, dtype) for name, dtype in zip(node.output, types, strict=True)]


def _plain(node: Any, arrays: Any, types: list[str]) -> onnx.ModelProto:
    return _model([node], arrays, _values(node, types), node.domain)


def _if(node: Any, types: list[str]) -> Any:
    graphs = {}
    for branch in ("then_branch", "else_branch"):
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        for place, name in enumerate(copy.output):
            copy.output[place] = f"{branch}_{name}"
        graphs[branch] = helper.make_graph([copy], branch, [], _values(copy, types))
    return helper.make_node("If", ["choice"], list(node.output), **graphs)


def _in_if(node: Any, arrays: Any, types: list[str]) -> onnx.ModelProto:
    return _model([_if(node, types)], arrays | {"choice": np.array(True)}, _values(node, types), node.domain)


def _function(node: Any, name: str = "Inner", links: bool = True) -> tuple[Any, Any]:
    """A function around a node whose attributes refer to the function's, and a call of it."""
    inner = onnx.NodeProto()
    inner.CopyFrom(node)
    if links:
        for attribute in inner.attribute:
            kind, key = attribute.type, attribute.name
            attribute.Clear()
            attribute.name, attribute.type, attribute.ref_attr_name = key, kind, f"its_{key}"
    names = [f"its_{each.name}" for each in node.attribute] if links else []
    function = helper.make_function(
        "local", name, list(node.input), list(node.output), [inner], _opsets(node.domain), names
    )
    call = helper.make_node(name, list(node.input), list(node.output), domain="local")
    for attribute in node.attribute if links else ():
        given = call.attribute.add()
        given.CopyFrom(attribute)
        given.name = f"its_{attribute.name}"
    return function, call


def _in_function(node: Any, arrays: Any, types: list[str]) -> onnx.ModelProto:
    function, call = _function(node)
    return _model([call], arrays, _values(node, types), "local", [function])


def _in_functions(node: Any, arrays: Any, types: list[str]) -> onnx.ModelProto:
    inner, call = _function(node)
    outer, outer_call = _function(call, "Outer")
    return _model([outer_call], arrays, _values(node, types), "local", [inner, outer])


def _in_function_in_if(node: Any, arrays: Any, types: list[str]) -> onnx.ModelProto:
    function, call = _function(node)
    return _model([_if(call, types)], arrays | {"choice": np.array(True)}, _values(node, types), "local", [function])


def _in_loop(node: Any, arrays: Any, types: list[str]) -> onnx.ModelProto:
    going = helper.make_node("Identity", ["going"], ["going_on"])
    copies = [helper.make_node("Identity", [name], [f"{name}_now"]) for name in node.output]
    results = [_value(f"{name}_now", dtype) for name, dtype in zip(node.output, types, strict=True)]
    body = helper.make_graph(
        [node, going, *copies],
        "body",
        [_value("turn", "int64"), _value("going", "bool")],
        [_value("going_on", "bool"), *results],
    )
    count = helper.make_node("Constant", [], ["count"], value=onnx.numpy_helper.from_array(np.array(2)))
    loop = helper.make_node("Loop", ["count", ""], [f"{name}_all" for name in node.output], body=body)
    outputs = [_value(f"{name}_all", dtype) for name, dtype in zip(node.output, types, strict=True)]
    return _model([count, loop], arrays, outputs, node.domain)


PLACES: dict[str, Callable[..., onnx.ModelProto]] = {
    "graph": _plain,
    "If": _in_if,
    "Loop": _in_loop,
    "function": _in_function,
    "function in a function": _in_functions,
    "function in an If": _in_function_in_if,
}
