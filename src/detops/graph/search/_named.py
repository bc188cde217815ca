"""Decodes of other forms than DecodeBbox's: found by what they compute, and named, so that a quantizer can pass them.

Nothing is replaced here, so a decode is looked at for one size of what a model leaves open, and at its first and its
last box only. Where coordinates are joined, they are computed with a symbol for each element of the tensors that come
from operators which the proof doesn't know, such as a convolution or a sigmoid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from detops.graph._finding import Finding, Refusal
from detops.graph.model._graph import Graph, Node
from detops.graph.ops._evaluate import evaluate_all, operator_of
from detops.graph.ops._ops import Run, Symbolic
from detops.graph.proof._parts import find_parts, joined
from detops.graph.search._scope import common_scope
from detops.graph.symbols import _poly
from detops.graph.symbols._expressions import NODE, Budget
from detops.graph.symbols._poly import Poly
from detops.graph.symbols._sizes import axis_of

OPEN = 5  # the size of an axis that a model leaves open
MAX_NODES = 300  # between predictions and boxes
MAX_SYMBOLS = 1 << 21
NAME_WORK = 1 << 24
JOINS = frozenset({"Concat", "ConcatV2"})
COMPUTED = frozenset({"Add", "AddV2", "Sub", "Mul", "Div", "RealDiv", "Exp", "Pow", "Clip", "Min", "Max"})
SCALED = frozenset({"Mul", "Div", "RealDiv"})
HALF = Fraction(1, 2)

REASONS = {
    "ltrb": "distances to the left, top, right and bottom from a point, which DecodeBbox doesn't take",
    "tblr": "distances to the top, bottom, left and right, which DecodeBbox doesn't take",
    "cxcywh": "centers and sizes that become corners, without anchors",
    "yolo": "centers relative to a cell of a grid, and sizes, which stay such",
}


@dataclass(frozen=True)
class _Leaf:
    """A tensor at which the operators end that the proof knows, with a symbol for each element from `start` on."""

    name: str
    start: int
    shape: tuple[int, ...]

    def indices(self, symbols: Sequence[int]) -> dict[int, tuple[int, ...]]:
        """Return where each of some symbols lies, without those of other tensors."""
        here = [symbol for symbol in symbols if 0 <= symbol - self.start < math.prod(self.shape)]
        return {symbol: tuple(map(int, np.unravel_index(symbol - self.start, self.shape))) for symbol in here}


def named_decodes(graph: Graph, taken: set[str]) -> Iterator[Finding]:
    """Yield the decodes of other forms, without those that hold a node whose label is taken."""
    budget = Budget(NAME_WORK)
    seen: set[int] = set()
    for join in graph.nodes:
        if join.op not in JOINS or not join.outputs:
            continue
        with suppress(Refusal):
            if not _is_computed(graph, join, budget):
                continue
            finding, nodes = _bounded_or_not(graph, join, budget)
            positions = {node.position for node in nodes}
            if seen.isdisjoint({join.position}) and taken.isdisjoint(node.label for node in nodes):
                seen |= positions
                yield finding


def _bounded_or_not(graph: Graph, join: Node, budget: Budget) -> tuple[Finding, list[Node]]:
    """Return a decode that ends near a join, or whose corners are bounded before they are joined, or refuse."""
    try:
        return _named(graph, join, budget)
    except Refusal:
        parts = find_parts(graph, join)
        if parts is None:
            raise
    budget.spend(len(graph.nodes))
    wider, target = joined(graph, parts)
    finding, nodes = _named(wider, wider.producer[target], budget)
    held = [node for node in nodes if node.index >= 0]
    labels = tuple(node.label for node in held)
    return replace(finding, scope=common_scope(held), nodes=labels, decoded_boxes=join.outputs[0]), held


def _is_computed(graph: Graph, join: Node, budget: Budget) -> bool:
    """Tell whether two inputs of a join are results of arithmetic."""
    found = 0
    for name in join.inputs:
        node = graph.producer.get(name)
        while node is not None and (operator := operator_of(graph, node)) is not None and operator.kind == "move":
            budget.spend(NODE)
            sources = operator.data_inputs(node)
            node = graph.producer.get(sources[0]) if len(sources) == 1 else None
        found += node is not None and node.op in COMPUTED
    return found > 1


def _named(graph: Graph, join: Node, budget: Budget) -> tuple[Finding, list[Node]]:
    """Return a decode that ends near a join, or refuse."""
    end = _last(graph, join.outputs[0], budget)
    nodes, names = _cone(graph, end, frozenset(), budget)
    run = Run(budget)
    leaves: list[_Leaf] = []
    values: dict[str, Any] = {}
    for name in names:
        leaf, values[name] = _symbols(graph, run, name)
        leaves.append(leaf)
    results = evaluate_all(graph, run, nodes, values)
    form, found = _form_at(run, results.get(join.outputs[0]), join, leaves)
    if len(found) > 1:  # of several levels: the first tensor that all of them come through
        names = [name for name in names if name not in found]
        start = next(
            node.outputs[0] for node in nodes if found <= set(_cone(graph, node.outputs[0], frozenset(), budget)[1])
        )
        nodes, names = _cone(graph, end, frozenset((start,)), budget)
        found = {start}
    others = [name for name in names if name not in found]
    finding = Finding(
        scope=common_scope(nodes),
        nodes=tuple(node.label for node in nodes),
        box_predictions=next(iter(found)),
        anchors=others[0] if len(others) == 1 else None,
        decoded_boxes=end,
        reason=REASONS[form],
        form=form,
    )
    return finding, nodes


def _symbols(graph: Graph, run: Run, name: str) -> tuple[_Leaf, Symbolic]:
    """Return a symbol for each element of a tensor of floats."""
    info = graph.info(name)
    if info.dtype is None or info.dtype.kind != "f" or info.shape is None:
        raise Refusal(f"neither the shape nor the type of {name} is known")
    shape = tuple(OPEN if dim is None else dim for dim in info.shape)
    count = math.prod(shape)
    if not 0 < count <= MAX_SYMBOLS:
        raise Refusal(f"{name} has no elements, or too many")
    ids = run.pool.symbols(shape)
    start = run.pool.element(int(ids.ravel()[0]))[1][0]
    return _Leaf(name, start, shape), Symbolic(ids, tuple(axis_of([dim]) for dim in shape), info.dtype)


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


def _cone(graph: Graph, target: str, cuts: frozenset[str], budget: Budget) -> tuple[list[Node], list[str]]:
    """Return the nodes that lead to a tensor, and the tensors at which the operators end that the proof knows."""
    found: dict[int, Node] = {}
    leaves: dict[str, None] = {}
    pending = [target]
    while pending:
        tensor = pending.pop()
        node, operator = graph.producer.get(tensor), operator_of(graph, graph.producer.get(tensor))
        if graph.constant(tensor) is not None:
            continue
        if node is None or operator is None or tensor in cuts:
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


def _form_at(run: Run, value: Any, join: Node, leaves: Sequence[_Leaf]) -> tuple[str, set[str]]:
    """Return the form that the first and the last box have, and the tensors that hold their predictions; or refuse."""
    if not isinstance(value, Symbolic) or not value.ids.size:
        raise Refusal("the joined tensor depends on no predictions")
    axis = join.attributes.get("axis", 1) if join.op == "Concat" else -1
    if axis not in range(-value.ids.ndim, value.ids.ndim):
        raise Refusal("there is no such axis")
    rows = np.moveaxis(value.ids, axis, -1)
    rows = rows.reshape(-1, rows.shape[-1])
    forms, found = set(), set()
    for row in (rows[0], rows[-1]):
        form, name = _form_of([run.size_at(int(position)) for position in row[:4]], leaves)
        forms.add(form)
        found.add(name)
    if len(forms) > 1:
        raise Refusal("the first and the last box have different forms")
    return forms.pop(), found


def _form_of(polys: Sequence[Poly], leaves: Sequence[_Leaf]) -> tuple[str, str]:
    """Return the name of what four elements are, and the tensor that holds the predictions; or refuse."""
    for leaf in leaves if len(polys) == 4 else ():
        indices = leaf.indices([symbol for poly in polys for symbol in _poly.used_slots(poly)])
        for name, test in FORMS.items() if len(indices) >= 4 else ():
            if test(polys, indices):
                return name, leaf.name
    raise Refusal("this is no form that has a name")


def _order(atoms: Sequence[int], indices: dict[int, tuple[int, ...]]) -> list[int] | None:
    """Return the order in which four symbols lie along one axis of the predictions, None where they don't."""
    found = np.array([indices[symbol] for symbol in atoms])
    varying = np.flatnonzero((found != found[0]).any(axis=0))
    if len(set(atoms)) < 4 or len(varying) != 1:
        return None
    return [int(rank) for rank in np.argsort(np.argsort(found[:, varying[0]]))]


def _alone(poly: Poly, indices: dict[int, tuple[int, ...]]) -> int | None:
    """Return the one symbol of the predictions that a polynomial reads, None where there is another number of them."""
    symbols = [symbol for symbol in _poly.used_slots(poly) if symbol in indices]
    return symbols[0] if len(symbols) == 1 else None


def _split(poly: Poly, symbol: int) -> tuple[Poly, Poly]:
    """Return the terms with a symbol, and those without it."""
    with_it = tuple(term for term in poly if symbol in _poly.used_slots((term,)))
    return with_it, tuple(term for term in poly if term not in with_it)


def _half(poly: Poly) -> Poly:
    return _poly.multiply(poly, _poly.constant_poly(HALF))


def _distances(polys: Sequence[Poly], indices: dict[int, tuple[int, ...]], wanted: Sequence[int]) -> bool:
    """Tell whether corners are a point less and plus a prediction each."""
    symbols = [_alone(poly, indices) for poly in polys]
    if None in symbols:
        return False
    if _order([symbol for symbol in symbols if symbol is not None], indices) != list(wanted):
        return False
    for low, high in ((0, 2), (1, 3)):
        parts = [_split(polys[coordinate], symbols[coordinate] or 0) for coordinate in (low, high)]
        ours, theirs = (
            _renamed(part[0], symbols[coordinate] or 0) for part, coordinate in zip(parts, (low, high), strict=True)
        )
        if parts[0][1] != parts[1][1] or _poly.add(ours, theirs) != _poly.ZERO:
            return False
        if any(value > 0 for _, value in ours if len(ours) == 1):
            return False
    return True


def _renamed(poly: Poly, symbol: int) -> Poly:
    """Return a polynomial with -1 in place of one symbol."""
    slots = {slot: -1 if slot == symbol else slot for slot in _poly.used_slots(poly)}
    return _poly.relabel(poly, slots)


def _corners(polys: Sequence[Poly]) -> list[Poly]:
    """Return the corners of what is given as center and size."""
    pairs = [(polys[coordinate], _half(polys[coordinate + 2])) for coordinate in (0, 1)]
    return [_poly.subtract(*pair) for pair in pairs] + [_poly.add(*pair) for pair in pairs]


def _ltrb(polys: Sequence[Poly], indices: dict[int, tuple[int, ...]]) -> bool:
    return any(_distances(each, indices, (0, 1, 2, 3)) for each in (polys, _corners(polys)))


def _tblr(polys: Sequence[Poly], indices: dict[int, tuple[int, ...]]) -> bool:
    return _distances(polys, indices, (2, 0, 3, 1))


def _cxcywh(polys: Sequence[Poly], indices: dict[int, tuple[int, ...]]) -> bool:
    """Tell whether corners are a center less and plus half a size, each of one prediction."""
    centers = [_half(_poly.add(polys[coordinate], polys[coordinate + 2])) for coordinate in (0, 1)]
    sizes = [_poly.subtract(polys[coordinate + 2], polys[coordinate]) for coordinate in (0, 1)]
    symbols = [_alone(poly, indices) for poly in (*centers, *sizes)]
    if None in symbols or any(len(poly) != 1 or poly[0][1] < 0 for poly in (*centers, *sizes)):
        return False
    listed = [symbol for symbol in symbols if symbol is not None]
    same = [_renamed(poly, symbol) for poly, symbol in zip((*centers, *sizes), listed, strict=True)]
    return _order(listed, indices) == [0, 1, 2, 3] and same[0] == same[2] and same[1] == same[3]


def _yolo(polys: Sequence[Poly], indices: dict[int, tuple[int, ...]]) -> bool:
    """Tell whether centers are linear in a prediction each, and sizes an exponential or a square of one."""
    symbols = [_alone(poly, indices) for poly in polys]
    if None in symbols or any(len(poly) != 1 for poly in polys[2:]):
        return False
    listed = [symbol for symbol in symbols if symbol is not None]
    linear = all(
        [atom for key, _ in _split(poly, symbol)[0] for atom in key].count(("x", symbol)) == 1
        for poly, symbol in zip(polys[:2], listed[:2], strict=True)
    )
    grown = all(
        any(atom[0] == "exp" for atom in poly[0][0]) or poly[0][0].count(("x", symbol)) == 2
        for poly, symbol in zip(polys[2:], listed[2:], strict=True)
    )
    return linear and grown and _order(listed, indices) == [0, 1, 2, 3]


FORMS: dict[str, Callable[[Sequence[Poly], dict[int, tuple[int, ...]]], bool]] = {
    "ltrb": _ltrb,
    "tblr": _tblr,
    "cxcywh": _cxcywh,
    "yolo": _yolo,
}
