"""Writes DecodeBbox nodes into an ONNX model, each backed by a model-local function of the same name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from detops.graph._finding import Refusal
from detops.graph._prove import Proof
from detops.graph._rewrite import Plan
from detops.graph._schema import DECODE_BBOX, DOMAIN, INPUTS, OUTPUT, VERSION

MIN_OPSET = 11  # Split, Concat and Flatten take a negative axis from here on
CAST_LIKE = 15  # from here on the functions need no tensor of constants on the node
MIN_IR = 8  # model-local functions


def apply(model: Any, plans: Sequence[Plan]) -> None:
    """Carry the plans out on `model`, whose graphs they were made from."""
    opset = default_opset(model)
    operators: dict[str, Proof] = {}
    for plan in plans:
        _apply_to_graph(plan, opset)
        for proof in plan.proofs.values():
            operators.setdefault(proof.parameters.operator, proof)
    add_functions(model, sorted(operators), opset)


def check_room(model: Any, proof: Proof, accepted: Sequence[Proof]) -> None:
    """Refuse where the model cannot hold the node's function."""
    if default_opset(model) < MIN_OPSET:
        raise Refusal(
            f"the model is of opset {default_opset(model)}; the node's function needs {MIN_OPSET} or later",
            depth=8,
        )


def default_opset(model: Any) -> int:
    """Return the version of the default domain."""
    return max((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), default=1)


def add_functions(model: Any, operators: Sequence[str], opset: int) -> None:
    """Give the model the functions that its new nodes call, and what it takes to hold them."""
    import onnx

    model.ir_version = max(model.ir_version, MIN_IR)
    if all(entry.domain != DOMAIN for entry in model.opset_import):
        model.opset_import.append(onnx.helper.make_opsetid(DOMAIN, VERSION))
    present = {(function.domain, function.name) for function in model.functions}
    for operator in operators:
        if (DOMAIN, operator) not in present:
            model.functions.append(function_for(operator, opset))


def make_node(proof: Proof, opset: int, name: str) -> Any:
    """Return the node that stands for a proved subgraph."""
    import onnx

    values = proof.parameters
    node = onnx.helper.make_node(
        values.operator,
        [proof.box_predictions, proof.anchors],
        [proof.decoded_boxes],
        name=name,
        domain=DOMAIN,
        **values.attributes(),
    )
    if opset < CAST_LIKE:
        constants = onnx.numpy_helper.from_array(np.array(values.constants(), proof.dtype))
        node.attribute.append(onnx.helper.make_attribute("constants", constants))
    return node


def _apply_to_graph(plan: Plan, opset: int) -> None:
    graph = plan.graph.raw
    places = [node.place for node in plan.graph.nodes]
    for position, proof in plan.proofs.items():
        raw = graph.node[places[position]]
        node = make_node(proof, opset, raw.name)
        node.doc_string = raw.doc_string
        node.metadata_props.extend(raw.metadata_props)
        raw.CopyFrom(node)
    for place in sorted((places[position] for position in plan.dead), reverse=True):
        del graph.node[place]
    inputs = {value.name for value in graph.input}
    for entries in (graph.initializer, graph.value_info):
        for place in reversed(range(len(entries))):
            if entries[place].name in plan.unread and entries[place].name not in inputs:
                del entries[place]


def function_for(operator: str, opset: int) -> Any:
    """Return the model-local function of an operator, in the operators of an opset."""
    import onnx

    body = _Body(opset)
    if operator == DECODE_BBOX:
        _decode_bbox(body)
        attributes = ["decode_clip", "axis"]
    else:
        _decode_bbox_v2(body)
        attributes = ["decode_clip", "axis", "scales", "means", "lower_clip"]
    if opset < CAST_LIKE:
        attributes.append("constants")
    opsets = [onnx.helper.make_opsetid("", opset)]
    return onnx.helper.make_function(DOMAIN, operator, list(INPUTS), [OUTPUT], body.nodes, opsets, attributes)


class _Body:
    """Collects the nodes of a function; every method returns the names of what it adds."""

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.nodes: list[Any] = []
        self.axis: dict[str, Any] = {}  # a reference to the node's axis where empty

    def add(
        self,
        op: str,
        inputs: Sequence[str],
        output: str,
        refs: dict[str, tuple[str, int]] | None = None,
        **attributes: Any,
    ) -> str:
        """Add a node with one output; `refs` maps an attribute to the function's attribute and its type."""
        import onnx

        node = onnx.helper.make_node(op, list(inputs), [output], **attributes)
        for name, (source, kind) in (refs or {}).items():
            reference = node.attribute.add(name=name, type=kind)
            reference.ref_attr_name = source
        self.nodes.append(node)
        return output

    def integers(self, values: Sequence[int], output: str) -> str:
        """Add a constant list of integers."""
        import onnx

        value = onnx.numpy_helper.from_array(np.array(values, np.int64))
        return self.add("Constant", [], output, value=value)

    def split(
        self, tensor: str, outputs: Sequence[str], sizes: Sequence[int] | None = None, axis: int | None = None
    ) -> list[str]:
        """Cut a tensor along `axis` (None: the node's axis), in equal parts where no sizes are given."""
        import onnx

        inputs, attributes = [tensor], {} if axis is None else {"axis": axis}
        if sizes is not None and self.opset >= 13:
            inputs.append(self.integers(sizes, f"{outputs[0]}_sizes"))
        elif sizes is not None:
            attributes["split"] = list(sizes)
        elif self.opset >= 18:
            attributes["num_outputs"] = len(outputs)
        node = onnx.helper.make_node("Split", inputs, list(outputs), **attributes)
        if axis is None:
            node.attribute.add(name="axis", type=onnx.AttributeProto.INT).ref_attr_name = "axis"
        self.nodes.append(node)
        return list(outputs)

    def reshape(self, tensor: str, shape: str, output: str) -> str:
        """Reshape to dimensions that may be zero."""
        return self.add("Reshape", [tensor, shape], output, **({"allowzero": 1} if self.opset >= 14 else {}))

    def parameters(self, names: Sequence[str]) -> None:
        """Make tensors of the node's attributes, in the dtype of box_predictions."""
        import onnx

        sizes = {"half": 1, "clip": 1, "lower": 1, "scales_row": 4, "means_row": 4}
        if self.opset < CAST_LIKE:
            self.add("Constant", [], "numbers", {"value": ("constants", onnx.AttributeProto.TENSOR)})
            self.split("numbers", list(sizes), list(sizes.values()), axis=0)
            return
        single, several = onnx.AttributeProto.FLOAT, onnx.AttributeProto.FLOATS
        sources: dict[str, tuple[str, str, int]] = {
            "clip": ("value_float", "decode_clip", single),
            "lower": ("value_float", "lower_clip", single),
            "scales_row": ("value_floats", "scales", several),
            "means_row": ("value_floats", "means", several),
        }
        self.add("Constant", [], "half_single", value_float=0.5)
        for name in names:
            if name != "half":
                attribute, source, kind = sources[name]
                self.add("Constant", [], f"{name}_single", {attribute: (source, kind)})
            raw = f"{name}_single"
            if name == "clip" and "lower" in names:  # DecodeBboxV2, where 0 is no bound
                self.add("Constant", [], "zero", value_float=0.0)
                self.add("Constant", [], "unbounded", value_float=float("inf"))
                self.add("Equal", [raw, "zero"], "clip_is_zero")
                raw = self.add("Where", ["clip_is_zero", "unbounded", raw], "clip_bound")
            self.add("CastLike", [raw, INPUTS[0]], name)


def _corners(body: _Body, predictions: Sequence[str], anchors: Sequence[str]) -> tuple[str, str]:
    """Add the arithmetic, in tensorpack's order: bit-equal to the graph that it replaces there."""
    shift, growth = predictions
    first, last = anchors
    body.add("Sub", [last, first], "size")
    body.add("Add", [last, first], "corner_sum")
    body.add("Mul", ["corner_sum", "half"], "centre")
    body.add("Min", [growth, "clip"], "bounded")
    body.add("Exp", ["bounded"], "factor")
    body.add("Mul", ["factor", "size"], "new_size")
    body.add("Mul", ["new_size", "half"], "half_size")
    body.add("Mul", [shift, "size"], "offset")
    body.add("Add", ["offset", "centre"], "new_centre")
    return body.add("Sub", ["new_centre", "half_size"], "low"), body.add(
        "Add", ["new_centre", "half_size"], "high"
    )


def _decode_bbox(body: _Body) -> None:
    import onnx

    body.parameters(["half", "clip"])
    predictions = body.split(INPUTS[0], ["shift", "growth"])
    anchors = body.split(INPUTS[1], ["first", "last"])
    low, high = _corners(body, predictions, anchors)
    body.add("Concat", [low, high], OUTPUT, {"axis": ("axis", onnx.AttributeProto.INT)})


def _decode_bbox_v2(body: _Body) -> None:
    """Add DecodeBboxV2 over (before, classes, 4, after), which any axis and any number of classes fits in."""
    import onnx

    body.parameters(["half", "clip", "lower", "scales_row", "means_row"])
    axis = {"axis": ("axis", onnx.AttributeProto.INT)}
    for name, source in (("rows", INPUTS[0]), ("boxes", INPUTS[1])):
        body.add("Flatten", [source], f"{name}_flat", axis)
        body.add("Shape", [f"{name}_flat"], f"{name}_shape")
    before, per_row = body.split("rows_shape", ["before", "per_row"], [1, 1], axis=0)
    _, per_box = body.split("boxes_shape", ["before_boxes", "per_box"], [1, 1], axis=0)
    body.integers([1], "one")
    body.integers([4], "four")
    body.add("Div", [per_box, "four"], "after")
    body.add("Max", [per_box, "one"], "divisor")  # an empty tensor has no boxes to divide by
    body.add("Div", [per_row, "divisor"], "classes")
    body.add("Concat", [before, "classes", "four", "after"], "rows_form", axis=0)
    body.add("Concat", [before, "one", "four", "after"], "boxes_form", axis=0)
    rows = body.reshape(INPUTS[0], "rows_form", "rows")
    boxes = body.reshape(INPUTS[1], "boxes_form", "boxes")
    body.integers([4, 1], "column")
    body.add("Reshape", ["scales_row", "column"], "scales_column")
    body.add("Reshape", ["means_row", "column"], "means_column")
    body.add("Div", [rows, "scales_column"], "scaled")
    body.add("Add", ["scaled", "means_column"], "shifted")
    shift, growth = body.split("shifted", ["shift", "growth"], [2, 2], axis=2)
    anchors = body.split(boxes, ["first", "last"], [2, 2], axis=2)
    body.add("Max", [growth, "lower"], "raised")
    low, high = _corners(body, [shift, "raised"], anchors)
    body.add("Concat", [low, high], "corners", axis=2)
    body.add("Shape", [INPUTS[0]], "form")
    body.reshape("corners", "form", OUTPUT)
