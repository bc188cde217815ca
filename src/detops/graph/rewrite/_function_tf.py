"""The functions of DecodeBbox and DecodeBboxV2 in a GraphDef, which stock TensorFlow runs in place of the nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from detops.graph._decode import Operation, bound_growth, corners, unscale
from detops.graph._schema import DECODE_BBOX, INPUTS, OUTPUT, Parameters
from detops.graph.model._tf_schema import messages
from detops.graph.model._tf_tensors import number_of, set_tensor
from detops.graph.proof._prove import Proof

FLOAT, INT32 = 1, 3  # DataType numbers
# The decode's operations.
OPS = {
    "Add": "Add",
    "Sub": "Sub",
    "Mul": "Mul",
    "Half": "Mul",
    "Div": "RealDiv",
    "Min": "Minimum",
    "Max": "Maximum",
    "Exp": "Exp",
}


def make_node(proof: Proof, name: str) -> Any:
    """Return the node that stands for a proved subgraph."""
    values = proof.parameters
    node = messages()["NodeDef"](name=name, op=values.operator)
    node.input.extend(reference.removesuffix(":0") for reference in (proof.box_predictions, proof.anchors))
    node.attr["T"].type = number_of(proof.dtype)
    for key, value in values.attributes().items():
        if isinstance(value, list):
            node.attr[key].list.f.extend(value)
        elif isinstance(value, str):
            node.attr[key].s = value.encode()
        elif isinstance(value, int):
            node.attr[key].i = value
        else:
            node.attr[key].f = value
    set_tensor(node.attr["constants"].tensor, np.array(values.constants(), np.float32))
    set_tensor(node.attr["axis_value"].tensor, np.array(values.axis, np.int32))
    return node


def function_for(proofs: Sequence[Proof]) -> Any:
    """Return the FunctionDef that the nodes of some proofs with one operator, layout and type call.

    Where all have the same attributes, these are the function's own numbers, and its defaults: TensorFlow's loader of
    SavedModels and TensorFlow Lite's converter take a function by itself, away from the nodes that call it. Else the
    function reads the attributes of its node, which sessions and what imports a GraphDef can do.
    """
    function = general_function(proofs[0])
    if any(proof.parameters != proofs[0].parameters for proof in proofs):
        return function
    values = make_node(proofs[0], "").attr
    for node in function.node_def:
        for value in node.attr.values():
            if value.WhichOneof("value") == "placeholder":
                value.CopyFrom(values[value.placeholder])
    for attribute in function.signature.attr:
        attribute.default_value.CopyFrom(values[attribute.name])
    return function


def general_function(proof: Proof) -> Any:
    """Return the FunctionDef of an operator whose nodes read the attributes of the node that calls it.

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
        "anchor_form": "string",
        "offset": "int",
        "axis": "int",
        "constants": "tensor",
        "axis_value": "tensor",
    }
    if values.operator != DECODE_BBOX:
        attributes |= {"scales": "list(float)", "means": "list(float)", "lower_clip": "float"}
    for name, kind in attributes.items():
        signature.attr.add(name=name, type=kind)
    body = _Body(function, values)
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

    def __init__(self, function: Any, values: Parameters) -> None:
        self.function = function
        self.values = values
        self.result = ""
        self.half = ""
        self.offset: str | None = None

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

    def compute(self, operation: Operation, name: str, *operands: str) -> str:
        """Add a step of the decode."""
        if operation == "Half":
            operands = (*operands, self.half)
        return self.add(OPS[operation], name, operands, "y:0" if operation == "Exp" else "z:0", T="$T")

    def corners(self, shift: str, growth: str, first: str, last: str) -> tuple[str, str]:
        """Add the decode of what is unscaled and bounded."""
        return corners(self.compute, shift, growth, first, last, self.values.anchor_form, self.offset)

    def integers(self, name: str, value: Any) -> str:
        """Add an integer constant."""
        reference = self.add("Const", name.replace("-", "minus_"), (), "output:0", dtype=INT32)
        set_tensor(self.function.node_def[-1].attr["value"].tensor, np.array(value, np.int32))
        return reference

    def parameters(self) -> list[str]:
        """Add the node's numbers as tensors in the type of the boxes: half, clip, lower, scales, means, offset."""
        numbers = self.add("Const", "numbers", (), "output:0", dtype=FLOAT, value="$constants")
        typed = self.add("Cast", "typed", (numbers,), "y:0", SrcT=FLOAT, DstT="$T")
        sizes, axis = self.integers("number_sizes", [1, 1, 1, 4, 4, 1]), self.integers("number_axis", 0)
        self.add("SplitV", "parts", (typed, sizes, axis), "output", T="$T", Tlen=INT32, num_split=("i", 6))
        parts = [f"parts:output:{index}" for index in range(6)]
        self.half = parts[0]
        self.offset = parts[5] if self.values.offset else None
        return parts

    def split(self, name: str, tensor: str, axis: str, count: int = 2) -> list[str]:
        """Cut a tensor into equal parts."""
        self.add("Split", name, (axis, tensor), "output", T="$T", num_split=("i", count))
        return [f"{name}:output:{index}" for index in range(count)]

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


def _decode_bbox(body: _Body) -> None:
    parts = body.parameters()
    axis = body.add("Const", "coordinate_axis", (), "output:0", dtype=INT32, value="$axis_value")
    shift, growth = body.split("predictions", INPUTS[0], axis)
    anchors = body.split("boxes", INPUTS[1], axis)
    _result(body, body.corners(shift, bound_growth(body.compute, growth, parts[1]), *anchors), axis)


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
    shifted = unscale(body.compute, body.reshape("rows", INPUTS[0], grouped), parts[3], parts[4])
    last_axis = body.integers("last_axis", -1)
    shift, growth = body.split("predictions", shifted, last_axis)
    dim = body.integers("class_axis", -2)
    boxes = body.add("ExpandDims", "expanded", (INPUTS[1], dim), "output:0", T="$T", Tdim=INT32)
    bounded = bound_growth(body.compute, growth, parts[1], parts[2])
    both = body.corners(shift, bounded, *body.split("boxes", boxes, last_axis))
    joined = body.join("joined", both, last_axis)
    body.result = body.reshape("flat", joined, form)  # fails where anchors had more boxes along some axis


def _decode_bbox_v2_inner(body: _Body) -> None:
    """Add DecodeBboxV2 for another axis, which holds the coordinates of one class."""
    parts = body.parameters()
    axis = body.add("Const", "coordinate_axis", (), "output:0", dtype=INT32, value="$axis_value")
    zero = body.integers("zero", 0)
    scales, means = (body.split(name, parts[at], zero, 4) for name, at in (("scales_4", 3), ("means_4", 4)))
    shifted = []
    for coordinate, part in enumerate(body.split("coordinates", INPUTS[0], axis, 4)):
        shifted.append(unscale(body.compute, part, scales[coordinate], means[coordinate], f"_{coordinate}"))
    shift, growth = body.join("shift", shifted[:2], axis), body.join("growth", shifted[2:], axis)
    bounded = bound_growth(body.compute, growth, parts[1], parts[2])
    _result(body, body.corners(shift, bounded, *body.split("boxes", INPUTS[1], axis)), axis)
