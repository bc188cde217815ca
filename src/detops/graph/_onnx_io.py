"""Reads ONNX models into the graph view. The protobuf itself is what gets rewritten, so nothing in it is lost."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detops.graph._onnx_shapes import bodies, inferred, is_standard
from detops.graph._view import MAX_CONSTANT, Graph, Node, TensorInfo


def read_graphs(model: Any, directory: str | None) -> list[Graph]:
    """Return the main graph and the bodies of all If, Loop and Scan nodes, as views of `model`."""
    if not model.HasField("graph"):
        raise ValueError("model: the ONNX model holds no graph")
    versions = {opset.domain: opset.version for opset in model.opset_import}
    outer = _Outer(versions.get("", versions.get("ai.onnx", 1)), directory, model.ir_version >= 4)
    graphs: list[Graph] = []
    pending = [(model.graph, inferred(model), outer)]
    while pending:
        proto, typed, surroundings = pending.pop()
        scope = _Scope(proto, typed, surroundings)
        graphs.append(scope.view())
        for node, twin in zip(proto.node, typed.node, strict=True):
            pending += [(body, other, scope) for body, other in zip(bodies(node), bodies(twin), strict=True)]
    return graphs


class _Outer:
    """What surrounds the main graph: nothing but the opset and the folder of external data."""

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
        self.constants = {
            node.output[0]: node
            for node in proto.node
            if node.op_type == "Constant" and is_standard(node) and node.output
        }
        self.infos = {value.name: value.type for value in (*typed.input, *typed.value_info)}
        self.inputs = {value.name for value in proto.input}
        self.names = self.inputs | set(self.initializers)
        self.names |= {tensor.values.name for tensor in proto.sparse_initializer}
        self.names |= {output for node in proto.node for output in node.output}

    def known(self, tensor: str) -> bool:
        return tensor in self.names or self.outer.known(tensor)

    def constant(self, tensor: str) -> NDArray[Any] | None:
        if tensor in self.initializers:
            if self.defaults and tensor in self.inputs:
                return None
            return _tensor_value(self.initializers[tensor], self.directory)
        if tensor in self.constants:
            return _constant_node_value(self.constants[tensor], self.directory)
        return None if tensor in self.names else self.outer.constant(tensor)

    def info(self, tensor: str) -> TensorInfo:
        if tensor in self.initializers:
            proto = self.initializers[tensor]
            return TensorInfo(_dtype(proto.data_type), tuple(proto.dims))
        if tensor in self.infos:
            return _type_info(self.infos[tensor])
        return TensorInfo() if tensor in self.names else self.outer.info(tensor)

    def view(self) -> Graph:
        nodes = [
            Node(
                name=node.name,
                op=node.op_type if is_standard(node) else f"{node.domain}::{node.op_type}",
                inputs=tuple(node.input),
                outputs=tuple(node.output),
                raw=node,
                read_attributes=_attributes,
                version=self.opset,
                hidden=tuple(_free_names(node)),
            )
            for node in self.proto.node
        ]
        outputs = [value.name for value in self.proto.output]
        texts = [*outputs, *(text for node in nodes for text in (node.name, node.op, *node.inputs, *node.outputs))]
        if not all(isinstance(text, str) for text in texts):
            raise ValueError("model: a name in the graph is no UTF-8 text")
        for name in outputs:
            if not self.known(name):
                raise ValueError(f"model: the graph output {name!r} is made by nothing")
        return Graph(
            "onnx",
            nodes,
            outputs=outputs,
            known=self.known,
            constant=self.constant,
            info=self.info,
            raw=self.proto,
        )


def _free_names(node: Any) -> Iterator[str]:
    """Yield every name that the node's bodies read; those that a body defines itself do no harm."""
    pending = list(bodies(node))
    while pending:
        body = pending.pop()
        made = {value.name for value in body.input} | {tensor.name for tensor in body.initializer}
        made |= {output for inner in body.node for output in inner.output}
        read = [name for inner in body.node for name in inner.input]
        read += [value.name for value in body.output]
        for name in read:
            if name and name not in made:
                yield name
        for inner in body.node:
            for name in _free_names(inner):
                if name not in made:
                    yield name


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
    attributes = {attribute.name: attribute for attribute in node.attribute}
    if "value" in attributes:
        return _tensor_value(attributes["value"].t, directory)
    for name, dtype in (("value_float", np.float32), ("value_int", np.int64)):
        if name in attributes:
            return np.array(attributes[name].f if dtype is np.float32 else attributes[name].i, dtype)
    if "value_floats" in attributes:
        return np.array(list(attributes["value_floats"].floats), np.float32)
    if "value_ints" in attributes:
        return np.array(list(attributes["value_ints"].ints), np.int64)
    return None


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
