"""The model-local functions of DecodeBbox and DecodeBboxV2, which stock runtimes run in place of the nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from detops.graph._decode import Operation, bound_growth, corners, unscale
from detops.graph._schema import DECODE_BBOX, DOMAIN, INPUTS, OUTPUT, Parameters

CAST_LIKE = 15  # from here on the functions need no tensor of constants on the node
_END = (1 << 63) - 1


def function_for(values: Parameters, opset: int) -> Any:
    """Return the model-local function of an operator, in the operators of an opset."""
    import onnx

    body = _Body(opset, values)
    if values.operator == DECODE_BBOX:
        _decode_bbox(body)
    elif values.axis == -1:
        _decode_bbox_v2(body)
    else:
        _decode_bbox_v2_inner(body)
    attributes = [*values.attributes(), *(["constants"] if opset < CAST_LIKE else [])]
    opsets = [onnx.helper.make_opsetid("", opset)]
    return onnx.helper.make_function(DOMAIN, values.operator, list(INPUTS), [OUTPUT], body.nodes, opsets, attributes)


class _Body:
    """Collects the nodes of a function; every method returns the names of what it adds."""

    def __init__(self, opset: int, values: Parameters) -> None:
        self.opset = opset
        self.values = values
        self.nodes: list[Any] = []

    def add(
        self,
        op: str,
        inputs: Sequence[str],
        output: str,
        refs: Mapping[str, tuple[str, int]] | None = None,
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

    def compute(self, operation: Operation, name: str, *operands: str) -> str:
        """Add a step of the decode."""
        if operation == "Half":
            return self.add("Mul", [*operands, "half"], name)
        return self.add(operation, operands, name)

    def corners(self, shift: str, growth: str, first: str, last: str) -> tuple[str, str]:
        """Add the decode of what is unscaled and bounded."""
        offset = "offset" if self.values.offset else None
        return corners(self.compute, shift, growth, first, last, self.values.anchor_form, offset)

    def integers(self, values: Sequence[int], output: str) -> str:
        """Add a constant list of integers."""
        import onnx

        value = onnx.numpy_helper.from_array(np.array(values, np.int64))
        return self.add("Constant", [], output, value=value)

    def split(self, tensor: str, outputs: Sequence[str], sizes: Sequence[int], axis: int | None = None) -> list[str]:
        """Cut a tensor along `axis` (None: the node's axis).

        Sizes are always given: without them, ONNX Runtime takes a Split in two and one in four for the same node.
        """
        import onnx

        inputs = [tensor]
        attributes: dict[str, Any] = {} if axis is None else {"axis": axis}
        if self.opset >= 13:
            inputs.append(self.integers(sizes, f"{outputs[0]}_sizes"))
        else:
            attributes["split"] = list(sizes)
        node = onnx.helper.make_node("Split", inputs, list(outputs), **attributes)
        if axis is None:
            node.attribute.add(name="axis", type=onnx.AttributeProto.INT).ref_attr_name = "axis"
        self.nodes.append(node)
        return list(outputs)

    def part(self, tensor: str, start: int, stop: int, output: str) -> str:
        """Cut a piece out of a list."""
        bounds = [self.integers([value], f"{output}_{name}") for name, value in (("from", start), ("to", stop))]
        return self.add("Slice", [tensor, *bounds], output)

    def unsqueeze(self, tensor: str, axis: int, output: str) -> str:
        """Insert an axis of one."""
        if self.opset >= 13:
            return self.add("Unsqueeze", [tensor, self.integers([axis], f"{output}_axes")], output)
        return self.add("Unsqueeze", [tensor], output, axes=[axis])

    def reshape(self, tensor: str, shape: str, output: str) -> str:
        """Reshape to dimensions that may be zero."""
        if self.opset >= 14:
            return self.add("Reshape", [tensor, shape], output, allowzero=1)
        return self.add("Reshape", [tensor, shape], output)

    def parameters(self, names: Sequence[str]) -> None:
        """Make tensors of the node's attributes, in the dtype of box_predictions."""
        import onnx

        sizes = {"half": 1, "clip": 1, "lower": 1, "scales_row": 4, "means_row": 4, "offset": 1}
        if self.opset < CAST_LIKE:
            self.add("Constant", [], "numbers", {"value": ("constants", onnx.AttributeProto.TENSOR)})
            self.split("numbers", list(sizes), list(sizes.values()), axis=0)
            return
        single, several, whole = onnx.AttributeProto.FLOAT, onnx.AttributeProto.FLOATS, onnx.AttributeProto.INT
        sources: dict[str, tuple[str, str, int]] = {
            "clip": ("value_float", "decode_clip", single),
            "lower": ("value_float", "lower_clip", single),
            "scales_row": ("value_floats", "scales", several),
            "means_row": ("value_floats", "means", several),
            "offset": ("value_int", "offset", whole),
        }
        self.add("Constant", [], "half_single", value_float=0.5)
        for name in [*names, *(["offset"] if self.values.offset else [])]:
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


def _decode_bbox(body: _Body) -> None:
    body.parameters(["half", "clip"])
    shift, growth = body.split(INPUTS[0], ["shift", "growth"], [2, 2])
    anchors = body.split(INPUTS[1], ["first", "last"], [2, 2])
    _result(body, body.corners(shift, bound_growth(body.compute, growth, "clip"), *anchors))


def _result(body: _Body, corners: Sequence[str]) -> None:
    """Join the corners along the node's axis, to the shape of box_predictions.

    The Reshape changes nothing, and fails where anchors had more boxes along some axis: broadcasting would go unseen.
    """
    import onnx

    body.add("Concat", corners, "joined", {"axis": ("axis", onnx.AttributeProto.INT)})
    body.add("Shape", [INPUTS[0]], "form")
    body.reshape("joined", "form", OUTPUT)


def _decode_bbox_v2(body: _Body) -> None:
    """Add DecodeBboxV2 for the last axis, over (..., classes, 4)."""
    body.parameters(["half", "clip", "lower", "scales_row", "means_row"])
    body.add("Shape", [INPUTS[0]], "form")
    lead = body.part("form", 0, -1, "lead")
    width = body.part("form", -1, _END, "width")
    four = body.integers([4], "four")
    body.add("Div", [width, four], "classes")
    body.add("Concat", [lead, "classes", four], "grouped_form", axis=0)
    rows = body.reshape(INPUTS[0], "grouped_form", "rows")
    shifted = unscale(body.compute, rows, "scales_row", "means_row")
    shift, growth = body.split(shifted, ["shift", "growth"], [2, 2], axis=-1)
    anchors = body.split(body.unsqueeze(INPUTS[1], -2, "boxes"), ["first", "last"], [2, 2], axis=-1)
    bounded = bound_growth(body.compute, growth, "clip", "lower")
    body.add("Concat", body.corners(shift, bounded, *anchors), "joined", axis=-1)
    body.reshape("joined", "form", OUTPUT)  # fails where anchors had more boxes along some axis


def _decode_bbox_v2_inner(body: _Body) -> None:
    """Add DecodeBboxV2 for another axis, which holds the coordinates of one class."""
    import onnx

    axis = {"axis": ("axis", onnx.AttributeProto.INT)}
    body.parameters(["half", "clip", "lower", "scales_row", "means_row"])
    scales = body.split("scales_row", [f"scale_{coordinate}" for coordinate in range(4)], [1] * 4, axis=0)
    means = body.split("means_row", [f"mean_{coordinate}" for coordinate in range(4)], [1] * 4, axis=0)
    parts = body.split(INPUTS[0], [f"part_{coordinate}" for coordinate in range(4)], [1] * 4)
    for coordinate, (part, scale, mean) in enumerate(zip(parts, scales, means, strict=True)):
        unscale(body.compute, part, scale, mean, f"_{coordinate}")
    body.add("Concat", ["shifted_0", "shifted_1"], "shift", axis)
    body.add("Concat", ["shifted_2", "shifted_3"], "growth", axis)
    anchors = body.split(INPUTS[1], ["first", "last"], [2, 2])
    _result(body, body.corners("shift", bound_growth(body.compute, "growth", "clip", "lower"), *anchors))
