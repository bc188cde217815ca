"""Finds what might be a box decode: where an exponential is, what feeds it, and where its corners are joined."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from detops.graph._finding import Refusal
from detops.graph.model._graph import Graph, Node
from detops.graph.ops._evaluate import BOUNDED, operator_of
from detops.graph.symbols._expressions import NODE, Budget

REACH = 96  # nodes that are looked at downstream of an exponential
JOINS = frozenset({"Concat", "ConcatV2", "Pack", "ScatterND"})
PRODUCTS = frozenset({"Mul"})
SUMS = frozenset({"Add", "AddV2", "Sum", "AddN", "Sub"})
MAX_CHOICES = 12


@dataclass(frozen=True)
class Candidate:
    """A node where corners are joined, with the tensors that the proof may take as inputs and output."""

    exponentials: tuple[Node, ...]
    join: Node
    predictions: tuple[str, ...]  # from the farthest from the join to the nearest
    anchors: tuple[str, ...]
    targets: tuple[str, ...]  # from the farthest downstream to the join itself


@dataclass(frozen=True)
class Seed:
    """A join that an exponential or two lead to."""

    join: Node
    exponentials: tuple[Node, ...]

    @property
    def bare(self) -> Candidate:
        """The candidate as far as it is known without a search."""
        return Candidate(self.exponentials, self.join, (), (), (self.join.outputs[0],))


def find_seeds(graph: Graph, budget: Budget) -> Iterator[Seed]:
    """Yield where candidates may be, in the order of the joins; end with a Refusal where they are too many."""
    exponentials = [
        node
        for node in graph.nodes
        if node.op == "Exp" and node.inputs and node.inputs[0] and node.outputs and _varies(graph, node.outputs[0])
    ]
    joins: dict[int, list[Node]] = {}
    later: dict[int, set[int]] = {}  # those whose predictions or anchors an exponential leads to
    refused: Refusal | None = None
    try:
        readers: dict[str, list[int]] = {}
        for node in exponentials:
            for tensor in {node.inputs[0], *_multipliers(graph, node, budget)}:
                readers.setdefault(tensor, []).append(node.position)
        for node in exponentials:
            after = list(_downstream(graph, node.outputs[0], budget))
            made = (readers.get(output, ()) for reader in after for output in reader.outputs)
            joined = _joins(after)
            if joined:
                later[node.position] = _gathered(made, budget)
            for join in joined:
                joins.setdefault(join.position, []).append(node)
    except Refusal as refusal:
        refused = refusal
    for position, reaching in sorted(joins.items()):
        positions = {node.position for node in reaching}
        nearest = [node for node in reaching if positions.isdisjoint(later[node.position])]
        if len(nearest) <= 2:
            yield Seed(graph.nodes[position], tuple(nearest))
    if refused is not None:
        raise refused


def _gathered(lists: Iterable[Sequence[int]], budget: Budget) -> set[int]:
    found: set[int] = set()
    for listed in lists:
        budget.spend(len(listed))
        found.update(listed)
    return found


def candidate_at(graph: Graph, seed: Seed, budget: Budget) -> Candidate:
    """Return what the proof may take as inputs and output of the decode that ends at a join."""
    sizes = [size for node in seed.exponentials for size in _multipliers(graph, node, budget)]
    entries = [node.inputs[0] for node in seed.exponentials]
    return Candidate(
        exponentials=seed.exponentials,
        join=seed.join,
        predictions=tuple(reversed(bottlenecks(graph, entries, budget))),
        anchors=tuple(reversed(bottlenecks(graph, sizes, budget))),
        targets=tuple(reversed(_extensions(graph, seed.join.outputs[0]))),
    )


def _varies(graph: Graph, tensor: str) -> bool:
    return bool(tensor) and (graph.constant(tensor) is None or _may_be_anchors(graph, tensor))


def _may_be_anchors(graph: Graph, tensor: str) -> bool:
    """Tell whether a constant is a table of boxes rather than a parameter."""
    value = graph.constant(tensor)
    return value is not None and value.ndim >= 2 and 4 in value.shape and value.size >= 8 and value.dtype.kind == "f"


def _data_inputs(graph: Graph, tensor: str) -> tuple[str, ...] | None:
    """Return the varying tensors that a tensor's elements come from; None where it enters from elsewhere."""
    node = graph.producer.get(tensor)
    operator = operator_of(graph, node)
    if node is None or operator is None or operator.kind == "constant" or graph.constant(tensor) is not None:
        return None
    if operator.kind == "shape":
        return ()
    data = operator.data_inputs(node)
    if any(name not in data and name and _feeds(graph, name) for name in node.inputs):
        return None  # an index or a size that other data decides
    sources = tuple(name for name in data if _feeds(graph, name))
    if node.op in BOUNDED and len(sources) > 1:  # a bound that isn't constant: follow the boxes, not the bound
        sources = tuple(name for name in sources if graph.info(name).shape != ())[:1] or sources[:1]
    return sources


def _feeds(graph: Graph, tensor: str) -> bool:
    """Tell whether a tensor carries data, as against constants and sizes (looking a few nodes up)."""
    pending, seen = [tensor], 0
    while pending:
        name = pending.pop()
        seen += 1
        if not _varies(graph, name):
            continue
        node = graph.producer.get(name)
        operator = operator_of(graph, node)
        if node is None or operator is None or seen > 16 or graph.constant(name) is not None:
            return True
        if operator.kind == "constant":
            pending += [source for source in node.inputs if source]
        elif operator.kind != "shape":
            pending += operator.data_inputs(node)
    return False


def bottlenecks(graph: Graph, roots: Sequence[str], budget: Budget) -> list[str]:
    """Return the tensors that everything in `roots` comes through, from the nearest to the farthest."""
    open_tensors = set(roots)
    heap = [(-_depth(graph, tensor), tensor) for tensor in open_tensors]
    heapq.heapify(heap)
    found: list[str] = []
    while heap and len(found) < MAX_CHOICES:
        if len(open_tensors) == 1:
            found.append(next(iter(open_tensors)))
        tensor = heapq.heappop(heap)[1]
        budget.spend(_cost(graph.producer.get(tensor)))
        sources = _data_inputs(graph, tensor)
        if sources is None:
            if len(open_tensors) > 1:
                break  # one leaf among several: nothing upstream is common to all
            continue
        open_tensors.discard(tensor)
        for source in sources:
            if source not in open_tensors:
                open_tensors.add(source)
                heapq.heappush(heap, (-_depth(graph, source), source))
    return found


def _depth(graph: Graph, tensor: str) -> int:
    node = graph.producer.get(tensor)
    return -1 if node is None else node.position


def _cost(node: Node | None) -> int:
    return NODE if node is None else NODE * (1 + len(node.inputs))


def _downstream(graph: Graph, start: str, budget: Budget) -> Iterator[Node]:
    """Yield the nodes that a tensor's data flows into, as far as the proof knows the operators."""
    pending, seen = [start], set[int]()
    while pending and len(seen) < REACH:
        for reader in graph.readers.get(pending.pop(0), ()):
            budget.spend(NODE)
            operator = operator_of(graph, reader)
            if operator is None or reader.position in seen or operator.kind not in ("move", "arithmetic"):
                continue
            seen.add(reader.position)
            yield reader
            pending += reader.outputs


def _joins(after: Sequence[Node]) -> list[Node]:
    """Return the joins downstream of an exponential that is multiplied, then added or subtracted."""
    if not any(node.op in PRODUCTS for node in after) or not any(node.op in SUMS for node in after):
        return []
    return [node for node in after if node.op in JOINS]


def _multipliers(graph: Graph, exponential: Node, budget: Budget) -> list[str]:
    """Return what the exponential is multiplied by: the size of the anchor."""
    pending, seen = [exponential.outputs[0]], set[str]()
    while pending and len(seen) < REACH:
        tensor = pending.pop(0)
        seen.add(tensor)
        for reader in graph.readers.get(tensor, ()):
            budget.spend(NODE)
            operator = operator_of(graph, reader)
            if operator is None or operator.kind not in ("move", "arithmetic"):
                continue
            others = (name for name in operator.data_inputs(reader) if name != tensor and _feeds(graph, name))
            if reader.op in PRODUCTS and (factors := list(others)):
                return factors
            if next(others, None) is None:
                pending += [name for name in reader.outputs if name not in seen]
    return []


def _extensions(graph: Graph, tensor: str) -> list[str]:
    """Follow an output through movement, as long as nothing else reads what lies on the way."""
    found = [tensor]
    while len(found) < MAX_CHOICES:
        readers = graph.readers.get(found[-1], [])
        if len(readers) != 1 or found[-1] in graph.outputs or len(readers[0].outputs) != 1:
            break
        operator = operator_of(graph, readers[0])
        if operator is None or operator.kind != "move" or operator.data_inputs(readers[0]) != (found[-1],):
            break
        if readers[0].op == "Identity" and graph.dialect == "tensorflow" and readers[0].outputs[0] in graph.outputs:
            break  # an Identity at the end of a GraphDef is a name that its users gave, beside that of the decode
        found.append(readers[0].outputs[0])
    return found
