"""Writes DecodeBbox nodes into an ONNX model, each backed by a model-local function of the same name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from detops.graph._finding import Refusal
from detops.graph._schema import DOMAIN, VERSION, Parameters
from detops.graph.model._graph import Graph
from detops.graph.proof._parts import Parts
from detops.graph.proof._prove import SWAPPED, Proof
from detops.graph.rewrite._function_onnx import CAST_LIKE, function_for
from detops.graph.rewrite._rewrite import Plan

if TYPE_CHECKING:
    from detops.graph.model._load import Loaded

MIN_OPSET = 11  # Split, Concat and Flatten take a negative axis from here on
MIN_IR = 8  # model-local functions


def apply(model: Any, plans: Sequence[Plan]) -> None:
    """Carry the plans out on `model`, whose graphs they were made from."""
    opset = default_opset(model)
    for plan in plans:
        _apply_to_graph(plan, opset)
        for proof in plan.proofs.values():
            add_function(model, proof.parameters, opset)


def check_room(loaded: Loaded, proof: Proof, accepted: Sequence[Proof]) -> None:
    """Refuse where the model cannot hold the node's function: a model has one of each name."""
    model, values = loaded.proto, proof.parameters
    opset = default_opset(model)
    if opset < MIN_OPSET:
        raise Refusal(f"the model is of opset {opset}; the node's function needs {MIN_OPSET} or later", depth=8)
    function, present = function_for(values, opset), _present(model, values.operator)
    others = [other.parameters for other in accepted if other.parameters.operator == values.operator]
    if (present is not None and present != function) or any(function_for(other, opset) != function for other in others):
        raise Refusal(f"the model has another function {DOMAIN}::{values.operator} already", depth=8)


def default_opset(model: Any) -> int:
    """Return the version of the default domain."""
    return max((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), default=1)


def add_function(model: Any, values: Parameters, opset: int) -> None:
    """Give the model the function that a new node calls, and what it takes to hold it."""
    import onnx

    model.ir_version = max(model.ir_version, MIN_IR)
    if all(entry.domain != DOMAIN for entry in model.opset_import):
        model.opset_import.append(onnx.helper.make_opsetid(DOMAIN, VERSION))
    if not _present(model, values.operator):
        model.functions.append(function_for(values, opset))


def _present(model: Any, operator: str) -> Any:
    found = [function for function in model.functions if (function.domain, function.name) == (DOMAIN, operator)]
    return found[0] if found else None


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
    import onnx

    graph = plan.graph.raw
    indices = [node.index for node in plan.graph.nodes]
    surroundings = []
    for position, proof in plan.proofs.items():
        raw = graph.node[indices[position]]
        node = make_node(proof, opset, raw.name)
        node.doc_string = raw.doc_string
        node.metadata_props.extend(raw.metadata_props)
        around = _reshapes(plan.graph, proof, node)
        surroundings.append((node.output[0], *around))
        raw.CopyFrom(node)
        if proof.made is not None:
            graph.initializer.append(onnx.numpy_helper.from_array(proof.made.anchors, proof.made.name))
    for index in sorted((indices[position] for position in plan.dead), reverse=True):
        del graph.node[index]
    for output, before, after in surroundings:
        _surround(graph, output, before, after)
    inputs = {value.name for value in graph.input}
    for entries in (graph.initializer, graph.value_info):
        for index in reversed(range(len(entries))):
            if entries[index].name in plan.unread and entries[index].name not in inputs:
                del entries[index]


def _reshapes(graph: Graph, proof: Proof, node: Any) -> tuple[list[Any], list[Any]]:
    """Let a node read and write boxes as the graph doesn't have them; return the nodes that go before and after it."""
    before: list[Any] = []
    after: list[Any] = []
    for index, name in enumerate((proof.box_predictions, proof.anchors)):
        if name in proof.rows:
            node.input[index] = graph.free_name(proof.decoded_boxes, f"_rows_{index}")
            before += _reshape(name, node.input[index], [-1, 4])
    if proof.corners_added is not None:
        added = graph.free_name(proof.decoded_boxes, "_counted")
        before += _add(node.input[1], added, proof.corners_added)
        node.input[1] = added
    if proof.alike:
        checked = graph.free_name(proof.decoded_boxes, "_as_many")
        before += _as_many(node.input[0], node.input[1], checked)
        node.input[1] = checked
    boxes = proof.decoded_boxes
    steps: list[tuple[str, Callable[[str, str], list[Any]]]] = []
    if proof.swapped:
        steps.append(("_swapped", partial(_swap, axis=proof.parameters.axis)))
    if proof.tail:
        steps.append(("_rows", partial(_reshape, shape=[0] * (len(proof.shapes[0]) - 1) + list(proof.tail))))
    for suffix, make in reversed(steps):
        node.output[0] = graph.free_name(proof.decoded_boxes, suffix)
        after[:0] = make(node.output[0], boxes)
        boxes = node.output[0]
    if proof.parts:
        after += _cut_out(proof.decoded_boxes, proof.parts)
    return before, after


def _reshape(source: str, result: str, shape: list[int]) -> list[Any]:
    import onnx

    value = onnx.numpy_helper.from_array(np.array(shape, np.int64))
    form = onnx.helper.make_node("Constant", [], [f"{source}_to_{result}"], value=value)
    return [form, onnx.helper.make_node("Reshape", [source, form.output[0]], [result], name=result)]


def _add(source: str, result: str, numbers: Any) -> list[Any]:
    import onnx

    value = onnx.numpy_helper.from_array(numbers)
    listed = onnx.helper.make_node("Constant", [], [f"{result}_numbers"], value=value)
    return [listed, onnx.helper.make_node("Add", [source, listed.output[0]], [result], name=result)]


def _swap(source: str, result: str, axis: int) -> list[Any]:
    import onnx

    order = onnx.numpy_helper.from_array(np.array(SWAPPED))
    listed = onnx.helper.make_node("Constant", [], [f"{source}_order"], value=order)
    return [listed, onnx.helper.make_node("Gather", [source, listed.output[0]], [result], name=result, axis=axis)]


def _cut_out(source: str, parts: Parts) -> list[Any]:
    """Return nodes that pick the corners which a graph bounds one by one."""
    import onnx

    made = []
    ends = np.cumsum(parts.sizes)
    for corner, (name, size, end) in enumerate(zip(parts.tensors, parts.sizes, ends, strict=True)):
        index = np.array(corner) if parts.inserted else np.arange(end - size, end)
        value = onnx.numpy_helper.from_array(index)
        listed = onnx.helper.make_node("Constant", [], [f"{source}_at_{corner}"], value=value)
        picked = onnx.helper.make_node("Gather", [source, listed.output[0]], [name], name=name, axis=parts.axis)
        made += [listed, picked]
    return made


def _as_many(predictions: str, anchors: str, result: str) -> list[Any]:
    """Return nodes that pass anchors on, and fail where they aren't as many as the predictions.

    Where a Concat puts the shape together, ONNX Runtime's optimizer replaces its only unknown size by -1.
    """
    import onnx

    make = onnx.helper.make_node
    names = {name: f"{result}_{name}" for name in ("kept", "fours", "shape", "form")}
    constants = {"kept": np.array([True, False]), "fours": np.array([4, 4])}
    return [
        *(make("Constant", [], [names[key]], value=onnx.numpy_helper.from_array(constants[key])) for key in constants),
        make("Shape", [predictions], [names["shape"]]),
        make("Where", [names["kept"], names["shape"], names["fours"]], [names["form"]]),
        make("Reshape", [anchors, names["form"]], [result], name=result),
    ]


def _surround(graph: Any, output: str, before: list[Any], after: list[Any]) -> None:
    """Put nodes before and after the one that now makes an output."""
    if not before and not after:
        return
    index = next(index for index, node in enumerate(graph.node) if output in node.output)
    for node in reversed(after):
        graph.node.insert(index + 1, node)
    for node in reversed(before):
        graph.node.insert(index, node)
