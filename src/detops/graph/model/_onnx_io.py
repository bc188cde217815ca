"""Reads ONNX models into the graph view. The protobuf itself is what gets rewritten, so nothing in it is lost."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detops.graph.model._graph import MAX_CONSTANT, Graph, Node, TensorInfo
from detops.onnx._functions import bodies
from detops.onnx._shapes import STANDARD, entries_in, has_defaults, holders, inferred


def read_graphs(model: Any, directory: str | None) -> list[Graph]:
    """Return the main graph and the bodies of all If, Loop and Scan nodes, as views of `model`."""
    if not model.HasField("graph"):
        raise ValueError("model: the ONNX model holds no graph")
    versions = {opset.domain: opset.version for opset in model.opset_import}
    outer = _Outer(versions.get("", versions.get("ai.onnx", 1)), directory, has_defaults(model))
    graphs: list[Graph] = []
    pending = [(model.graph, inferred(model), outer)]
    while pending:
        proto, typed, surroundings = pending.pop()
        scope = _Scope(proto, typed, surroundings)
        graphs.append(scope.view())
        for index in scope.holders:
            # shape inference has no bodies where names mean one thing inside and another one outside
            pairs = zip(bodies(proto.node[index]), bodies(typed.node[index]), strict=False)
            pending += [(body, other, scope) for body, other in pairs]
    return graphs


class _Outer:
    """Surroundings of the main graph: nothing but the opset and the folder of external data."""

    def __init__(self, opset: int, directory: str | None, defaults: bool) -> None:
        self.opset = opset
        self.directory = directory
        self.defaults = defaults  # from IR version 4 on, an initializer that is also an input can be replaced

    def known(self, tensor: str) -> bool:
        return False

    def constant(self, tensor: str) -> NDArray[Any] | None:
        return None

    def info(self, tensor: str) -> TensorInfo:
        return TensorInfo()


class _Scope(_Outer):
    """One GraphProto with the names that it and its surroundings define."""

    def __init__(self, proto: Any, typed: Any, outer: _Outer) -> None:
        super().__init__(outer.opset, outer.directory, outer.defaults)
        self.proto = proto
        self.outer = outer
        self.initializers = {tensor.name: tensor for tensor in proto.initializer}
        self.holders = holders(proto)
        self.nodes = [
            Node(
                name=node.name,
                op=node.op_type if node.domain in STANDARD else f"{node.domain}::{node.op_type}",
                inputs=tuple(node.input),
                outputs=tuple(node.output),
                raw=node,
                read_attributes=_attributes,
                version=self.opset,
            )
            for node in proto.node
        ]
        self.constants = {node.outputs[0]: node.raw for node in self.nodes if node.op == "Constant" and node.outputs}
        self.infos = {value.name: value.type for value in (*typed.input, *typed.value_info)}
        self.inputs = {value.name for value in proto.input}
        self.names = entries_in(proto) | {output for node in self.nodes for output in node.outputs if output}

    def known(self, tensor: str) -> bool:
        return tensor in self.names or self.outer.known(tensor)

    def constant(self, tensor: str) -> NDArray[Any] | None:
        if tensor in self.initializers:
            return None if self._is_default(tensor) else _tensor_value(self.initializers[tensor], self.directory)
        if tensor in self.constants:
            return _constant_node_value(self.constants[tensor], self.directory)
        return None if tensor in self.names else self.outer.constant(tensor)

    def info(self, tensor: str) -> TensorInfo:
        if tensor in self.initializers and not self._is_default(tensor):
            proto = self.initializers[tensor]
            return TensorInfo(_dtype(proto.data_type), tuple(proto.dims))
        if tensor in self.infos:
            return _type_info(self.infos[tensor])
        return TensorInfo() if tensor in self.names else self.outer.info(tensor)

    def _is_default(self, tensor: str) -> bool:
        return self.defaults and tensor in self.inputs

    def view(self) -> Graph:
        for index in self.holders:
            node = self.nodes[index]
            node.hidden = tuple(name for name in _free_names(node.raw) if self.known(name))
        outputs = [value.name for value in self.proto.output]
        texts = (text for node in self.nodes for text in (node.name, node.op, *node.inputs, *node.outputs))
        try:
            "".join(chain(outputs, texts))
        except TypeError as error:
            raise ValueError("model: a name in the graph is no UTF-8 text") from error
        for name in outputs:
            if not self.known(name):
                raise ValueError(f"model: the graph output {name!r} is made by nothing")
        return Graph(
            "onnx",
            self.nodes,
            outputs=outputs,
            known=self.known,
            constant=self.constant,
            info=self.info,
            raw=self.proto,
        )


def _free_names(node: Any) -> Iterator[str]:
    """Yield every name that the node's bodies read, also their own: some runtimes take an outer one of that name."""
    pending = list(bodies(node))
    while pending:
        body = pending.pop()
        for inner in body.node:
            yield from (name for name in inner.input if name and name not in node.output)
            pending += bodies(inner)
        yield from (value.name for value in body.output if value.name and value.name not in node.output)


def _dtype(element_type: int) -> np.dtype[Any] | None:
    import onnx

    try:
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(element_type))
    except (KeyError, ValueError, TypeError):
        return None
    return dtype if dtype.kind in "fiub" else None


def _type_info(type_proto: Any) -> TensorInfo:
    if not type_proto.HasField("tensor_type"):
        return TensorInfo()
    tensor = type_proto.tensor_type
    shape = None
    if tensor.HasField("shape"):
        shape = tuple(dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim)
    return TensorInfo(_dtype(tensor.elem_type), shape)


def _tensor_value(tensor: Any, directory: str | None) -> NDArray[Any] | None:
    import onnx

    if any(not 0 <= dim <= MAX_CONSTANT for dim in tensor.dims) or math.prod(tensor.dims) > MAX_CONSTANT:
        return None
    if _dtype(tensor.data_type) is None:
        return None
    external = tensor.data_location == onnx.TensorProto.EXTERNAL
    if external and (directory is None or not os.path.isdir(directory)):
        return None
    try:
        return np.asarray(onnx.numpy_helper.to_array(tensor, directory or ""))
    except (ValueError, TypeError, OSError, onnx.checker.ValidationError):
        return None  # the data is missing or torn; the tensor counts as an unknown input


def _constant_node_value(node: Any, directory: str | None) -> NDArray[Any] | None:
    import onnx

    if len(node.attribute) != 1:
        return None
    (attribute,) = node.attribute
    kinds = onnx.AttributeProto
    match attribute.name, attribute.type:
        case "value", kinds.TENSOR:
            return _tensor_value(attribute.t, directory)
        case "value_float", kinds.FLOAT:
            return np.array(attribute.f, np.float32)
        case "value_int", kinds.INT:
            return np.array(attribute.i, np.int64)
        case "value_floats", kinds.FLOATS:
            return np.array(list(attribute.floats), np.float32)
        case "value_ints", kinds.INTS:
            return np.array(list(attribute.ints), np.int64)
    return None  # another kind, or a type that doesn't fit the name


def _attributes(node: Any) -> Mapping[str, Any]:
    import onnx

    values: dict[str, Any] = {}
    for attribute in node.attribute:
        if attribute.type in (onnx.AttributeProto.FLOAT, onnx.AttributeProto.INT, onnx.AttributeProto.STRING):
            values[attribute.name] = onnx.helper.get_attribute_value(attribute)
        elif attribute.type in (onnx.AttributeProto.FLOATS, onnx.AttributeProto.INTS):
            values[attribute.name] = list(onnx.helper.get_attribute_value(attribute))
        elif attribute.type == onnx.AttributeProto.TENSOR:
            values[attribute.name] = _tensor_value(attribute.t, None)
    return values
