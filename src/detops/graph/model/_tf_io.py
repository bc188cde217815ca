"""Reads TensorFlow GraphDefs into the graph view, without TensorFlow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detops.graph.model._graph import Graph, Node, TensorInfo
from detops.graph.model._tf_rules import MAX_PIECES
from detops.graph.model._tf_schema import messages
from detops.graph.model._tf_shapes import Shapes
from detops.graph.model._tf_tensors import dtype_of, tensor_name, tensor_value

# the number of outputs where it isn't one; a name stands for the attribute that counts them
_NUM_OUTPUTS: dict[str, int | str] = {
    "Split": "num_split",
    "SplitV": "num_split",
    "Unpack": "num",
    "ShapeN": "N",
}

CONSTANT_OPS = frozenset({"Const", "HostConst"})


def read_graph(graph_def: Any, fed: Iterable[str] = (), read_too: Iterable[str] = ()) -> Graph:
    """Return the view of a GraphDef's main graph.

    `fed` are tensors that users give whatever makes them, and `read_too` are tensors or nodes that they ask for.
    """
    by_name: dict[str, Any] = {}
    for node in graph_def.node:
        if not node.name or not node.op:
            raise ValueError("model: the GraphDef holds a node without a name or an operation")
        if by_name.setdefault(node.name, node) is not node:
            raise ValueError(f"model: two nodes are called {node.name!r}")
    given = {name.partition(":")[0] for name in fed}
    known_nodes = by_name | {
        name: _placeholder(by_name[name]) for name in given if name in by_name and by_name[name].op != "Placeholder"
    }
    read: dict[str, int] = {}  # the last port of each node that is read
    references = [tuple(node.input) for node in graph_def.node]
    for node_name, listed in zip(by_name, references, strict=True):
        for reference in listed:
            name, _, port = reference.removeprefix("^").partition(":")
            if name not in by_name:
                raise ValueError(f"model: node {node_name!r} reads {reference!r}, which nothing makes")
            read[name] = max(read.get(name, 0), int(port) if port.isdigit() else 0)
    nodes = [
        Node(
            name=name,
            op=known_nodes[name].op,
            inputs=tuple(tensor_name(reference) for reference in listed if reference[0] != "^"),
            outputs=tuple(f"{name}:{port}" for port in range(max(_num_outputs(node), read.get(name, 0) + 1))),
            raw=node,
            read_attributes=_attributes,
            control=tuple(reference[1:] for reference in listed if reference[0] == "^"),
        )
        for (name, node), listed in zip(by_name.items(), references, strict=True)
    ]
    shapes = Shapes(known_nodes)
    return Graph(
        "tensorflow",
        nodes,
        outputs=[f"{name}:0" for name in by_name if name not in read]
        + [tensor_name(name) for name in (*fed, *read_too)],
        known=lambda _: False,
        constant=lambda tensor: _constant(known_nodes, tensor),
        info=lambda tensor: TensorInfo(_node_dtype(known_nodes.get(tensor.partition(":")[0])), shapes.of(tensor)),
        raw=graph_def,
        loop_ops=frozenset({"NextIteration", "RefNextIteration"}),
    )


def _placeholder(node: Any) -> Any:
    """Return what is known of a node whose value is given: its type."""
    placeholder, dtype = messages()["NodeDef"](name=node.name, op="Placeholder"), _type_number(node)
    if dtype:
        placeholder.attr["dtype"].type = dtype
    return placeholder


def _num_outputs(node: Any) -> int:
    count = _NUM_OUTPUTS.get(node.op, 1)
    if isinstance(count, str):
        count = int(node.attr[count].i) if count in node.attr else 1
    return min(max(count, 1), MAX_PIECES)


def _constant(by_name: Mapping[str, Any], tensor: str) -> NDArray[Any] | None:
    node = by_name.get(tensor.partition(":")[0])
    if node is None or node.op not in CONSTANT_OPS or "value" not in node.attr:
        return None
    return tensor_value(node.attr["value"].tensor)


def _node_dtype(node: Any) -> np.dtype[Any] | None:
    number = None if node is None else _type_number(node)
    return None if number is None else dtype_of(number)


def _type_number(node: Any) -> int | None:
    for name in ("DstT", "dtype", "T") if node.op != "Shape" else ("out_type",):
        if name in node.attr:
            return int(node.attr[name].type)
    return None


def _attributes(node: Any) -> Mapping[str, Any]:
    values: dict[str, Any] = {}
    for name, value in node.attr.items():
        kind = value.WhichOneof("value")
        if kind in ("i", "f", "b", "s"):
            values[name] = getattr(value, kind)
        elif kind == "type":
            values[name] = dtype_of(value.type)
        elif kind == "list":
            values[name] = list(value.list.i)
    return values
