"""ONNX's operators, as far as box decodes use them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from detops.graph import _forms
from detops.graph._finding import CannotRunError, Refusal
from detops.graph._ops import (
    MAX_ELEMENTS,
    Run,
    Symbolic,
    Table,
    check_size,
    constants_only,
    integers,
    register,
    reshape,
    split_evenly,
    take,
    truncated_division,
)
from detops.graph._view import Node

ONNX: Table = {}

for _name, _symbolic, _numeric in (
    ("Add", _forms.add, np.add),
    ("Sub", _forms.subtract, np.subtract),
    ("Mul", _forms.multiply, np.multiply),
    ("Div", _forms.divide, truncated_division),
    ("Sum", _forms.add, np.add),
):

    @register(ONNX, _name, "arithmetic")
    def _arithmetic(
        run: Run, node: Node, values: Sequence[Any], symbolic: Any = _symbolic, numeric: Any = _numeric
    ) -> Sequence[Any]:
        if "broadcast" in node.attributes or "axis" in node.attributes:
            raise Refusal(f"{node.label} broadcasts in the manner of opset 6, which the proof doesn't follow")
        return [run.fold(values, symbolic, numeric)]


for _name, _function in (
    ("Equal", np.equal),
    ("Where", np.where),
):
    register(ONNX, _name, "constant")(constants_only(_function))


@register(ONNX, "Min Max", "arithmetic")
def _min_max(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    result = values[0]
    for value in values[1:]:
        result = run.limit(result, value, "min" if node.op == "Min" else "max")
    return [result]


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


@register(ONNX, "Exp", "arithmetic")
def _exp(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    return [run.exp(values[0])]


@register(ONNX, "Neg", "arithmetic")
def _neg(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    return [run.negate(values[0])]


@register(ONNX, "Identity", "move")
def _identity(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    return [values[0]]


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
    perm = node.attributes.get("perm")
    if perm is not None and sorted(perm) != list(range(len(values[0].shape))):
        raise CannotRunError(f"{node.label} permutes {len(perm)} axes of a tensor of rank {len(values[0].shape)}")
    return [run.move(values[0], lambda array: np.transpose(array, perm))]


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


@register(ONNX, "Tile", "move")
def _tile(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    repeats = integers(values[1], node)
    if len(repeats) != len(values[0].shape):
        raise CannotRunError(f"{node.label} repeats {len(repeats)} axes of {len(values[0].shape)}")
    check_size([size * count for size, count in zip(values[0].shape, repeats, strict=True)])
    return [run.move(values[0], lambda array: np.tile(array, repeats))]


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


@register(ONNX, "Range", "constant")
def _range(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    start, limit, delta = (integers(value, node)[0] for value in values)
    if delta == 0 or abs(limit - start) > MAX_ELEMENTS * abs(delta):
        raise Refusal(f"{node.label} counts too far for a proof")
    return [np.arange(start, limit, delta, dtype=values[0].dtype)]


@register(ONNX, "ReduceProd ReduceSum ReduceMin ReduceMax", "constant")
def _reduce(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    axes = _argument(node, values, 1, "axes", 13 if node.op == "ReduceSum" else 18)
    if isinstance(values[0], Symbolic) or node.attributes.get("noop_with_empty_axes", 0):
        raise Refusal(f"{node.label} ({node.op}) computes on the boxes, and no decode does that", depth=1)
    if values[0].dtype.kind not in "iu":
        raise Refusal(f"{node.label} ({node.op}) computes a size in floating point")
    function: Any = {"ReduceProd": np.prod, "ReduceSum": np.sum, "ReduceMin": np.min, "ReduceMax": np.max}[node.op]
    picked = None if axes is None else tuple(integers(axes, node))
    keep = bool(node.attributes.get("keepdims", 1))
    return [np.asarray(function(values[0], axis=picked, keepdims=keep), dtype=values[0].dtype)]


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
