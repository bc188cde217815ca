"""Writes DecodeBbox nodes into a GraphDef, each backed by a FunctionDef of the same name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from detops.graph._finding import Refusal
from detops.graph._prove import Proof
from detops.graph._rewrite import Plan
from detops.graph._schema import DECODE_BBOX, INPUTS, OUTPUT
from detops.graph._tf_schema import messages
from detops.graph._tf_tensors import number_of
from detops.graph._view import Graph

FLOAT, INT32 = 1, 3  # DataType numbers


def apply(graph_def: Any, plans: Sequence[Plan]) -> None:
    """Carry the plans out on `graph_def`, which they were made from."""
    for plan in plans:
        for position, proof in plan.proofs.items():
            place = plan.graph.nodes[position].place
            node = _new_node(plan, proof, graph_def.node[place])
            graph_def.node[place].CopyFrom(_surrounded(graph_def, plan.graph, proof, node))
            add_function(graph_def, proof)
            if proof.made is not None:
                _add_constant(graph_def, proof.made.name, proof.made.corners)
        for place in sorted((plan.graph.nodes[position].place for position in plan.dead), reverse=True):
            del graph_def.node[place]


def _surrounded(graph_def: Any, graph: Graph, proof: Proof, node: Any) -> Any:
    """Let a node read and write boxes where the graph has other axes; return the node that makes the output."""
    for place, name in enumerate((proof.box_predictions, proof.anchors)):
        if name in proof.rows:
            rows = graph.free_name(proof.decoded_boxes, f"_rows_{place}")
            graph_def.node.add().CopyFrom(_reshape(graph_def, name, rows, [-1, 4], proof))
            node.input[place] = rows.removesuffix(":0")
    if proof.alike:
        node.input[1] = _as_many(graph_def, graph, proof, node)
    if not proof.tail:
        return node
    rows = graph.free_name(proof.decoded_boxes, "_rows")
    made = graph_def.node.add()
    made.CopyFrom(node)
    made.name = rows.removesuffix(":0")
    last = _reshape(graph_def, rows, proof.decoded_boxes, [-1, *proof.tail], proof)
    last.device = node.device
    if "_output_shapes" in node.attr:
        last.attr["_output_shapes"].CopyFrom(node.attr["_output_shapes"])
        del made.attr["_output_shapes"]
    return last


def _as_many(graph_def: Any, graph: Graph, proof: Proof, node: Any) -> str:
    """Pass anchors on through a Reshape that fails where they aren't as many as the predictions."""
    result = graph.free_name(proof.decoded_boxes, "_as_many").removesuffix(":0")
    for name, value in (("zero", [0]), ("one", [1]), ("four", [4]), ("axis", 0)):
        _add_constant(graph_def, f"{result}_{name}", np.array(value, np.int32))
    listed = (
        ("shape", "Shape", [node.input[0]], {"T": number_of(proof.dtype), "out_type": INT32}),
        ("count", "StridedSlice", ["shape", "zero", "one", "one"], {"T": INT32, "Index": INT32}),
        ("form", "ConcatV2", ["count", "four", "axis"], {"T": INT32, "Tidx": INT32}),
        ("", "Reshape", [node.input[1], "form"], {"T": number_of(proof.dtype), "Tshape": INT32}),
    )
    for name, op, inputs, types in listed:
        made = graph_def.node.add(name=f"{result}_{name}" if name else result, op=op)
        made.input.extend(each if each in node.input else f"{result}_{each}" for each in inputs)
        for key, kind in types.items():
            made.attr[key].type = kind
        if op == "ConcatV2":
            made.attr["N"].i = 2
    return result


def _reshape(graph_def: Any, source: str, result: str, shape: Sequence[int], proof: Proof) -> Any:
    form = f"{result.removesuffix(':0')}_form"
    _add_constant(graph_def, form, np.array(shape, np.int32))
    node = messages()["NodeDef"](name=result.removesuffix(":0"), op="Reshape", input=[source.removesuffix(":0"), form])
    node.attr["T"].type = number_of(proof.dtype)
    node.attr["Tshape"].type = INT32
    return node


def _add_constant(graph_def: Any, tensor: str, value: np.ndarray[Any, Any]) -> None:
    node = graph_def.node.add(name=tensor.partition(":")[0], op="Const")
    node.attr["dtype"].type = number_of(value.dtype)
    set_tensor(node.attr["value"].tensor, value)


def check_room(graph_def: Any, proof: Proof, accepted: Sequence[Proof]) -> None:
    """Refuse where the graph cannot hold the node's function: it has one of the name, or of another type."""
    operator, function = proof.parameters.operator, function_for(proof)
    present = [other for other in graph_def.library.function if other.signature.name == operator]
    present += [function_for(other) for other in accepted if other.parameters.operator == operator]
    if any(other != function for other in present):
        raise Refusal(f"the GraphDef has another function {operator} already (or one for another type)", depth=8)


def add_function(graph_def: Any, proof: Proof) -> None:
    """Give the graph the function that its new nodes call."""
    function = function_for(proof)
    if all(present.signature.name != function.signature.name for present in graph_def.library.function):
        graph_def.library.function.append(function)


def _new_node(plan: Plan, proof: Proof, old: Any) -> Any:
    node = make_node(proof, old.name)
    node.device = old.device
    if "_output_shapes" in old.attr:
        node.attr["_output_shapes"].CopyFrom(old.attr["_output_shapes"])
    gone = {plan.graph.nodes[position].name for position in plan.dead} | {node.name}
    waits = [name for member in proof.nodes for name in member.control if name not in gone]
    node.input.extend(f"^{name}" for name in dict.fromkeys(waits))
    return node


def make_node(proof: Proof, name: str) -> Any:
    """Return the node that stands for a proved subgraph."""
    values = proof.parameters
    node = messages()["NodeDef"](name=name, op=values.operator)
    node.input.extend(reference.removesuffix(":0") for reference in (proof.box_predictions, proof.anchors))
    node.attr["T"].type = number_of(proof.dtype)
    for key, value in values.attributes().items():
        if isinstance(value, list):
            node.attr[key].list.f.extend(value)
        elif isinstance(value, int):
            node.attr[key].i = value
        else:
            node.attr[key].f = value
    set_tensor(node.attr["constants"].tensor, np.array(values.constants(), np.float32))
    set_tensor(node.attr["axis_value"].tensor, np.array(values.axis, np.int32))
    return node


def set_tensor(tensor: Any, value: np.ndarray[Any, Any]) -> None:
    """Write an array into a TensorProto."""
    tensor.dtype = number_of(value.dtype)
    tensor.tensor_shape.SetInParent()
    for size in value.shape:
        tensor.tensor_shape.dim.add(size=size)
    tensor.tensor_content = value.astype(value.dtype.newbyteorder("<")).tobytes()


def function_for(proof: Proof) -> Any:
    """Return the FunctionDef of an operator; its nodes read the attributes of the node that calls it.

    The boxes have one fixed type, because TensorFlow's importer wants to know it.
    """
    values, dtype = proof.parameters, number_of(proof.dtype)
    function = messages()["FunctionDef"]()
    signature = function.signature
    signature.name = values.operator
    for name in INPUTS:
        signature.input_arg.add(name=name, type=dtype)
    signature.output_arg.add(name=OUTPUT, type=dtype)
    attributes = {
        "T": "type",
        "decode_clip": "float",
        "axis": "int",
        "constants": "tensor",
        "axis_value": "tensor",
    }
    if values.operator != DECODE_BBOX:
        attributes |= {"scales": "list(float)", "means": "list(float)", "lower_clip": "float"}
    for name, kind in attributes.items():
        signature.attr.add(name=name, type=kind)
    body = _Body(function)
    if values.operator == DECODE_BBOX:
        _decode_bbox(body)
    elif values.axis == -1:
        _decode_bbox_v2(body)
    else:
        _decode_bbox_v2_inner(body)
    function.ret[OUTPUT] = body.result
    return function


class _Body:
    """Collects the nodes of a function; every method returns the reference to an output."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.result = ""

    def add(self, op: str, name: str, inputs: Sequence[str], port: str, **attributes: Any) -> str:
        """Add a node; an attribute is "$name" of the function, a DataType number, or ("i", number)."""
        node = self.function.node_def.add(name=name, op=op)
        node.input.extend(inputs)
        for key, value in attributes.items():
            if isinstance(value, str):
                node.attr[key].placeholder = value[1:]
            elif isinstance(value, tuple):
                setattr(node.attr[key], value[0], value[1])
            else:
                node.attr[key].type = value
        return f"{name}:{port}"

    def compute(self, op: str, name: str, *inputs: str) -> str:
        """Add arithmetic in the type of the boxes."""
        return self.add(op, name, inputs, "y:0" if op == "Exp" else "z:0", T="$T")

    def integers(self, name: str, value: Any) -> str:
        """Add an integer constant."""
        reference = self.add("Const", name.replace("-", "minus_"), (), "output:0", dtype=INT32)
        set_tensor(self.function.node_def[-1].attr["value"].tensor, np.array(value, np.int32))
        return reference

    def parameters(self) -> list[str]:
        """Add the node's numbers as tensors in the type of the boxes: half, clip, lower, scales, means."""
        numbers = self.add("Const", "numbers", (), "output:0", dtype=FLOAT, value="$constants")
        typed = self.add("Cast", "typed", (numbers,), "y:0", SrcT=FLOAT, DstT="$T")
        sizes, axis = self.integers("number_sizes", [1, 1, 1, 4, 4]), self.integers("number_axis", 0)
        self.add("SplitV", "parts", (typed, sizes, axis), "output", T="$T", Tlen=INT32, num_split=("i", 5))
        return [f"parts:output:{index}" for index in range(5)]

    def split(self, name: str, tensor: str, axis: str, count: int = 2) -> list[str]:
        """Cut a tensor into equal parts."""
        self.add("Split", name, (axis, tensor), "output", T="$T", num_split=("i", count))
        return [f"{name}:output:{place}" for place in range(count)]

    def join(self, name: str, parts: Sequence[str], axis: str, kind: Any = "$T") -> str:
        """Put tensors together."""
        return self.add("ConcatV2", name, (*parts, axis), "output:0", T=kind, Tidx=INT32, N=("i", len(parts)))

    def shape_of(self, name: str, tensor: str) -> str:
        """Add the shape of a tensor of boxes."""
        return self.add("Shape", name, (tensor,), "output:0", T="$T", out_type=INT32)

    def part(self, name: str, tensor: str, start: str, stop: str, step: str, **masks: Any) -> str:
        """Cut a piece out of a list."""
        return self.add("StridedSlice", name, (tensor, start, stop, step), "output:0", T=INT32, Index=INT32, **masks)

    def reshape(self, name: str, tensor: str, shape: str, kind: Any = "$T") -> str:
        """Give a tensor another shape."""
        return self.add("Reshape", name, (tensor, shape), "output:0", T=kind, Tshape=INT32)


def _corners(body: _Body, parts: Sequence[str], predictions: Sequence[str], anchors: Sequence[str]) -> tuple[str, str]:
    """Add the arithmetic, in tensorpack's order: bit-equal to the graph that it replaces there."""
    half, clip = parts[0], parts[1]
    shift, growth = predictions
    first, last = anchors
    size = body.compute("Sub", "size", last, first)
    centre = body.compute("Mul", "centre", body.compute("Add", "corner_sum", last, first), half)
    factor = body.compute("Exp", "factor", body.compute("Minimum", "bounded", growth, clip))
    half_size = body.compute("Mul", "half_size", body.compute("Mul", "new_size", factor, size), half)
    new_centre = body.compute("Add", "new_centre", body.compute("Mul", "offset", shift, size), centre)
    return body.compute("Sub", "low", new_centre, half_size), body.compute("Add", "high", new_centre, half_size)


def _decode_bbox(body: _Body) -> None:
    parts = body.parameters()
    axis = body.add("Const", "coordinate_axis", (), "output:0", dtype=INT32, value="$axis_value")
    predictions = body.split("predictions", INPUTS[0], axis)
    anchors = body.split("boxes", INPUTS[1], axis)
    _result(body, _corners(body, parts, predictions, anchors), axis)


def _result(body: _Body, corners: Sequence[str], axis: str) -> None:
    """Join the corners to the shape of box_predictions; fails where anchors had more boxes along some axis."""
    joined = body.join("joined", corners, axis)
    body.result = body.reshape("flat", joined, body.shape_of("form", INPUTS[0]))


def _decode_bbox_v2(body: _Body) -> None:
    """Add DecodeBboxV2 for the last axis, over (..., classes, 4)."""
    parts = body.parameters()
    form = body.shape_of("form", INPUTS[0])
    minus_one, zero, one, four = (body.integers(f"number_{value}", [value]) for value in (-1, 0, 1, 4))
    lead = body.part("lead", form, zero, minus_one, one)
    width = body.part("width", form, minus_one, zero, one, end_mask=("i", 1))
    classes = body.add("FloorDiv", "classes", (width, four), "z:0", T=INT32)
    axis = body.integers("list_axis", 0)
    grouped = body.join("grouped_form", (lead, classes, four), axis, INT32)
    scaled = body.compute("RealDiv", "scaled", body.reshape("rows", INPUTS[0], grouped), parts[3])
    shifted = body.compute("Add", "shifted", scaled, parts[4])
    last_axis = body.integers("last_axis", -1)
    shift, growth = body.split("predictions", shifted, last_axis)
    dim = body.integers("class_axis", -2)
    boxes = body.add("ExpandDims", "expanded", (INPUTS[1], dim), "output:0", T="$T", Tdim=INT32)
    growth = body.compute("Maximum", "raised", growth, parts[2])
    corners = _corners(body, parts, (shift, growth), body.split("boxes", boxes, last_axis))
    joined = body.join("joined", corners, last_axis)
    body.result = body.reshape("flat", joined, form)  # fails where anchors had more boxes along some axis


def _decode_bbox_v2_inner(body: _Body) -> None:
    """Add DecodeBboxV2 for another axis, which holds the coordinates of one class."""
    parts = body.parameters()
    axis = body.add("Const", "coordinate_axis", (), "output:0", dtype=INT32, value="$axis_value")
    zero = body.integers("zero", 0)
    scales, means = (body.split(name, parts[at], zero, 4) for name, at in (("scales_4", 3), ("means_4", 4)))
    shifted = []
    for place, part in enumerate(body.split("coordinates", INPUTS[0], axis, 4)):
        scaled = body.compute("RealDiv", f"scaled_{place}", part, scales[place])
        shifted.append(body.compute("Add", f"shifted_{place}", scaled, means[place]))
    shift, growth = body.join("shift", shifted[:2], axis), body.join("growth", shifted[2:], axis)
    growth = body.compute("Maximum", "raised", growth, parts[2])
    _result(body, _corners(body, parts, (shift, growth), body.split("boxes", INPUTS[1], axis)), axis)
