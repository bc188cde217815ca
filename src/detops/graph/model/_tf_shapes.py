"""Shape inference for GraphDefs: as much as it takes to know the ranks of what enters a box decode.

A shape follows from the operators and from the shapes of placeholders and constants. What the attribute
``_output_shapes`` says may be stale, and counts only for operators that have no rule here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from detops.graph.model._graph import Shape
from detops.graph.model._tf_rules import RULES, VALUES, Given, Known
from detops.graph.model._tf_tensors import shape_of, tensor_name


class Shapes:
    """The shapes of a GraphDef's tensors, worked out when they are asked for."""

    def __init__(self, by_name: Mapping[str, Any]) -> None:
        self._nodes = by_name
        self._known: dict[str, Known | None] = {}  # None while the nodes before it are worked out

    def of(self, tensor: str) -> Shape | None:
        """Return the shape of a tensor; None for an unknown rank."""
        pending = [tensor.partition(":")[0]]
        while pending:
            name = pending[-1]
            sources = [source.partition(":")[0] for source in _data(self._nodes.get(name))]
            fresh = [source for source in sources if source not in self._known]
            if name not in self._known and fresh:
                self._known[name] = None
                pending += fresh
                continue
            pending.pop()
            if self._known.get(name) is None:
                self._known[name] = self._work_out(self._nodes.get(name))
        return self._read(tensor).shapes[0]

    def _read(self, tensor: str) -> Known:
        name, _, port = tensor_name(tensor).partition(":")
        known = self._known.get(name)
        if known is None or not port.isdigit() or int(port) >= len(known.shapes):
            return Known([None])
        return Known([known.shapes[int(port)]], known.value if port == "0" else None)

    def _work_out(self, node: Any) -> Known:
        given = Given(node, [self._read(source) for source in _data(node)])
        if node is None or node.op not in RULES:
            stated = (
                node.attr["_output_shapes"].list.shape if node is not None and "_output_shapes" in node.attr else ()
            )
            return Known([shape_of(shape) for shape in stated])
        result, value = _attempt(RULES[node.op], given), _attempt(VALUES.get(node.op), given)
        return Known(result if isinstance(result, list) else [result], value)


def _attempt(rule: Callable[[Given], Any] | None, given: Given) -> Any:
    """Apply a rule; None where there is none, where too little is known, or where the node is malformed."""
    try:
        return None if rule is None else rule(given)
    except (LookupError, ValueError, ArithmeticError):
        return None


def _data(node: Any) -> list[str]:
    return [] if node is None else [name for name in node.input if not name.startswith("^")]
