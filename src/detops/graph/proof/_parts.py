"""Corners that a graph bounds before it joins them, as MMDeploy's exporter writes it: the bounds stay in the graph.

What is proved is that the corners, joined without the bounds, are the decode. The nodes that join them so are made for
the proof only. In the fused graph, the corners are cut out of the node's output, and reach their bounds as before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from detops.graph.model._graph import Graph, Node
from detops.graph.ops._evaluate import BOUNDED

JOINED = (2, 4)  # halves, or single coordinates
_SCALED = frozenset({"Mul", "Div"})


@dataclass(frozen=True)
class Parts:
    """The corners under their bounds, in the order in which they are joined."""

    join: Node
    tensors: tuple[str, ...]
    axis: int  # along which they are joined
    sizes: tuple[int, ...]  # along that axis
    inserted: bool  # they have one coordinate each, and get that axis only after the bounds


@dataclass(frozen=True)
class _Part:
    """One corner: the tensor under its bounds, and what stands between the bounds and the join."""

    tensor: str
    moves: tuple[Node, ...]  # from the join upstream
    bounded: bool


def find_parts(graph: Graph, join: Node) -> Parts | None:
    """Return the corners that are bounded before a join, or None where there are none."""
    if graph.dialect != "onnx" or join.op != "Concat" or len(join.inputs) not in JOINED:
        return None
    parts = [_part(graph, name) for name in join.inputs]
    inserted = {_is_inserted(graph, part, join) for part in parts}
    tensors = tuple(part.tensor for part in parts)
    if None in inserted or len(inserted) > 1 or not any(part.bounded for part in parts):
        return None
    if len(set(tensors)) < len(tensors) or any(name not in graph.producer for name in tensors):
        return None
    axis = join.attributes.get("axis", 1)
    sizes = [1 if True in inserted else _size(graph, name, axis) for name in tensors]
    known = tuple(size for size in sizes if size is not None)
    return Parts(join, tensors, axis, known, True in inserted) if len(known) == len(sizes) else None


def _size(graph: Graph, tensor: str, axis: int) -> int | None:
    shape = graph.info(tensor).shape
    return None if shape is None or not -len(shape) <= axis < len(shape) else shape[axis]


def joined(graph: Graph, parts: Parts) -> tuple[Graph, str]:
    """Return the graph with the corners joined without their bounds, and the name of the result."""
    result = graph.free_name(parts.join.outputs[0], "_unbounded")
    made: list[Node] = []
    inputs: list[str] = []
    for index, name in enumerate(parts.join.inputs):
        source = parts.tensors[index]
        for node in reversed(_part(graph, name).moves):
            made.append(_rewired(node, (source, *node.inputs[1:]), f"{result}_{index}_{len(made)}"))
            source = made[-1].outputs[0]
        inputs.append(source)
    made.append(_rewired(parts.join, inputs, result))
    return graph.with_nodes(made), result


def _part(graph: Graph, name: str) -> _Part:
    """Follow one input of a join upstream: through what adds an axis, then through the bounds."""
    moves: list[Node] = []
    node = graph.producer.get(name)
    while node is not None and node.op in ("Unsqueeze", "Identity") and node.inputs:
        moves.append(node)
        name = node.inputs[0]
        node = graph.producer.get(name)
    unbounded, bounded = name, False
    while node is not None and (node.op in BOUNDED or node.op in _SCALED) and node.inputs:
        bounded |= node.op in BOUNDED
        name = _data(graph, node)
        node = graph.producer.get(name)
    return _Part(name if bounded else unbounded, tuple(moves), bounded)


def _data(graph: Graph, node: Node) -> str:
    """Return the input of a bound or a factor that is bounded: the one that isn't a constant or a scalar."""
    varying = [name for name in node.inputs if name and graph.constant(name) is None]
    return next((name for name in varying if graph.info(name).shape not in ((), (1,))), node.inputs[0])


def _is_inserted(graph: Graph, part: _Part, join: Node) -> bool | None:
    """Tell whether the axis of a join is inserted after the bounds; None where something else is done there."""
    inserting = [node for node in part.moves if node.op == "Unsqueeze"]
    if not inserting:
        return False
    node, shape = inserting[0], graph.info(part.tensor).shape
    listed = graph.constant(node.inputs[1]) if len(node.inputs) > 1 else node.attributes.get("axes")
    axes = np.asarray([] if listed is None else listed)
    if len(inserting) > 1 or shape is None or axes.shape != (1,):
        return None
    normalized = [int(axis) % (len(shape) + 1) for axis in (axes[0], join.attributes.get("axis", 1))]
    return True if normalized[0] == normalized[1] else None


def _rewired(node: Node, inputs: tuple[str, ...] | list[str], output: str) -> Node:
    """Return a copy of a node that stands in no file, with other inputs and another output."""
    raw = type(node.raw)()
    raw.CopyFrom(node.raw)
    del raw.input[:], raw.output[:]
    raw.input.extend(inputs)
    raw.output.append(output)
    return replace(node, inputs=tuple(inputs), outputs=(output,), raw=raw, index=-1, position=-1)
