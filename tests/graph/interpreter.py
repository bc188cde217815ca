"""A small NumPy interpreter of GraphDefs, for running a graph before and after fusion where TensorFlow isn't installed.

It shares nothing with the operators of the proof, and it calls functions of the graph's library as TensorFlow does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

TYPES = {1: np.float32, 2: np.float64, 3: np.int32, 9: np.int64, 10: np.bool_, 19: np.float16}


def run(graph_def: Any, feeds: Mapping[str, Any], outputs: list[str]) -> list[Any]:
    """Return the values of the named nodes."""
    functions = {function.signature.name: function for function in graph_def.library.function}
    values = {f"{name}:0": value for name, value in feeds.items()}
    _evaluate(list(graph_def.node), values, {}, functions, ports=False)
    return [values[f"{name}:0"] for name in outputs]


def _evaluate(nodes: list[Any], values: dict[str, Any], given: Mapping[str, Any], functions: Any, ports: bool) -> None:
    """Run nodes until all are done; in a function, an output is called node:argument:index."""
    while nodes:
        waiting = []
        for node in nodes:
            inputs = [name if ":" in name or ports else f"{name}:0" for name in node.input if not name.startswith("^")]
            if f"{node.name}:0" in values:
                continue
            if any(name not in values for name in inputs):
                waiting.append(node)
                continue
            attributes = {key: _attribute(value, given) for key, value in node.attr.items()}
            arguments = [values[name] for name in inputs]
            if attributes.get("T") in TYPES:  # as TensorFlow, which converts nothing by itself
                floats = {value.dtype.type for value in arguments if value.dtype.kind == "f"}
                assert floats <= {TYPES[attributes["T"]]}, f"{node.name} is of another type than its inputs"
            if node.op in functions:
                results = _call(functions[node.op], arguments, attributes, functions)
            else:
                results = OPERATORS[node.op](arguments, attributes)
            for place, result in enumerate(results):
                values[f"{node.name}:{place}"] = result
                for port in ("output", "z", "y"):
                    values[f"{node.name}:{port}:{place}"] = result
        assert len(waiting) < len(nodes), f"stuck at {waiting[0].name}"
        nodes = waiting


def _call(function: Any, arguments: list[Any], attributes: Mapping[str, Any], functions: Any) -> list[Any]:
    signature = function.signature
    assert {attribute.name for attribute in signature.attr} <= set(attributes), "an attribute is missing"
    assert [TYPES[argument.type] for argument in signature.input_arg] == [value.dtype.type for value in arguments]
    values = {argument.name: value for argument, value in zip(signature.input_arg, arguments, strict=True)}
    _evaluate(list(function.node_def), values, attributes, functions, ports=True)
    return [values[function.ret[argument.name]] for argument in signature.output_arg]


def _attribute(value: Any, given: Mapping[str, Any]) -> Any:
    kind = value.WhichOneof("value")
    if kind == "placeholder":
        return given[value.placeholder]
    if kind == "tensor":
        return tensor_value(value.tensor)
    if kind == "list":
        return list(value.list.i) or list(value.list.f)
    return getattr(value, kind) if kind else None


def tensor_value(tensor: Any) -> Any:
    """Return the value of a TensorProto."""
    dtype = np.dtype(TYPES[tensor.dtype])
    shape = [dim.size for dim in tensor.tensor_shape.dim]
    if tensor.tensor_content:
        return np.frombuffer(tensor.tensor_content, dtype).reshape(shape)
    if dtype == np.float16:
        listed = np.array(list(tensor.half_val), np.uint16).view(np.float16)
    else:
        listed = np.array([*tensor.float_val, *tensor.int_val, *tensor.int64_val, *tensor.double_val], dtype)
    return np.full(shape, listed[0], dtype) if listed.size == 1 else listed.reshape(shape)


def _strided_slice(values: list[Any], attributes: Mapping[str, Any]) -> list[Any]:
    tensor, begin, end, step = values
    index: list[Any] = []
    for place in range(len(begin)):
        if attributes.get("shrink_axis_mask", 0) >> place & 1:
            index.append(int(begin[place]))
            continue
        start = None if attributes.get("begin_mask", 0) >> place & 1 else int(begin[place])
        stop = None if attributes.get("end_mask", 0) >> place & 1 else int(end[place])
        index.append(slice(start, stop, int(step[place])))
    return [tensor[tuple(index)]]


OPERATORS: dict[str, Any] = {
    "Const": lambda v, a: [a["value"]],
    "Identity": lambda v, a: [v[0]],
    "Reshape": lambda v, a: [v[0].reshape(v[1])],
    "Split": lambda v, a: np.split(v[1], a["num_split"], axis=int(v[0])),
    "SplitV": lambda v, a: np.split(v[0], np.cumsum(v[1])[:-1], axis=int(v[2])),
    "Unpack": lambda v, a: list(np.moveaxis(v[0], a.get("axis", 0), 0)),
    "Pack": lambda v, a: [np.stack(v, axis=a.get("axis", 0))],
    "Minimum": lambda v, a: [np.minimum(v[0], v[1])],
    "Maximum": lambda v, a: [np.maximum(v[0], v[1])],
    "ClipByValue": lambda v, a: [np.maximum(np.minimum(v[0], v[2]), v[1])],
    "Exp": lambda v, a: [np.exp(v[0])],
    "Add": lambda v, a: [v[0] + v[1]],
    "AddV2": lambda v, a: [v[0] + v[1]],
    "Sub": lambda v, a: [v[0] - v[1]],
    "Mul": lambda v, a: [v[0] * v[1]],
    "RealDiv": lambda v, a: [v[0] / v[1]],
    "FloorDiv": lambda v, a: [v[0] // v[1]],
    "ConcatV2": lambda v, a: [np.concatenate(v[:-1], axis=int(v[-1]))],
    "Transpose": lambda v, a: [np.transpose(v[0], v[1])],
    "Shape": lambda v, a: [np.array(v[0].shape, np.int32)],
    "ExpandDims": lambda v, a: [np.expand_dims(v[0], int(v[1]))],
    "Cast": lambda v, a: [v[0].astype(TYPES[a["DstT"]])],
    "Sum": lambda v, a: [
        np.sum(v[0], axis=tuple(np.atleast_1d(v[1])), keepdims=bool(a.get("keep_dims")), dtype=v[0].dtype)
    ],
    "Min": lambda v, a: [np.min(v[0], axis=tuple(np.atleast_1d(v[1])), keepdims=bool(a.get("keep_dims")))],
    "Prod": lambda v, a: [np.prod(v[0], axis=tuple(np.atleast_1d(v[1])), dtype=v[0].dtype)],
    "Squeeze": lambda v, a: [np.squeeze(v[0], tuple(a["squeeze_dims"]))],
    "Greater": lambda v, a: [v[0] > v[1]],
    "Where": lambda v, a: [np.argwhere(v[0])],
    "TopKV2": lambda v, a: [
        np.sort(v[0])[::-1][: int(v[1])],
        np.argsort(-v[0], kind="stable")[: int(v[1])].astype(np.int32),
    ],
    "GatherV2": lambda v, a: [np.take(v[0], v[1], axis=int(v[2]))],
    "StridedSlice": _strided_slice,
    "Tile": lambda v, a: [np.tile(v[0], v[1])],
    "ReverseV2": lambda v, a: [np.flip(v[0], tuple(v[1]))],
    "MatMul": lambda v, a: [v[0] @ v[1]],
    "Conv2D": lambda v, a: [v[0] @ v[1][0, 0]],  # 1 x 1, channels last
    "Slice": lambda v, a: [
        v[0][tuple(slice(at, None if size == -1 else at + size) for at, size in zip(v[1], v[2], strict=True))]
    ],
}
