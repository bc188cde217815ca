"""TensorFlow's tensors, shapes and types as NumPy's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detops.graph.model._graph import MAX_CONSTANT, Shape
from detops.graph.model._tf_schema import DATA_TYPES

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


def tensor_name(reference: str) -> str:
    """Return the full name of what an input reference reads: "x" is "x:0"."""
    return reference if ":" in reference else f"{reference}:0"


def shape_of(proto: Any) -> Shape | None:
    """Return the value of a TensorShapeProto; None for an unknown rank."""
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


def set_tensor(tensor: Any, value: np.ndarray[Any, Any]) -> None:
    """Write an array into a TensorProto."""
    tensor.dtype = number_of(value.dtype)
    tensor.tensor_shape.SetInParent()
    for size in value.shape:
        tensor.tensor_shape.dim.add(size=size)
    tensor.tensor_content = value.astype(value.dtype.newbyteorder("<")).tobytes()


def tensor_value(tensor: Any) -> NDArray[Any] | None:
    """Return the value of a TensorProto; None where it is too large, torn or not numeric."""
    shape = shape_of(tensor.tensor_shape)
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
        try:
            values = np.array(listed, np.uint16).view(np.float16) if half else np.array(listed, dtype)
        except OverflowError:  # a number that the type doesn't hold
            return None
        if len(values) > count:
            return None
        if len(values) < count:  # the last value fills the rest, and none at all means zeros
            fill = values[-1:] if len(values) else np.zeros(1, dtype)
            values = np.concatenate([values, np.repeat(fill, count - len(values))])
    return values.reshape(sizes)
