"""TensorFlow's operators, as far as box decodes use them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from detops.graph import _ops_common, _poly
from detops.graph._finding import CannotRunError, Refusal
from detops.graph._ops import Run, Symbolic, Table, check_size, register
from detops.graph._ops_common import (
    ADD,
    MULTIPLY,
    SUBTRACT,
    bound,
    combine,
    constants_only,
    floor_division,
    integers,
    real_division,
    reshape,
    split_evenly,
    take,
    truncated_division,
)
from detops.graph._tf_tensors import tensor_value
from detops.graph._view import Node

TENSORFLOW: Table = {}

register(TENSORFLOW, "Add AddV2 AddN", "arithmetic")(combine(*ADD))
register(TENSORFLOW, "Sub", "arithmetic")(combine(*SUBTRACT))
register(TENSORFLOW, "Mul", "arithmetic")(combine(*MULTIPLY))
register(TENSORFLOW, "RealDiv", "arithmetic")(combine(_poly.divide, real_division))
register(TENSORFLOW, "Div", "arithmetic")(combine(_poly.divide, truncated_division))
register(TENSORFLOW, "Minimum", "arithmetic")(bound("min"))
register(TENSORFLOW, "Maximum", "arithmetic")(bound("max"))
register(TENSORFLOW, "Exp", "arithmetic")(_ops_common.exp)
register(TENSORFLOW, "Neg", "arithmetic")(_ops_common.negate)
register(TENSORFLOW, "Identity StopGradient PreventGradient Snapshot", "move")(_ops_common.identity)
register(TENSORFLOW, "Tile", "move")(_ops_common.tile)
register(TENSORFLOW, "Range", "constant")(_ops_common.count)
register(TENSORFLOW, "FloorDiv", "constant")(constants_only(floor_division))
register(TENSORFLOW, "Equal", "constant")(constants_only(np.equal))
register(TENSORFLOW, "SelectV2", "constant")(constants_only(np.where))


@register(TENSORFLOW, "ClipByValue", "arithmetic")
def _clip(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    return [run.limit(run.limit(values[0], values[2], "min"), values[1], "max")]


@register(TENSORFLOW, "Cast", "move")
def _cast(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    return [run.cast(values[0], node.attributes.get("DstT"), node)]


@register(TENSORFLOW, "Reshape", "move")
def _reshape(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    dims = integers(values[1], node)
    return [run.move(values[0], lambda array: reshape(array, dims))]


@register(TENSORFLOW, "Transpose", "move")
def _transpose(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    return _ops_common.transpose(run, node, values[0], integers(values[1], node))


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


@register(TENSORFLOW, "Prod Sum Min Max", "constant")
def _reduce(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    return _ops_common.reduce(node, values[0], integers(values[1], node), bool(node.attributes.get("keep_dims", False)))
