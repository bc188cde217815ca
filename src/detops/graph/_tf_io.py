"""Reads TensorFlow GraphDefs into the graph view, without TensorFlow."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detops.graph._tf_schema import DATA_TYPES
from detops.graph._view import MAX_CONSTANT, Graph, Node, TensorInfo

# the number of outputs where it isn't one; a name stands for the attribute that counts them
_NUM_OUTPUTS: dict[str, int | str] = {
    "Split": "num_split",
    "SplitV": "num_split",
    "Unpack": "num",
    "ShapeN": "N",
}

_NUMPY_TYPES = {
    "FLOAT": np.float32,
    "DOUBLE": np.float64,
    "HALF": np.float16,
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "UINT8": np.uint8,
    "UINT16": np.uint16,
    "UINT32": np.uint32,
    "UINT64": np.uint64,
    "BOOL": np.bool_,
}

_VALUE_FIELDS = {
    "FLOAT": "float_val",
    "DOUBLE": "double_val",
    "HALF": "half_val",
    "INT64": "int64_val",
    "UINT32": "uint32_val",
    "UINT64": "uint64_val",
    "BOOL": "bool_val",
}

SAME_SHAPE_OPS = frozenset({"Identity", "StopGradient", "Snapshot", "Cast", "Exp", "Neg", "Relu", "Sigmoid"})
CONSTANT_OPS = frozenset({"Const", "HostConst"})


def tensor_name(reference: str) -> str:
    """Return the full name of what an input reference reads: "x" is "x:0"."""
    return reference if ":" in reference else f"{reference}:0"


def read_graph(graph_def: Any) -> Graph:
    """Return the view of a GraphDef's main graph."""
    by_name: dict[str, Any] = {}
    for node in graph_def.node:
        if not node.name or not node.op:
            raise ValueError("model: the GraphDef holds a node without a name or an operation")
        if by_name.setdefault(node.name, node) is not node:
            raise ValueError(f"model: two nodes are called {node.name!r}")
    read: dict[str, int] = {}
    for node in graph_def.node:
        for reference in node.input:
            name, _, port = tensor_name(reference).partition(":")
            read[name] = max(read.get(name, 0), int(port) if port.isdigit() else 0)
    nodes = []
    for node in graph_def.node:
        for reference in node.input:
            name = reference.lstrip("^").partition(":")[0]
            if name not in by_name:
                raise ValueError(f"model: node {node.name!r} reads {reference!r}, which nothing makes")
        count = max(_num_outputs(node), read.get(node.name, 0) + 1)
        nodes.append(
            Node(
                name=node.name,
                op=node.op,
                inputs=tuple(tensor_name(name) for name in node.input if not name.startswith("^")),
                outputs=tuple(f"{node.name}:{port}" for port in range(count)),
                raw=node,
                read_attributes=_attributes,
                control=tuple(name[1:] for name in node.input if name.startswith("^")),
            )
        )
    read_names = {name.lstrip("^").partition(":")[0] for node in graph_def.node for name in node.input}
    return Graph(
        "tensorflow",
        nodes,
        outputs=[f"{name}:0" for name in by_name if name not in read_names],
        known=lambda _: False,
        constant=lambda tensor: _constant(by_name, tensor),
        info=lambda tensor: _info(by_name, tensor),
        raw=graph_def,
        loop_ops=frozenset({"NextIteration", "RefNextIteration"}),
    )


def _num_outputs(node: Any) -> int:
    count = _NUM_OUTPUTS.get(node.op, 1)
    if isinstance(count, str):
        count = int(node.attr[count].i) if count in node.attr else 1
    return min(max(count, 1), 1 << 16)


def _constant(by_name: Mapping[str, Any], tensor: str) -> NDArray[Any] | None:
    node = by_name.get(tensor.partition(":")[0])
    if node is None or node.op not in CONSTANT_OPS or "value" not in node.attr:
        return None
    return tensor_value(node.attr["value"].tensor)


def _info(by_name: Mapping[str, Any], tensor: str) -> TensorInfo:
    """Read what the graph says of a tensor: its type attribute, and a shape where one is written down."""
    name, _, port = tensor.partition(":")
    node = by_name.get(name)
    for _ in range(64):  # through operations that keep the shape
        if node is None:
            return TensorInfo()
        if "_output_shapes" in node.attr and int(port) < len(node.attr["_output_shapes"].list.shape):
            shape = _shape(node.attr["_output_shapes"].list.shape[int(port)])
            break
        if node.op.startswith("Placeholder") and "shape" in node.attr and port == "0":
            shape = _shape(node.attr["shape"].shape)
            break
        if node.op in CONSTANT_OPS and "value" in node.attr:
            shape = _shape(node.attr["value"].tensor.tensor_shape)
            break
        if node.op not in SAME_SHAPE_OPS or not node.input:
            shape = None
            break
        name, _, port = tensor_name(node.input[0]).partition(":")
        node = by_name.get(name)
    else:
        shape = None
    return TensorInfo(_node_dtype(by_name[tensor.partition(":")[0]]), shape)


def _node_dtype(node: Any) -> np.dtype[Any] | None:
    for name in ("DstT", "dtype", "T") if node.op != "Shape" else ("out_type",):
        if name in node.attr:
            return dtype_of(node.attr[name].type)
    return None


def _shape(proto: Any) -> tuple[int | None, ...] | None:
    if proto.unknown_rank:
        return None
    return tuple(dim.size if dim.size >= 0 else None for dim in proto.dim)


def dtype_of(number: int) -> np.dtype[Any] | None:
    """Return the NumPy type of a DataType, None where NumPy has none."""
    name = DATA_TYPES[number] if 0 <= number < len(DATA_TYPES) else ""
    return np.dtype(_NUMPY_TYPES[name]) if name in _NUMPY_TYPES else None


def number_of(dtype: np.dtype[Any]) -> int:
    """Return the DataType of a NumPy type."""
    return next(DATA_TYPES.index(name) for name, kind in _NUMPY_TYPES.items() if np.dtype(kind) == dtype)


def tensor_value(tensor: Any) -> NDArray[Any] | None:
    """Return the value of a TensorProto; None where it is too large, torn or not numeric."""
    shape = _shape(tensor.tensor_shape)
    dtype = dtype_of(tensor.dtype)
    if shape is None or dtype is None or None in shape:
        return None
    sizes = [dim or 0 for dim in shape]
    count = math.prod(sizes)
    if max(count, *sizes, 0) > MAX_CONSTANT:
        return None
    if tensor.tensor_content:
        if len(tensor.tensor_content) != count * dtype.itemsize:
            return None
        values = np.frombuffer(tensor.tensor_content, dtype.newbyteorder("<")).astype(dtype)
    else:
        listed = list(getattr(tensor, _VALUE_FIELDS.get(DATA_TYPES[tensor.dtype], "int_val")))
        half = dtype == np.float16  # kept as bits
        values = np.array(listed, np.uint16).view(np.float16) if half else np.array(listed, dtype)
        if len(values) > count:
            return None
        if len(values) < count:  # the last value fills the rest, and none at all means zeros
            fill = values[-1:] if len(values) else np.zeros(1, dtype)
            values = np.concatenate([values, np.repeat(fill, count - len(values))])
    return values.reshape(sizes)


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
