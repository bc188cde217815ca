"""Replaces proved subgraphs by one node each; what is dead afterwards goes, and everything else stays as it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from detops.graph.model._graph import Graph, Node
from detops.graph.proof._prove import Proof


@dataclass(frozen=True)
class Plan:
    """The changes that a rewrite makes to one graph."""

    graph: Graph
    proofs: dict[int, Proof]  # by the position of the node that made the (first) output and now gives way
    dead: frozenset[int]  # positions of all nodes that go, without the ones above
    unread: frozenset[str]  # tensors that only nodes that go have read or made


def plan(graph: Graph, proofs: Sequence[Proof]) -> Plan:
    """Find out which nodes die once each proof's output comes from a new node."""
    replaced = {min(graph.producer[name].position for name in proof.ends): proof for proof in proofs}
    gone = set(replaced)
    needed = {tensor for proof in proofs for tensor in (proof.box_predictions, proof.anchors)}
    anew = {tensor for proof in proofs for tensor in proof.ends}
    pending = sorted({node.position for proof in proofs for node in proof.held} - gone)
    pending += [position for output in replaced for position in _makers(graph, graph.nodes[output])]
    dead: set[int] = set()
    while pending:
        position = pending.pop()
        node = graph.nodes[position]
        if position in gone or not _is_dead(graph, node, gone, needed, anew):
            continue
        gone.add(position)
        dead.add(position)
        pending += _makers(graph, node)
    touched = {name for position in gone for name in (*graph.nodes[position].inputs, *graph.nodes[position].outputs)}
    kept = needed | graph.outputs | anew
    unread = {
        name
        for name in touched - kept
        if name and all(reader.position in gone for reader in graph.readers.get(name, ()))
    }
    unread -= {output for node in graph.nodes if node.position not in gone for output in node.outputs}
    return Plan(graph, replaced, frozenset(dead), frozenset(unread))


def _makers(graph: Graph, node: Node) -> list[int]:
    return [graph.producer[name].position for name in node.inputs if name in graph.producer]


def _is_dead(graph: Graph, node: Node, gone: set[int], needed: set[str], anew: set[str]) -> bool:
    """Tell whether nothing that stays needs a node; what is made anew doesn't count."""
    if any(waiter.position not in gone for waiter in graph.waiters.get(node.name, ())):
        return False
    for output in set(node.outputs) - anew:
        if output in needed or output in graph.outputs:
            return False
        if any(reader.position not in gone for reader in graph.readers.get(output, ())):
            return False
    return True
