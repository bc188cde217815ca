"""ONNX's operators, as far as box decodes use them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from detops.graph._finding import CannotRunError, Refusal
from detops.graph.model._graph import Node
from detops.graph.ops import _layout, _ops_common
from detops.graph.ops._layout import normalize_axis
from detops.graph.ops._ops import Function, Run, Symbolic, Table, register
from detops.graph.ops._ops_common import ADD, MULTIPLY, SUBTRACT, bound, combine, divide, truncated_division
from detops.graph.symbols import _sizes
from detops.graph.symbols._sizes import number_of

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
register(ONNX, "Div", "arithmetic")(_since_opset_7(divide(truncated_division)))
register(ONNX, "Min", "arithmetic")(bound("min"))
register(ONNX, "Max", "arithmetic")(bound("max"))
register(ONNX, "Exp", "arithmetic")(_ops_common.exp)
register(ONNX, "Neg", "arithmetic")(_ops_common.negate)
register(ONNX, "Pow", "arithmetic")(_ops_common.power)
register(ONNX, "Identity", "move")(_ops_common.identity)
register(ONNX, "Tile", "move")(_ops_common.tile)
register(ONNX, "Range", "constant")(_ops_common.count)
register(ONNX, "Equal", "constant")(_ops_common.equal)
register(ONNX, "Where", "constant")(_ops_common.select)


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
    wanted = run.listed_sizes(_argument(node, values, 1, "shape", 5))
    as_it_is = bool(node.attributes.get("allowzero", 0))
    if not as_it_is:
        sizes = [_sizes.size_of(axis) for axis in run.axes(values[0])]
        if any(index >= len(sizes) for index, size in enumerate(wanted) if not size):
            raise CannotRunError(f"{node.label} copies the size of an axis that isn't there")
        wanted = [size or sizes[index] for index, size in enumerate(wanted)]
    return [_layout.reshape(run, values[0], wanted, empty=as_it_is)]


@register(ONNX, "Flatten", "move")
def _flatten(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    axes = run.axes(values[0])
    axis = node.attributes.get("axis", 1)
    if axis != len(axes):
        axis = normalize_axis(axis, len(axes)) if axes else 0
    sizes = [_sizes.product_of(map(_sizes.size_of, part)) for part in (axes[:axis], axes[axis:])]
    return [_layout.reshape(run, values[0], sizes)]


@register(ONNX, "Transpose", "move")
def _transpose(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    order = node.attributes.get("perm")
    return [_layout.permute(run, values[0], range(len(run.axes(values[0])))[::-1] if order is None else order)]


@register(ONNX, "Squeeze", "move")
def _squeeze(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    axes = _argument(node, values, 1, "axes", 13)
    picked = None if axes is None else run.integers(axes)
    if picked == []:
        raise Refusal(f"{node.label} has an empty list of axes, which runtimes read in two ways")
    return [_layout.squeeze(run, values[0], picked)]


@register(ONNX, "Unsqueeze", "move")
def _unsqueeze(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    return [_layout.insert(run, values[0], run.integers(_argument(node, values, 1, "axes", 13)))]


@register(ONNX, "Split", "move")
def _split(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    axes = run.axes(values[0])
    axis, pieces = normalize_axis(node.attributes.get("axis", 0), len(axes)), len(node.outputs)
    given = _argument(node, values, 1, "split", 13)
    if given is not None:
        sizes = run.integers(given)
        if len(sizes) != pieces:
            raise CannotRunError(f"{node.label} has {pieces} outputs for {len(sizes)} parts")
        return _layout.split(run, values[0], axis, sizes)
    size = number_of(_sizes.size_of(axes[axis]))
    if node.version < 18 or size is None or size % pieces == 0:
        return _layout.split_evenly(run, values[0], axis, pieces)
    if node.attributes.get("num_outputs", pieces) != pieces:
        raise CannotRunError(f"{node.label} has {pieces} outputs for {node.attributes['num_outputs']} parts")
    chunk = -(-size // pieces)
    sizes = [chunk] * (pieces - 1)
    return _layout.split(run, values[0], axis, [*sizes, size - sum(sizes)])


@register(ONNX, "Slice", "move")
def _slice(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    starts, ends, axes = (
        _argument(node, values, index, name, 10) for index, name in ((1, "starts"), (2, "ends"), (3, "axes"))
    )
    steps = values[4] if len(values) > 4 else None
    first, last = run.listed_sizes(starts), run.listed_sizes(ends)
    rank = len(run.axes(values[0]))
    along = list(range(len(first))) if axes is None else run.integers(axes)
    along = [normalize_axis(axis, rank) for axis in along]
    stride = [1] * len(first) if steps is None else run.integers(steps)
    if not len(first) == len(last) == len(along) == len(stride) == len(set(along)) or 0 in stride:
        raise CannotRunError(f"{node.label} has unequal lists of starts, ends, axes and steps")
    value = values[0]
    for axis, start, stop, step in zip(along, first, last, stride, strict=True):
        if step < 0 and (number_of(stop) or 0) >= _sizes.ENDLESS:
            raise Refusal(f"{node.label} goes backwards up to the end, which runtimes read in two ways")
        value = _layout.cut(run, value, axis, start, stop, step, _onnx_slice)
    return [value]


def _onnx_slice(start: int | None, stop: int | None, step: int, size: int) -> slice:
    """Return the slice that ONNX means: unlike NumPy's, one that goes down begins within the axis."""
    first, last = ((end or 0) + (size if (end or 0) < 0 else 0) for end in (start, stop))
    if step > 0:
        return slice(min(max(first, 0), size), min(max(last, 0), size), step)
    first, last = min(max(first, 0), size - 1), min(max(last, -1), size - 1)
    return slice(first if size else 0, None if last < 0 and size else last if size else 0, step)


@register(ONNX, "Gather", "move")
def _gather(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    return _ops_common.gather(run, node, values[0], values[1], node.attributes.get("axis", 0))


@register(ONNX, "Concat", "move", data=None)
def _concat(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    axis = normalize_axis(node.attributes.get("axis", 1), len(run.axes(values[0])))
    return [_layout.concatenate(run, values, axis)]


@register(ONNX, "Expand", "move")
def _expand(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    return [_layout.broadcast(run, values[0], run.listed_sizes(values[1]), both_ways=True)]


@register(ONNX, "Shape", "shape")
def _shape(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    sizes = [_sizes.size_of(axis) for axis in run.axes(values[0])]
    picked = sizes[node.attributes.get("start", 0) : node.attributes.get("end", len(sizes))]
    return [run.sizes_tensor(picked, np.dtype(np.int64))]


@register(ONNX, "Size", "shape")
def _size(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    size = _sizes.product_of(map(_sizes.size_of, run.axes(values[0])))
    return [run.sizes_tensor([size], np.dtype(np.int64), scalar=True)]


@register(ONNX, "ConstantOfShape", "constant")
def _constant_of_shape(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    value = node.attributes.get("value") if "value" in node.attributes else np.zeros(1, np.float32)
    if value is None:
        raise Refusal(f"{node.label} fills with a value that cannot be read")
    return [_ops_common.fill(run, run.listed_sizes(values[0]), value)]


@register(ONNX, "ReduceProd ReduceSum ReduceMin ReduceMax", "constant")
def _reduce(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    if node.attributes.get("noop_with_empty_axes", 0):
        raise Refusal(f"{node.label} ({node.op}) may reduce nothing, which the proof doesn't follow")
    axes = _argument(node, values, 1, "axes", 13 if node.op == "ReduceSum" else 18)
    picked = None if axes is None else run.integers(axes) or None  # an empty list means all axes, too
    return _ops_common.reduce(run, node, values[0], picked, bool(node.attributes.get("keepdims", 1)))


def _argument(node: Node, values: Sequence[Any], index: int, name: str, since: int) -> Any:
    """Return what is an attribute in older opsets and an input from `since` on."""
    if node.version >= since:
        return values[index] if index < len(values) else None
    value = node.attributes.get(name)
    return np.array(value, np.int64) if isinstance(value, list) else value


@register(ONNX, "ScatterND", "move", data=(0, 2))
def _scatter_nd(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    if node.attributes.get("reduction", b"none") not in (b"none", "none"):
        raise Refusal(f"{node.label} adds to what it writes over")
    return [_layout.scatter(run, *values)]
