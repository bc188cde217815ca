"""TensorFlow's operators, as far as box decodes use them."""

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
    floor_division,
    integers,
    real_division,
    register,
    reshape,
    split_evenly,
    take,
    truncated_division,
)
from detops.graph._tf_tensors import tensor_value
from detops.graph._view import Node

TENSORFLOW: Table = {}

for _name, _symbolic, _numeric in (
    ("Add", _forms.add, np.add),
    ("AddV2", _forms.add, np.add),
    ("AddN", _forms.add, np.add),
    ("Sub", _forms.subtract, np.subtract),
    ("Mul", _forms.multiply, np.multiply),
    ("RealDiv", _forms.divide, real_division),
    ("Div", _forms.divide, truncated_division),
):

    @register(TENSORFLOW, _name, "arithmetic")
    def _arithmetic(
        run: Run, node: Node, values: Sequence[Any], symbolic: Any = _symbolic, numeric: Any = _numeric
    ) -> Sequence[Any]:
        return [run.fold(values, symbolic, numeric)]


for _names, _function in (
    ("FloorDiv", floor_division),
    ("Equal", np.equal),
    ("SelectV2", np.where),
):
    register(TENSORFLOW, _names, "constant")(constants_only(_function))


@register(TENSORFLOW, "Minimum Maximum", "arithmetic")
def _min_max(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    return [run.limit(values[0], values[1], "min" if node.op == "Minimum" else "max")]


@register(TENSORFLOW, "ClipByValue", "arithmetic")
def _clip(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    return [run.limit(run.limit(values[0], values[2], "min"), values[1], "max")]


@register(TENSORFLOW, "Exp", "arithmetic")
def _exp(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    return [run.exp(values[0])]


@register(TENSORFLOW, "Neg", "arithmetic")
def _neg(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    return [run.negate(values[0])]


@register(TENSORFLOW, "Identity StopGradient PreventGradient Snapshot", "move")
def _identity(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    return [values[0]]


@register(TENSORFLOW, "Cast", "move")
def _cast(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    return [run.cast(values[0], node.attributes.get("DstT"), node)]


@register(TENSORFLOW, "Reshape", "move")
def _reshape(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    dims = integers(values[1], node)
    return [run.move(values[0], lambda array: reshape(array, dims))]


@register(TENSORFLOW, "Transpose", "move")
def _transpose(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    perm = integers(values[1], node)
    if sorted(perm) != list(range(len(values[0].shape))):
        raise CannotRunError(f"{node.label} permutes {len(perm)} axes of a tensor of rank {len(values[0].shape)}")
    return [run.move(values[0], lambda array: np.transpose(array, perm))]


@register(TENSORFLOW, "Squeeze", "move")
def _squeeze(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    axes = node.attributes.get("squeeze_dims") or node.attributes.get("axis")
    return [run.move(values[0], lambda array: np.squeeze(array, tuple(axes) if axes else None))]


@register(TENSORFLOW, "ExpandDims", "move")
def _expand_dims(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    (axis,) = integers(values[1], node)
    return [run.move(values[0], lambda array: np.expand_dims(array, axis))]


@register(TENSORFLOW, "Split", "move", data=(1,))
def _split(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    (axis,) = integers(values[0], node)
    size, pieces = values[1].shape[axis], node.attributes["num_split"]
    if pieces <= 0 or size % pieces:
        raise CannotRunError(f"{node.label} cuts {size} into {pieces} equal parts")
    return run.cut(values[1], lambda array: split_evenly(array, [size // pieces] * pieces, axis))


@register(TENSORFLOW, "SplitV", "move")
def _split_v(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    (axis,) = integers(values[2], node)
    sizes = integers(values[1], node)
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = values[0].shape[axis] - sum(sizes) - 1
    return run.cut(values[0], lambda array: split_evenly(array, sizes, axis))


@register(TENSORFLOW, "Unpack", "move")
def _unpack(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    axis, count = node.attributes.get("axis", 0), node.attributes["num"]
    if values[0].shape[axis] != count:
        raise CannotRunError(f"{node.label} unpacks {count} of an axis of {values[0].shape[axis]}")
    return run.cut(values[0], lambda array: list(np.moveaxis(array, axis, 0)))


@register(TENSORFLOW, "Pack", "move", data=None)
def _pack(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    axis = node.attributes.get("axis", 0)
    return [run.join(values, lambda arrays: np.stack(arrays, axis=axis))]


@register(TENSORFLOW, "ConcatV2", "move", data=None)
def _concat_v2(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    (axis,) = integers(values[-1], node)
    return [run.join(values[:-1], lambda arrays: np.concatenate(arrays, axis=axis))]


@register(TENSORFLOW, "Concat", "move", data=None)
def _concat(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    (axis,) = integers(values[0], node)
    return [run.join(values[1:], lambda arrays: np.concatenate(arrays, axis=axis))]


@register(TENSORFLOW, "Slice", "move")
def _slice(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    shape = values[0].shape
    begin, size = integers(values[1], node), integers(values[2], node)
    if not len(begin) == len(size) == len(shape):
        raise CannotRunError(f"{node.label} slices {len(begin)} axes of {len(shape)}")
    index = []
    for start, count, length in zip(begin, size, shape, strict=True):
        stop = length if count == -1 else start + count
        if not 0 <= start <= stop <= length:
            raise CannotRunError(f"{node.label} slices outside an axis of {length}")
        index.append(slice(start, stop))
    return [run.move(values[0], lambda array: array[tuple(index)])]


@register(TENSORFLOW, "StridedSlice", "move")
def _strided_slice(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    begin, end, stride = (integers(value, node) for value in values[1:4])
    masks = {
        name: node.attributes.get(f"{name}_mask", 0) for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    }
    index: list[Any] = []
    for bit, (start, stop, step) in enumerate(zip(begin, end, stride, strict=True)):
        on = {name: bool(mask >> bit & 1) for name, mask in masks.items()}
        if on["ellipsis"]:
            index.append(Ellipsis)
        elif on["new_axis"]:
            index.append(None)
        elif on["shrink_axis"]:
            index.append(0 if on["begin"] else start)
        elif step == 0:
            raise CannotRunError(f"{node.label} has a stride of zero")
        else:
            index.append(slice(None if on["begin"] else start, None if on["end"] else stop, step))
    return [run.move(values[0], lambda array: np.asarray(array[tuple(index)]))]


@register(TENSORFLOW, "GatherV2 Gather", "move")
def _gather(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    indices = values[1]
    if isinstance(indices, Symbolic):
        raise Refusal(f"{node.label} takes an index that is computed from the boxes")
    if node.attributes.get("batch_dims", 0):
        raise Refusal(f"{node.label} gathers batch by batch, which the proof doesn't follow")
    if np.any(indices < 0):
        raise CannotRunError(f"{node.label} has a negative index")
    axis = integers(values[2], node)[0] if len(values) > 2 else 0
    return [run.move(values[0], lambda array: take(array, indices, axis))]


@register(TENSORFLOW, "ReverseV2", "move")
def _reverse(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    axes = tuple(integers(values[1], node))
    return [run.move(values[0], lambda array: np.flip(array, axes))]


@register(TENSORFLOW, "Tile", "move")
def _tile(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    repeats = integers(values[1], node)
    if len(repeats) != len(values[0].shape):
        raise CannotRunError(f"{node.label} repeats {len(repeats)} axes of {len(values[0].shape)}")
    check_size([size * count for size, count in zip(values[0].shape, repeats, strict=True)])
    return [run.move(values[0], lambda array: np.tile(array, repeats))]


@register(TENSORFLOW, "BroadcastTo", "move")
def _broadcast_to(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    shape = integers(values[1], node)
    check_size(shape)
    return [run.move(values[0], lambda array: np.broadcast_to(array, shape))]


@register(TENSORFLOW, "Shape ShapeN", "shape")
def _shape(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    dtype = node.attributes.get("out_type") or np.dtype(np.int32)
    return [np.array(value.shape, dtype) for value in values]


@register(TENSORFLOW, "Size Rank", "shape")
def _size(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    shape = values[0].shape
    dtype = node.attributes.get("out_type") or np.dtype(np.int32)
    return [np.array(len(shape) if node.op == "Rank" else np.prod(shape, dtype=np.int64), dtype)]


@register(TENSORFLOW, "Const HostConst", "constant")
def _const(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    value = tensor_value(node.raw.attr["value"].tensor)
    if value is None:
        raise Refusal(f"the value of {node.label} is too large or cannot be read")
    return [value]


@register(TENSORFLOW, "Fill", "constant")
def _fill(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    shape = integers(values[0], node)
    check_size(shape)
    return [np.broadcast_to(values[1], shape)]


@register(TENSORFLOW, "Range", "constant")
def _range(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    start, limit, delta = (integers(value, node)[0] for value in values)
    if delta == 0 or abs(limit - start) > MAX_ELEMENTS * abs(delta):
        raise Refusal(f"{node.label} counts too far for a proof")
    return [np.arange(start, limit, delta, dtype=values[0].dtype)]


@register(TENSORFLOW, "Prod Sum Min Max", "constant")
def _reduce(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    if any(isinstance(value, Symbolic) for value in values):
        raise Refusal(f"{node.label} ({node.op}) computes on the boxes, and no decode does that", depth=1)
    if values[0].dtype.kind not in "iu":
        raise Refusal(f"{node.label} ({node.op}) computes a size in floating point")
    function: Any = {"Prod": np.prod, "Sum": np.sum, "Min": np.min, "Max": np.max}[node.op]
    axes = tuple(integers(values[1], node))
    keep = bool(node.attributes.get("keep_dims", False))
    return [np.asarray(function(values[0], axis=axes, keepdims=keep), dtype=values[0].dtype)]
