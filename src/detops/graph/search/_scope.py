"""The scope rule of ScopeDecodeBboxPass: which operators a TensorFlow scope holds, and how many of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from detops.graph.model._graph import Graph, Node

# operator -> what its count in the scope, and in all scopes below, must be a multiple of
COUNTS = {"Reshape": 3, "Split": 2, "Minimum": 1, "Add": 3, "ConcatV2": 1, "Sub": 2}
EXCLUDED = ("Greater", "Squeeze", "Gather_2", "TopKV2", "boolean_mask")
SAME = {"AddV2": "Add"}  # what TensorFlow 1.15 and later write


def common_scope(nodes: Iterable[Node]) -> str:
    """Return the deepest scope that holds all nodes with a name."""
    scopes = [node.name.strip("/").split("/")[:-1] for node in nodes if node.name]
    if not scopes:
        return ""
    common: list[str] = []
    for parts in zip(*scopes, strict=False):
        if len(set(parts)) > 1:
            break
        common.append(parts[0])
    return "/".join(common)


def nodes_in(graph: Graph, scope: str) -> list[Node]:
    """Return the nodes of a scope and of all scopes below it."""
    return [node for node in graph.nodes if not scope or node.name.startswith(f"{scope}/")]


def excluded(nodes: Sequence[Node], scope: str) -> list[str]:
    """Return what the scope holds of the exclusion list (operators, and the names Gather_2 and boolean_mask)."""
    held = {node.op for node in nodes}
    for node in nodes:
        held |= set(node.name[len(scope) :].split("/"))
    return [name for name in EXCLUDED if name in held]


def counts_fit(nodes: Sequence[Node]) -> bool:
    """Tell whether the operators in a scope are as many as the rule asks for."""
    counts = Counter(SAME.get(node.op, node.op) for node in nodes)
    return all(counts[name] and counts[name] % multiple == 0 for name, multiple in COUNTS.items())


def fitting_scopes(graph: Graph) -> dict[str, list[Node]]:
    """Return the scopes whose counts fit with their nodes, deepest first; a parent of one that fits isn't one again."""
    members: dict[str, list[Node]] = {}
    for node in graph.nodes:
        parts = node.name.split("/")[:-1]
        for depth in range(1, min(len(parts), 32) + 1):
            members.setdefault("/".join(parts[:depth]), []).append(node)
    found: dict[str, list[Node]] = {}
    parents: set[str] = set()
    for scope in sorted(members, key=lambda name: (-name.count("/"), name)):
        if scope not in parents and not excluded(members[scope], scope) and counts_fit(members[scope]):
            found[scope] = members[scope]
            parents |= parents_of(scope)
    return found


def parents_of(scope: str) -> set[str]:
    """Return the scopes that hold a scope."""
    parts = scope.split("/")
    return {"/".join(parts[:depth]) for depth in range(1, len(parts))}
