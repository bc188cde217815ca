"""Decodes of other forms than DecodeBbox's: found by what they compute, and named, so that a quantizer can pass them.

Nothing is replaced here, so a decode is looked at for one size of what a model leaves open, and at its first and its
last box only. Where coordinates are joined, they are computed with a symbol for each element of the tensors that come
from operators which the proof doesn't know, such as a convolution or a sigmoid. Where that has no name, it is tried
again with sigmoids as part of it, which YOLOv3 has on its centers alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detops.graph._finding import CannotRunError, Finding, Refusal
from detops.graph.model._graph import Graph, Node
from detops.graph.ops._evaluate import evaluate_all, operator_of
from detops.graph.ops._ops import Run, Symbolic
from detops.graph.proof._parts import find_parts, joined
from detops.graph.search._forms import FORMS, REASONS, Read
from detops.graph.search._scope import common_scope
from detops.graph.symbols import _poly
from detops.graph.symbols._expressions import NODE, Budget
from detops.graph.symbols._poly import Poly
from detops.graph.symbols._sizes import axis_of

# what stands for the size of an axis that a model leaves open; at 1, those that follow from each other are consistent
OPEN_SIZES = (5, 1)
MAX_NODES = 300  # between predictions and boxes
MAX_SYMBOLS = 1 << 21
NAME_WORK = 1 << 24
JOIN_AXES = {"Concat": 1, "ConcatV2": -1, "Pack": 0, "ScatterND": -1}  # the axis where the node doesn't say it
GATE = "Sigmoid"
MEANS = frozenset({"Conv", "MatMul"})  # what takes the mean of a distribution, with its values as weights
COMPUTED = frozenset({"Add", "AddV2", "Sub", "Mul", "Div", "RealDiv", "Exp", "Pow", "Clip", "Min", "Max"})
SCALED = frozenset({"Mul", "Div", "RealDiv"})


@dataclass(frozen=True)
class _Leaf:
    """A tensor at which the operators end that the proof knows, with a symbol for each element from `start` on."""

    name: str
    start: int
    shape: tuple[int, ...]

    def index(self, symbol: int) -> tuple[int, ...] | None:
        """Return where a symbol lies, None where it is another tensor's."""
        if not 0 <= symbol - self.start < math.prod(self.shape):
            return None
        return tuple(map(int, np.unravel_index(symbol - self.start, self.shape)))


@dataclass(frozen=True)
class _Gate:
    """A sigmoid inside of a decode, with a symbol for each element from `start` on."""

    start: int
    ids: NDArray[np.int64]  # of what it reads

    def source(self, run: Run, symbol: int) -> int | None:
        """Return the symbol that one of these symbols is the sigmoid of."""
        if not 0 <= symbol - self.start < self.ids.size:
            return None
        poly = run.size_at(int(self.ids.flat[symbol - self.start]))
        return poly[0][0][0][1] if len(poly) == 1 and _is_symbol(poly[0][0]) and poly[0][1] == 1 else None


def _is_symbol(key: tuple[Any, ...]) -> bool:
    return len(key) == 1 and key[0][0] == "x"


class _Values:
    """A piece of graph on symbols."""

    def __init__(self, graph: Graph, nodes: Sequence[Node], names: Sequence[str], size: int, budget: Budget) -> None:
        self.run = Run(budget)
        self.leaves: list[_Leaf] = []
        self.gates: list[_Gate] = []
        values: dict[str, Any] = {}
        for name in names:
            leaf, values[name] = _symbols(graph, self.run, name, size)
            self.leaves.append(leaf)
        pending: list[Node] = []
        for node in nodes:
            if node.op != GATE:
                pending.append(node)
                continue
            values = evaluate_all(graph, self.run, pending, values)
            values[node.outputs[0]] = self._gated(values.get(node.inputs[0]))
            pending = []
        self.values = evaluate_all(graph, self.run, pending, values)

    def _gated(self, value: Any) -> Symbolic:
        """Return the sigmoid of a tensor, as symbols of their own."""
        if not isinstance(value, Symbolic) or not 0 < value.ids.size <= MAX_SYMBOLS:
            raise Refusal("a sigmoid of what is no prediction")
        ids = self.run.pool.symbols(value.ids.shape)
        self.gates.append(_Gate(_first_symbol(self.run, ids), value.ids))
        return Symbolic(ids, value.axes, value.dtype)

    def read(self, leaf: _Leaf, symbols: Sequence[int]) -> Read:
        """Return which of some symbols are those of a leaf, or their sigmoids."""
        indices, gated = {}, set()
        for symbol in symbols:
            sources = [source for gate in self.gates if (source := gate.source(self.run, symbol)) is not None]
            index = leaf.index(sources[0] if sources else symbol)
            if index is not None:
                indices[symbol] = index
                gated.update([symbol] if sources else [])
        return Read(indices, frozenset(gated))


def named_decodes(graph: Graph, taken: set[str]) -> list[Finding]:
    """Return the decodes of other forms, without those that hold a node whose label is taken."""
    budget = Budget(NAME_WORK)
    seen: set[int] = set()
    results: list[Finding] = []
    for join in graph.nodes:
        if join.op not in JOIN_AXES or not join.outputs:
            continue
        with suppress(Refusal):
            if not _is_computed(graph, join, budget):
                continue
            finding, nodes = _bounded_or_not(graph, join, budget)
            positions = {node.position for node in nodes}
            if seen.isdisjoint({join.position}) and taken.isdisjoint(node.label for node in nodes):
                seen |= positions
                if join.op == "ScatterND":  # which may go on with a decode that is known
                    results = [each for each in results if not _goes_on(finding, each)]
                results.append(finding)
    return results


def _goes_on(finding: Finding, other: Finding) -> bool:
    return finding.form == other.form and set(finding.nodes) > set(other.nodes)


def _bounded_or_not(graph: Graph, join: Node, budget: Budget) -> tuple[Finding, list[Node]]:
    """Return a decode that ends near a join, or whose corners are bounded before they are joined, or refuse."""
    try:
        return _named_in_a_way(graph, join, budget)
    except Refusal:
        parts = find_parts(graph, join)
        if parts is None:
            raise
    budget.spend(len(graph.nodes))
    wider, target = joined(graph, parts)
    finding, nodes = _named_in_a_way(wider, wider.producer[target], budget)
    held = [node for node in nodes if node.index >= 0]
    labels = tuple(node.label for node in held)
    return replace(finding, scope=common_scope(held), nodes=labels, decoded_boxes=join.outputs[0]), held


def _is_computed(graph: Graph, join: Node, budget: Budget) -> bool:
    """Tell whether two inputs of a join are results of arithmetic; what is written in place has one."""
    found = int(join.op == "ScatterND")
    for name in join.inputs:
        node = graph.producer.get(name)
        while node is not None and (operator := operator_of(graph, node)) is not None and operator.kind == "move":
            budget.spend(NODE)
            sources = operator.data_inputs(node)
            node = graph.producer.get(sources[0]) if len(sources) == 1 else None
        found += node is not None and node.op in COMPUTED
    return found > 1


def _named_in_a_way(graph: Graph, join: Node, budget: Budget) -> tuple[Finding, list[Node]]:
    """Return a decode that ends near a join, or refuse; at a size of 1 only if the graph doesn't run at another."""
    try:
        return _named_at(graph, join, budget, OPEN_SIZES[0])
    except CannotRunError:
        return _named_at(graph, join, budget, OPEN_SIZES[1])


def _named_at(graph: Graph, join: Node, budget: Budget, size: int) -> tuple[Finding, list[Node]]:
    try:
        return _named(graph, join, budget, gates=False, size=size)
    except Refusal as refusal:
        try:
            return _named(graph, join, budget, gates=True, size=size)
        except Refusal:
            raise refusal from None


def _named(graph: Graph, join: Node, budget: Budget, *, gates: bool, size: int) -> tuple[Finding, list[Node]]:
    """Return a decode that ends near a join, with sigmoids inside of it or without, or refuse."""
    cone = partial(_cone, graph, budget=budget, gates=gates)
    end = _last(graph, join.outputs[0], budget)
    nodes, names = cone(end, frozenset())
    if gates and not any(node.op == GATE for node in nodes):
        raise Refusal("no sigmoid leads to it")
    form, found, read = _form_at(_Values(graph, nodes, names, size, budget), join)
    start = next(iter(found))
    if len(found) > 1:  # of several levels: the first tensor that all of them come through
        start = next(node.outputs[0] for node in nodes if found <= set(cone(node.outputs[0], frozenset())[1]))
    nodes, names = cone(end, frozenset((start,)))
    distributions = _distributions(graph, found) if form == "ltrb" else []
    if distributions:
        form, levels = "dfl", cone(start, frozenset(found))[0]
        start = distributions[0].inputs[0] if len(found) == 1 else start
        nodes = _in_order((*distributions, *levels, *nodes))
    others = [name for name in names if name in read - found - {start}]
    finding = Finding(
        scope=common_scope(nodes),
        nodes=tuple(node.label for node in nodes),
        box_predictions=start,
        anchors=others[0] if len(others) == 1 else None,
        decoded_boxes=end,
        reason=REASONS[form],
        form=form,
    )
    return finding, nodes


def _in_order(nodes: Iterable[Node]) -> list[Node]:
    found = {node.position: node for node in nodes}
    return [found[position] for position in sorted(found)]


def _distributions(graph: Graph, names: Iterable[str]) -> list[Node]:
    """Return the nodes that make the means of distributions which all of some tensors are; none if one isn't."""
    means = [_mean_of_softmax(graph, name) for name in sorted(names)]
    return [node for mean in means for node in mean] if all(means) else []


def _mean_of_softmax(graph: Graph, tensor: str) -> list[Node]:
    """Return the nodes from a Softmax to a mean, with evenly growing values, that a tensor is; none where it isn't."""
    node = graph.producer.get(tensor)
    if node is None or node.op not in MEANS or len(node.inputs) != 2:
        return []
    weights = _weights(graph, node.inputs[1])
    if weights is None or weights.size < 2 or weights.size != max(weights.shape):
        return []
    steps = np.diff(weights.ravel().astype(np.float64))
    if not (steps[0] > 0 and np.allclose(steps, steps[0])):
        return []
    nodes = [node]
    while (node := graph.producer.get(node.inputs[0])) is not None:
        nodes.append(node)
        operator = operator_of(graph, node)
        if node.op == "Softmax":
            return nodes[::-1]
        if operator is None or operator.kind != "move" or len(operator.data_inputs(node)) != 1:
            break
    return []


def _weights(graph: Graph, name: str) -> NDArray[Any] | None:
    """Return a constant, also one that modules share by an Identity."""
    while (node := graph.producer.get(name)) is not None and node.op == "Identity" and node.inputs:
        name = node.inputs[0]
    return graph.constant(name)


def _symbols(graph: Graph, run: Run, name: str, size: int) -> tuple[_Leaf, Symbolic]:
    """Return a symbol for each element of a tensor of floats."""
    info = graph.info(name)
    if info.dtype is None or info.dtype.kind != "f" or info.shape is None:
        raise Refusal(f"neither the shape nor the type of {name} is known")
    shape = tuple(size if dim is None else dim for dim in info.shape)
    count = math.prod(shape)
    if not 0 < count <= MAX_SYMBOLS:
        raise Refusal(f"{name} has no elements, or too many")
    ids = run.pool.symbols(shape)
    return _Leaf(name, _first_symbol(run, ids), shape), Symbolic(
        ids, tuple(axis_of([dim]) for dim in shape), info.dtype
    )


def _first_symbol(run: Run, ids: NDArray[np.int64]) -> int:
    return run.pool.element(int(ids.ravel()[0]))[1][0]


def _last(graph: Graph, tensor: str, budget: Budget) -> str:
    """Follow joined coordinates through movement and factors, as long as nothing else reads what lies on the way."""
    while tensor not in graph.outputs and len(readers := graph.readers.get(tensor, [])) == 1:
        node = readers[0]
        budget.spend(NODE)
        operator = operator_of(graph, node)
        others = [name for name in node.inputs if name and name != tensor]
        moved = operator is not None and operator.kind == "move" and operator.data_inputs(node) == (tensor,)
        scaled = node.op in SCALED and all(graph.constant(name) is not None for name in others)
        if not (moved or scaled) or len(node.outputs) != 1:
            break
        tensor = node.outputs[0]
    return tensor


def _cone(
    graph: Graph, target: str, cuts: frozenset[str], *, budget: Budget, gates: bool
) -> tuple[list[Node], list[str]]:
    """Return the nodes that lead to a tensor, and the tensors at which the operators end that the proof knows."""
    found: dict[int, Node] = {}
    leaves: dict[str, None] = {}
    pending = [target]
    while pending:
        tensor = pending.pop()
        node, operator = graph.producer.get(tensor), operator_of(graph, graph.producer.get(tensor))
        if graph.constant(tensor) is not None:
            continue
        known = operator is not None or (gates and node is not None and node.op == GATE)
        if node is None or not known or tensor in cuts:
            leaves[tensor] = None
            continue
        if node.position in found:
            continue
        found[node.position] = node
        budget.spend(NODE)
        if len(found) > MAX_NODES:
            raise Refusal("more nodes lead to it than to a decode")
        pending += [name for name in node.inputs if name]
    return [found[position] for position in sorted(found)], list(leaves)


def _form_at(values: _Values, join: Node) -> tuple[str, set[str], set[str]]:
    """Return the form of the first and the last box, the tensors of their predictions, and all that they read."""
    value = values.values.get(join.outputs[0])
    if not isinstance(value, Symbolic) or not value.ids.size:
        raise Refusal("the joined tensor depends on no predictions")
    axis = JOIN_AXES[join.op] if join.op == "ConcatV2" else join.attributes.get("axis", JOIN_AXES[join.op])
    if axis not in range(-value.ids.ndim, value.ids.ndim):
        raise Refusal("there is no such axis")
    rows = np.moveaxis(value.ids, axis, -1)
    rows = rows.reshape(-1, rows.shape[-1])
    forms, found, read = set(), set(), set[str]()
    for row in (rows[0], rows[-1]):
        polys = [values.run.size_at(int(position)) for position in row[:4]]
        form, name = _form_of(polys, values)
        forms.add(form)
        found.add(name)
        symbols = _symbols_of(polys)
        read |= {leaf.name for leaf in values.leaves if values.read(leaf, symbols).indices}
    if len(forms) > 1:
        raise Refusal("the first and the last box have different forms")
    return forms.pop(), found, read


def _symbols_of(polys: Sequence[Poly]) -> list[int]:
    return sorted({symbol for poly in polys for symbol in _poly.used_slots(poly)})


def _form_of(polys: Sequence[Poly], values: _Values) -> tuple[str, str]:
    """Return the name of what four elements are, and the tensor that holds the predictions; or refuse."""
    for leaf in values.leaves if len(polys) == 4 else ():
        read = values.read(leaf, _symbols_of(polys))
        for name, test in FORMS.items() if len(read.indices) >= 4 else ():
            if test(polys, read):
                return name, leaf.name
    raise Refusal("this is no form that has a name")
