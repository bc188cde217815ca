"""Runs a piece of graph on symbols (a proof) or on arrays (a numeric check)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from detops.graph._finding import Refusal
from detops.graph.model._graph import Graph, Node
from detops.graph.ops._ops import Definition, Foreign, Run, Symbolic, Table
from detops.graph.ops._ops_onnx import ONNX
from detops.graph.ops._ops_tf import TENSORFLOW
from detops.graph.symbols._expressions import NODE, OVERHEAD, Budget

MAX_CONE = 2000
MAX_LIST = 64  # a longer list of integers holds no sizes

BOUNDED = frozenset({"Min", "Max", "Clip", "Minimum", "Maximum", "ClipByValue"})


def table_of(graph: Graph) -> Table:
    """Return the operators of the graph's dialect."""
    return ONNX if graph.dialect == "onnx" else TENSORFLOW


def operator_of(graph: Graph, node: Node | None) -> Definition | None:
    """Return what a node's operator means; None where the proof doesn't know it."""
    return None if node is None else table_of(graph).get(node.op)


def cone(graph: Graph, target: str, cuts: frozenset[str], budget: Budget | None = None) -> list[Node]:
    """Return the nodes between `cuts` (and constants, and operators that the proof doesn't know) and `target`."""
    found: dict[int, Node] = {}
    pending = [target]
    while pending:
        tensor = pending.pop()
        node = graph.producer.get(tensor)
        if tensor in cuts or node is None or node.position in found or graph.constant(tensor) is not None:
            continue
        if operator_of(graph, node) is None:
            continue
        found[node.position] = node
        if budget is not None:
            budget.spend(NODE)
        if len(found) > MAX_CONE:
            raise Refusal("more nodes lead to the output than a box decode has")
        pending += [name for name in node.inputs if name]
    return [found[position] for position in sorted(found)]


def evaluate(graph: Graph, run: Run, nodes: Sequence[Node], given: Mapping[str, Any], target: str) -> Any:
    """Run `nodes` from the values in `given` and return the value of `target`."""
    values = evaluate_all(graph, run, nodes, given)
    constant = graph.constant(target)
    result = values.get(target, constant)
    if result is None or isinstance(result, Foreign):
        raise Refusal(f"{target} doesn't come from the two inputs")
    return result


def evaluate_all(graph: Graph, run: Run, nodes: Sequence[Node], given: Mapping[str, Any]) -> dict[str, Any]:
    """Run `nodes` from the values in `given` and return the values of all tensors."""
    values: dict[str, Any] = dict(given)

    def value_of(tensor: str) -> Any:
        if not tensor:
            return None
        if tensor not in values:
            constant = graph.constant(tensor)
            values[tensor] = Foreign(tensor, graph.info(tensor)) if constant is None else constant
        return values[tensor]

    with np.errstate(all="ignore"):
        for node in nodes:
            inputs = [value_of(name) for name in node.inputs]
            foreign = [value for value in inputs if isinstance(value, Foreign)]
            results = _with_foreign(graph, node, inputs, foreign) if foreign else _apply(graph, run, node, inputs)
            for name, value in zip(node.outputs, results, strict=False):
                values.setdefault(name, value)
    return values


def _apply(graph: Graph, run: Run, node: Node, inputs: list[Any]) -> Sequence[Any]:
    run.label = node.label
    run.pool.budget.spend(OVERHEAD)
    try:
        return table_of(graph)[node.op].apply(run, node, inputs)
    except (ValueError, LookupError, ArithmeticError, AttributeError, TypeError) as error:
        raise Refusal(f"{node.label} ({node.op}) is malformed: {error}") from error


def _with_foreign(graph: Graph, node: Node, inputs: list[Any], foreign: list[Foreign]) -> Sequence[Any]:
    """Let a tensor from elsewhere pass as long as it doesn't meet the boxes; its static shape is a constant."""
    operator = table_of(graph)[node.op]
    root = foreign[0].root
    if operator.kind == "shape":
        shape = foreign[0].info.shape
        if len(inputs) == 1 and shape is not None and None not in shape:
            return [static_shape(graph, node)]
    elif any(isinstance(value, Symbolic) for value in inputs):
        if node.op in BOUNDED:
            raise Refusal(f"the bound of {node.label} ({node.op}) is {root!r}, which is not a constant", depth=2)
        raise Refusal(f"{node.label} ({node.op}) also depends on {root!r}", depth=1)
    return [Foreign(root, graph.info(name)) for name in node.outputs]


def static_shape(graph: Graph, node: Node) -> Any:
    """Return what a shape operator gives for a tensor whose shape the model states."""
    shape = [dim or 0 for dim in graph.info(node.inputs[0]).shape or ()]
    try:
        table = np.broadcast_to(np.int8(0), shape)
    except ValueError as error:
        raise Refusal(f"{node.label} ({node.op}) reads a shape that is too large") from error
    return table_of(graph)[node.op].apply(Run(), node, [table])[0]


def integers_in(graph: Graph, nodes: Sequence[Node], run: Mapping[str, Any]) -> set[int]:
    """Return the integers that the nodes take, as constants or as attributes, and those that they compute."""
    found: set[int] = set()
    for node in nodes:
        arrays = [graph.constant(name) for name in node.inputs if name]
        arrays += [np.asarray(value) for value in node.attributes.values() if isinstance(value, (int, list))]
        arrays += [run.get(name) for name in node.outputs]
        for array in arrays:
            if isinstance(array, np.ndarray) and array.dtype.kind in "iu" and array.size <= MAX_LIST:
                found.update(int(number) for number in array.ravel())
    return found
