"""ONNX's operators, as far as box decodes use them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from detops.graph import _ops_common, _poly
from detops.graph._finding import CannotRunError, Refusal
from detops.graph._ops import Function, Run, Symbolic, Table, check_size, register
from detops.graph._ops_common import (
    ADD,
    MULTIPLY,
    SUBTRACT,
    bound,
    combine,
    constants_only,
    integers,
    reshape,
    split_evenly,
    take,
    truncated_division,
)
from detops.graph._view import Node

ONNX: Table = {}


def _since_opset_7(function: Function) -> Function:
    def apply(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
        if "broadcast" in node.attributes or "axis" in node.attributes:
            raise Refusal(f"{node.label} broadcasts in the manner of opset 6, which the proof doesn't follow")
        return function(run, node, values)

    return apply


register(ONNX, "Add Sum", "arithmetic")(_since_opset_7(combine(*ADD)))
register(ONNX, "Sub", "arithmetic")(_since_opset_7(combine(*SUBTRACT)))
register(ONNX, "Mul", "arithmetic")(_since_opset_7(combine(*MULTIPLY)))
register(ONNX, "Div", "arithmetic")(_since_opset_7(combine(_poly.divide, truncated_division)))
register(ONNX, "Min", "arithmetic")(bound("min"))
register(ONNX, "Max", "arithmetic")(bound("max"))
register(ONNX, "Exp", "arithmetic")(_ops_common.exp)
register(ONNX, "Neg", "arithmetic")(_ops_common.negate)
register(ONNX, "Identity", "move")(_ops_common.identity)
register(ONNX, "Tile", "move")(_ops_common.tile)
register(ONNX, "Range", "constant")(_ops_common.count)
register(ONNX, "Equal", "constant")(constants_only(np.equal))
register(ONNX, "Where", "constant")(constants_only(np.where))


@register(ONNX, "Clip", "arithmetic")
def _clip(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    value = values[0]
    low, high = (_argument(node, values, index, name, 11) for index, name in ((1, "min"), (2, "max")))
    if any(isinstance(bound, np.ndarray) and bound.size != 1 for bound in (low, high)):
        raise CannotRunError(f"{node.label} needs a scalar bound")
    if node.version < 11:
        if value.dtype is None:
            raise Refusal(f"{node.label} clips a tensor of unknown type")
        low, high = (None if bound is None else np.asarray(bound, value.dtype) for bound in (low, high))
    return [run.limit(run.limit(value, low, "max"), high, "min")]


@register(ONNX, "Dropout", "move")
def _dropout(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    training = values[2] if len(values) > 2 else None
    if training is not None and (isinstance(training, Symbolic) or bool(np.any(training))):
        raise Refusal(f"{node.label} is a Dropout in training form")
    if node.version < 7 and not node.attributes.get("is_test", 0):
        raise Refusal(f"{node.label} is a Dropout in training form")
    return [values[0]]


@register(ONNX, "Cast", "move")
def _cast(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    import onnx

    try:
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(node.attributes["to"]))
    except (KeyError, ValueError, TypeError):
        dtype = None
    return [run.cast(values[0], dtype, node)]


@register(ONNX, "CastLike", "move")
def _cast_like(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    return [run.cast(values[0], values[1].dtype, node)]


@register(ONNX, "Reshape", "move")
def _reshape(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    dims = integers(_argument(node, values, 1, "shape", 5), node)
    if not node.attributes.get("allowzero", 0):
        dims = [values[0].shape[index] if dim == 0 else dim for index, dim in enumerate(dims)]
    return [run.move(values[0], lambda array: reshape(array, dims))]


@register(ONNX, "Flatten", "move")
def _flatten(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    shape = values[0].shape
    axis = _axis_of(node.attributes.get("axis", 1), len(shape) + 1)
    rows = int(np.prod(shape[:axis], dtype=np.int64))
    columns = int(np.prod(shape[axis:], dtype=np.int64))
    return [run.move(values[0], lambda array: array.reshape(rows, columns))]


@register(ONNX, "Transpose", "move")
def _transpose(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    return _ops_common.transpose(run, node, values[0], node.attributes.get("perm"))


@register(ONNX, "Squeeze", "move")
def _squeeze(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    axes = _argument(node, values, 1, "axes", 13)
    picked = None if axes is None else tuple(integers(axes, node))
    if picked == ():
        raise Refusal(f"{node.label} has an empty list of axes, which runtimes read in two ways")
    return [run.move(values[0], lambda array: np.squeeze(array, picked))]


@register(ONNX, "Unsqueeze", "move")
def _unsqueeze(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    axes = tuple(integers(_argument(node, values, 1, "axes", 13), node))
    return [run.move(values[0], lambda array: np.expand_dims(array, axes))]


@register(ONNX, "Split", "move")
def _split(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    axis = _axis_of(node.attributes.get("axis", 0), len(values[0].shape))
    size, pieces = values[0].shape[axis], len(node.outputs)
    given = _argument(node, values, 1, "split", 13)
    if given is not None:
        sizes = integers(given, node)
    elif node.version >= 18 and "num_outputs" in node.attributes:
        chunk = -(-size // node.attributes["num_outputs"])
        sizes = [chunk] * (node.attributes["num_outputs"] - 1)
        sizes.append(size - sum(sizes))
    elif size % pieces:
        raise CannotRunError(f"{node.label} cuts {size} into {pieces} equal parts")
    else:
        sizes = [size // pieces] * pieces
    if len(sizes) != pieces:
        raise CannotRunError(f"{node.label} has {pieces} outputs for {len(sizes)} parts")
    return run.cut(values[0], lambda array: split_evenly(array, sizes, axis))


@register(ONNX, "Slice", "move")
def _slice(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    starts, ends, axes = (
        _argument(node, values, index, name, 10) for index, name in ((1, "starts"), (2, "ends"), (3, "axes"))
    )
    steps = values[4] if len(values) > 4 else None
    first, last = integers(starts, node), integers(ends, node)
    along = list(range(len(first))) if axes is None else integers(axes, node)
    stride = [1] * len(first) if steps is None else integers(steps, node)
    rank = len(values[0].shape)
    along = [_axis_of(axis, rank) for axis in along]
    if not len(first) == len(last) == len(along) == len(stride) == len(set(along)) or 0 in stride:
        raise CannotRunError(f"{node.label} has unequal lists of starts, ends, axes and steps")
    index = [slice(None)] * rank
    for axis, start, stop, step in zip(along, first, last, stride, strict=True):
        index[axis] = slice(start, stop, step)
    return [run.move(values[0], lambda array: array[tuple(index)])]


@register(ONNX, "Gather", "move")
def _gather(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    if isinstance(values[1], Symbolic):
        raise Refusal(f"{node.label} takes an index that is computed from the boxes")
    axis = _axis_of(node.attributes.get("axis", 0), len(values[0].shape))
    return [run.move(values[0], lambda array: take(array, values[1], axis))]


@register(ONNX, "Concat", "move", data=None)
def _concat(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    axis = _axis_of(node.attributes.get("axis", 1), len(values[0].shape))
    return [run.join(values, lambda arrays: np.concatenate(arrays, axis=axis))]


@register(ONNX, "Expand", "move")
def _expand(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    shape = np.broadcast_shapes(values[0].shape, tuple(integers(values[1], node)))
    check_size(shape)
    return [run.move(values[0], lambda array: np.broadcast_to(array, shape))]


@register(ONNX, "Shape", "shape")
def _shape(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    shape = np.array(values[0].shape, np.int64)
    return [shape[node.attributes.get("start", 0) : node.attributes.get("end", len(shape))]]


@register(ONNX, "Size", "shape")
def _size(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    return [np.array(np.prod(values[0].shape, dtype=np.int64))]


@register(ONNX, "ConstantOfShape", "constant")
def _constant_of_shape(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    shape = integers(values[0], node)
    check_size(shape)
    value = node.attributes.get("value")
    fill = np.zeros(1, np.float32) if "value" not in node.attributes else value
    if fill is None:
        raise Refusal(f"{node.label} fills with a value that cannot be read")
    return [np.broadcast_to(fill.reshape(()), shape)]


@register(ONNX, "ReduceProd ReduceSum ReduceMin ReduceMax", "constant")
def _reduce(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    if node.attributes.get("noop_with_empty_axes", 0):
        raise Refusal(f"{node.label} ({node.op}) may reduce nothing, which the proof doesn't follow")
    axes = _argument(node, values, 1, "axes", 13 if node.op == "ReduceSum" else 18)
    picked = None if axes is None else integers(axes, node)
    return _ops_common.reduce(node, values[0], picked, bool(node.attributes.get("keepdims", 1)))


def _argument(node: Node, values: Sequence[Any], index: int, name: str, since: int) -> Any:
    """Return what is an attribute in older opsets and an input from `since` on."""
    if node.version >= since:
        return values[index] if index < len(values) else None
    value = node.attributes.get(name)
    return np.array(value, np.int64) if isinstance(value, list) else value


def _axis_of(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise CannotRunError(f"axis {axis} doesn't exist in a tensor of rank {rank}")
    return axis % rank
