"""TensorFlow's operators, as far as box decodes use them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from detops.graph._finding import CannotRunError, Refusal
from detops.graph.model._graph import Node
from detops.graph.model._tf_tensors import tensor_value
from detops.graph.ops import _layout, _ops_common
from detops.graph.ops._layout import normalize_axis
from detops.graph.ops._ops import Run, Table, register
from detops.graph.ops._ops_common import (
    ADD,
    MULTIPLY,
    SUBTRACT,
    bound,
    combine,
    divide,
    divide_integers,
    floor_division,
    python_slice,
    real_division,
    truncated_division,
)
from detops.graph.symbols import _sizes
from detops.graph.symbols._poly import Poly
from detops.graph.symbols._sizes import number_of

TENSORFLOW: Table = {}

register(TENSORFLOW, "Add AddV2 AddN", "arithmetic")(combine(*ADD))
register(TENSORFLOW, "Sub", "arithmetic")(combine(*SUBTRACT))
register(TENSORFLOW, "Mul", "arithmetic")(combine(*MULTIPLY))
register(TENSORFLOW, "RealDiv", "arithmetic")(divide(real_division))
register(TENSORFLOW, "Div", "arithmetic")(divide(truncated_division))
register(TENSORFLOW, "Minimum", "arithmetic")(bound("min"))
register(TENSORFLOW, "Maximum", "arithmetic")(bound("max"))
register(TENSORFLOW, "Exp", "arithmetic")(_ops_common.exp)
register(TENSORFLOW, "Neg", "arithmetic")(_ops_common.negate)
register(TENSORFLOW, "Identity StopGradient PreventGradient Snapshot", "move")(_ops_common.identity)
register(TENSORFLOW, "Tile", "move")(_ops_common.tile)
register(TENSORFLOW, "Range", "constant")(_ops_common.count)
register(TENSORFLOW, "FloorDiv", "constant")(divide_integers(floor_division))
register(TENSORFLOW, "Equal", "constant")(_ops_common.equal)
register(TENSORFLOW, "SelectV2", "constant")(_ops_common.select)


@register(TENSORFLOW, "ClipByValue", "arithmetic")
def _clip(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    return [run.limit(run.limit(values[0], values[2], "min"), values[1], "max")]


@register(TENSORFLOW, "Cast", "move")
def _cast(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    return [run.cast(values[0], node.attributes.get("DstT"), node)]


@register(TENSORFLOW, "Reshape", "move")
def _reshape(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    return [_layout.reshape(run, values[0], run.listed_sizes(values[1]))]


@register(TENSORFLOW, "Transpose", "move")
def _transpose(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    return [_layout.permute(run, values[0], run.integers(values[1]))]


@register(TENSORFLOW, "Squeeze", "move")
def _squeeze(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    axes = node.attributes.get("squeeze_dims") or node.attributes.get("axis")
    return [_layout.squeeze(run, values[0], axes or None)]


@register(TENSORFLOW, "ExpandDims", "move")
def _expand_dims(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    return [_layout.insert(run, values[0], [_only(run, values[1])])]


@register(TENSORFLOW, "Split", "move", data=(1,))
def _split(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    pieces = node.attributes["num_split"]
    if pieces <= 0:
        raise CannotRunError(f"{node.label} cuts into {pieces} parts")
    return _layout.split_evenly(run, values[1], _axis(run, values[1], values[0]), pieces)


@register(TENSORFLOW, "SplitV", "move")
def _split_v(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    axis = _axis(run, values[0], values[2])
    sizes = run.integers(values[1])
    if sizes.count(-1) == 1:
        whole = number_of(_sizes.size_of(run.axes(values[0])[axis]))
        if whole is None:
            raise Refusal(f"{node.label} cuts an axis whose size is open", depth=2)
        sizes[sizes.index(-1)] = whole - sum(sizes) - 1
    return _layout.split(run, values[0], axis, sizes)


@register(TENSORFLOW, "Unpack", "move")
def _unpack(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    axis, count = normalize_axis(node.attributes.get("axis", 0), len(run.axes(values[0]))), node.attributes["num"]
    pieces = _layout.split(run, values[0], axis, [1] * min(count, 1 << 16))
    return [_layout.squeeze(run, piece, [axis]) for piece in pieces]


@register(TENSORFLOW, "Pack", "move", data=None)
def _pack(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    axis = normalize_axis(node.attributes.get("axis", 0), len(run.axes(values[0])) + 1)
    return [_layout.concatenate(run, [_layout.insert(run, value, [axis]) for value in values], axis)]


@register(TENSORFLOW, "ConcatV2", "move", data=None)
def _concat_v2(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    return [_layout.concatenate(run, values[:-1], _axis(run, values[0], values[-1]))]


@register(TENSORFLOW, "Concat", "move", data=None)
def _concat(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    return [_layout.concatenate(run, values[1:], _axis(run, values[1], values[0]))]


@register(TENSORFLOW, "Slice", "move")
def _slice(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    value, axes = values[0], run.axes(values[0])
    begin, size = run.listed_sizes(values[1]), run.listed_sizes(values[2])
    if not len(begin) == len(size) == len(axes):
        raise CannotRunError(f"{node.label} slices {len(begin)} axes of {len(axes)}")
    for axis, (start, count) in enumerate(zip(begin, size, strict=True)):
        if number_of(count) == -1:
            stop = None
        else:
            stop = _sizes.total_of([start, count])
            _check_within(run, start, count, stop, _sizes.size_of(axes[axis]))
        value = _layout.cut(run, value, axis, start, stop, 1, python_slice)
    return [value]


def _check_within(run: Run, start: Poly, count: Poly, stop: Poly, whole: Poly) -> None:
    """Refuse a Slice that leaves the axis, as TensorFlow does."""
    remaining = _sizes.total_of([whole, _sizes.negative(stop)])
    for size in (start, count, remaining):
        if not run.sizes.is_at_least(size, 0):
            if number_of(size) is None:
                raise Refusal(f"{run.label} slices up to a size that the axis may not have", depth=2)
            raise CannotRunError(f"{run.label} slices outside an axis")


@register(TENSORFLOW, "StridedSlice", "move")
def _strided_slice(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    value = values[0]
    begin, end, stride = run.listed_sizes(values[1]), run.listed_sizes(values[2]), run.integers(values[3])
    masks = {
        name: node.attributes.get(f"{name}_mask", 0) for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    }
    specs = [{name: bool(mask >> bit & 1) for name, mask in masks.items()} for bit in range(len(begin))]
    if not len(begin) == len(end) == len(stride) or sum(on["ellipsis"] for on in specs) > 1:
        raise CannotRunError(f"{node.label} has unequal lists of bounds, or two ellipses")
    rank = len(run.axes(value))
    used = sum(not (on["ellipsis"] or on["new_axis"]) for on in specs)
    if used > rank:
        raise CannotRunError(f"{node.label} slices {used} axes of {rank}")
    axis, dropped, added, kept = 0, [], [], 0  # the axis of the input, and what to do to the axes afterwards
    for on, start, stop, step in zip(specs, begin, end, stride, strict=True):
        if on["ellipsis"]:
            axis, kept = axis + rank - used, kept + rank - used
        elif on["new_axis"]:
            added.append(kept)
            kept += 1
        elif on["shrink_axis"]:  # which overrules begin_mask and end_mask
            if step <= 0:
                raise CannotRunError(f"{node.label} goes backwards where it picks one element")
            value = _pick(run, value, axis, start)
            dropped.append(axis)
            axis += 1
        elif step == 0:
            raise CannotRunError(f"{node.label} has a stride of zero")
        else:
            ends = (None if on["begin"] else start, None if on["end"] else stop)
            value = _layout.cut(run, value, axis, *ends, step, python_slice)
            axis, kept = axis + 1, kept + 1
    if dropped:
        value = _layout.squeeze(run, value, dropped)
    return [_layout.insert(run, value, added) if added else value]


def _pick(run: Run, value: Any, axis: int, start: Poly) -> Any:
    """Take one element along an axis, which stays with a length of 1."""
    number = number_of(start)
    if number is None:
        raise Refusal(f"{run.label} picks where a size that is open says", depth=2)
    return _layout.take(run, value, axis, np.array([number]))


@register(TENSORFLOW, "GatherV2 Gather", "move")
def _gather(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    if node.attributes.get("batch_dims", 0):
        raise Refusal(f"{node.label} gathers batch by batch, which the proof doesn't follow")
    if isinstance(values[1], np.ndarray) and np.any(values[1] < 0):
        raise CannotRunError(f"{node.label} has a negative index")
    return _ops_common.gather(run, node, values[0], values[1], _only(run, values[2]) if len(values) > 2 else 0)


@register(TENSORFLOW, "ReverseV2", "move")
def _reverse(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    value, axes = values[0], run.axes(values[0])
    chosen = [normalize_axis(axis, len(axes)) for axis in run.integers(values[1])]
    if len(chosen) > len(set(chosen)):
        raise CannotRunError(f"{node.label} reverses an axis twice")
    for axis in chosen:
        _layout.listed(axes[axis], f"{node.label} reverses an axis whose size is open")
        value = _layout.along(run, value, axis, lambda cells: cells[::-1], axes[axis])
    return [value]


@register(TENSORFLOW, "BroadcastTo", "move")
def _broadcast_to(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    return [_layout.broadcast(run, values[0], run.listed_sizes(values[1]), both_ways=False)]


@register(TENSORFLOW, "Shape ShapeN", "shape")
def _shape(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    dtype = node.attributes.get("out_type") or np.dtype(np.int32)
    return [run.sizes_tensor([_sizes.size_of(axis) for axis in run.axes(value)], dtype) for value in values]


@register(TENSORFLOW, "Size Rank", "shape")
def _size(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    axes = run.axes(values[0])
    if node.op == "Rank":
        return [np.array(len(axes), np.int32)]
    dtype = node.attributes.get("out_type") or np.dtype(np.int32)
    return [run.sizes_tensor([_sizes.product_of(map(_sizes.size_of, axes))], dtype, scalar=True)]


@register(TENSORFLOW, "Const HostConst", "constant")
def _const(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    value = tensor_value(node.raw.attr["value"].tensor)
    if value is None:
        raise Refusal(f"the value of {node.label} is too large or cannot be read")
    return [value]


@register(TENSORFLOW, "Fill", "constant")
def _fill(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    return [_ops_common.fill(run, run.listed_sizes(values[0]), values[1])]


@register(TENSORFLOW, "Prod Sum Min Max", "constant")
def _reduce(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    keep = bool(node.attributes.get("keep_dims", False))
    return _ops_common.reduce(run, node, values[0], run.integers(values[1]), keep)


def _only(run: Run, value: Any) -> int:
    (number,) = run.integers(value)
    return number


def _axis(run: Run, value: Any, axis: Any) -> int:
    """Return the axis that a tensor of one integer names."""
    return normalize_axis(_only(run, axis), len(run.axes(value)))
