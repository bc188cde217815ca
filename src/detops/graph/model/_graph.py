"""One small read-only view of a dataflow graph, filled by the ONNX and the TensorFlow reader."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Dialect = Literal["onnx", "tensorflow"]
Shape = tuple[int | None, ...]

MAX_CONSTANT = 1 << 22  # elements; a larger constant is never a parameter of a decode


@dataclass(frozen=True)
class TensorInfo:
    """Facts about a tensor that are known without running the graph; None for unknown."""

    dtype: np.dtype[Any] | None = None
    shape: Shape | None = None


@dataclass(eq=False, slots=True)
class Node:
    """One operation: tensor names in and out, attributes decoded on demand."""

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    raw: Any
    read_attributes: Callable[[Any], Mapping[str, Any]]
    version: int = 0
    control: tuple[str, ...] = ()  # names of nodes that must run first (TensorFlow)
    hidden: tuple[str, ...] = ()  # tensors that the bodies of If and Loop read (ONNX)
    index: int = field(default=-1)  # in the file
    position: int = field(default=-1)  # in topological order; Graph sets both
    _attributes: Mapping[str, Any] | None = field(default=None, repr=False)

    @property
    def attributes(self) -> Mapping[str, Any]:
        """The attributes as Python and NumPy values."""
        if self._attributes is None:
            self._attributes = self.read_attributes(self.raw)
        return self._attributes

    @property
    def label(self) -> str:
        """The node's name, or its first output where it has none."""
        return self.name or (self.outputs[0] if self.outputs else "?")


class Graph:
    """A graph (or a body of If or Loop) in topological order, with the maker and the readers of each tensor."""

    def __init__(
        self,
        dialect: Dialect,
        nodes: Iterable[Node],
        *,
        outputs: Iterable[str],
        known: Callable[[str], bool],
        constant: Callable[[str], NDArray[Any] | None],
        info: Callable[[str], TensorInfo],
        raw: Any,
        loop_ops: frozenset[str] = frozenset(),
    ) -> None:
        self.dialect = dialect
        self.raw = raw
        self.outputs = frozenset(outputs)
        self.info = info
        self._read_constant = constant
        self._constants: dict[str, NDArray[Any] | None] = {}
        listed = list(nodes)
        for index, node in enumerate(listed):
            node.index = index
        self.producer: dict[str, Node] = {}
        for node in listed:
            for output in node.outputs:
                if output and self.producer.setdefault(output, node) is not node:
                    raise ValueError(f"model: two nodes make the tensor {output!r}")
        self.readers: dict[str, list[Node]] = {}
        self.waiters: dict[str, list[Node]] = {}
        for node in listed:
            tensors = node.inputs if len(node.inputs) < 2 else dict.fromkeys(node.inputs)
            for tensor in dict.fromkeys((*tensors, *node.hidden)) if node.hidden else tensors:
                if not tensor:
                    continue
                if tensor not in self.producer and not known(tensor):
                    raise ValueError(f"model: node {node.label!r} reads {tensor!r}, which nothing makes")
                self.readers.setdefault(tensor, []).append(node)
            for name in node.control:
                self.waiters.setdefault(name, []).append(node)
        self.nodes = self._ordered(listed, loop_ops)

    def _ordered(self, nodes: list[Node], loop_ops: frozenset[str]) -> list[Node]:
        """Sort topologically, close to the file's order; the back edges of a loop start at `loop_ops`."""
        if self._is_ordered(nodes, loop_ops):
            for node in nodes:
                node.position = node.index
            return nodes
        by_name = {node.name: node for node in nodes}
        missing: list[int] = []
        following: dict[int, list[int]] = {}
        for index, node in enumerate(nodes):
            makers = set(self._makers(node, by_name, loop_ops))
            missing.append(len(makers))
            for maker in makers:
                following.setdefault(maker.index, []).append(index)
        ready = [index for index, count in enumerate(missing) if not count]
        heapq.heapify(ready)
        ordered: list[Node] = []
        while ready:
            index = heapq.heappop(ready)
            nodes[index].position = len(ordered)
            ordered.append(nodes[index])
            for reader in following.get(index, ()):
                missing[reader] -= 1
                if not missing[reader]:
                    heapq.heappush(ready, reader)
        if len(ordered) < len(nodes):
            stuck = next(node for index, node in enumerate(nodes) if missing[index])
            raise ValueError(f"model: the graph has a cycle through node {stuck.label!r}")
        return ordered

    def _is_ordered(self, nodes: list[Node], loop_ops: frozenset[str]) -> bool:
        """Tell whether the file's order is topological, as ONNX wants it."""
        controlled = any(node.control for node in nodes)
        by_name = {node.name: node for node in nodes} if controlled else {}
        return all(maker.index < node.index for node in nodes for maker in self._makers(node, by_name, loop_ops))

    def _makers(self, node: Node, by_name: Mapping[str, Node], loop_ops: frozenset[str]) -> Iterator[Node]:
        """Yield the nodes that must run before a node."""
        for name in (*node.inputs, *node.hidden) if node.hidden else node.inputs:
            maker = self.producer.get(name)
            if maker is not None and maker.op not in loop_ops:
                yield maker
        for name in node.control:
            maker = by_name.get(name)
            if maker is not None and maker.op not in loop_ops:
                yield maker

    def with_nodes(self, nodes: Iterable[Node]) -> Graph:
        """Return the graph with some nodes more, which stand in no file, behind all others."""
        wider = copy(self)
        wider.nodes = list(self.nodes)
        wider.producer = dict(self.producer)
        wider.readers = dict(self.readers)
        for node in nodes:
            node.position = len(wider.nodes)
            wider.nodes.append(node)
            wider.producer.update((output, node) for output in node.outputs)
            for tensor in dict.fromkeys(filter(None, node.inputs)):
                wider.readers[tensor] = [*wider.readers.get(tensor, ()), node]
        return wider

    def free_name(self, tensor: str, suffix: str) -> str:
        """Return a name for a new tensor, after that of another one: `boxes_rows` for `boxes`, also before a port."""
        node, port = (tensor.partition(":")[0], ":0") if self.dialect == "tensorflow" else (tensor, "")
        name = f"{node}{suffix}"
        while f"{name}{port}" in self.producer or f"{name}{port}" in self.readers:
            name += "_"
        return f"{name}{port}"

    def constant(self, tensor: str) -> NDArray[Any] | None:
        """Return the value of a constant, or None where it is none, too large, or its data isn't at hand."""
        if tensor not in self._constants:
            self._constants[tensor] = self._read_constant(tensor)
        return self._constants[tensor]
