"""Shape rules of TensorFlow's operators: one for each that graphs have before a box decode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from detops.graph.model._graph import Shape
from detops.graph.model._tf_schema import messages
from detops.graph.model._tf_tensors import shape_of, tensor_value

MAX_RANK = 64  # no list of sizes is longer
MAX_PIECES = 1 << 12  # nothing that is cut into more is a decode

Result = Shape | list[Shape]  # of the only output, or of each


class _UnknownError(LookupError):
    """The shape doesn't follow from what is known."""


@dataclass(frozen=True)
class Known:
    """Known facts of a node's outputs: their shapes, and the first one's elements where it is a list of integers."""

    shapes: Sequence[Shape | None]
    value: Sequence[int | None] | None = None


@dataclass(frozen=True)
class Given:
    """Facts of a node for its rule; one that isn't known ends the rule."""

    node: Any
    inputs: Sequence[Known]  # each with one output, the one that is read

    def attribute(self, name: str) -> Any:
        """Return an attribute; reading one that isn't there would put it into the graph."""
        return self.node.attr[name] if name in self.node.attr else messages()["AttrValue"]()

    def shape(self, index: int) -> Shape:
        shape = self.inputs[index].shapes[0]
        if shape is None:
            raise _UnknownError
        return shape

    def integers(self, index: int) -> Sequence[int | None]:
        """Return the elements of a list (or of a scalar, as a list of one), None for those that aren't known."""
        value = self.inputs[index].value
        if value is None:
            (length,) = self.shape(index) or (1,)
            if length is None or length > MAX_RANK:
                raise _UnknownError
            value = [None] * length
        return value

    def integer(self, index: int) -> int:
        number = self.integers(index)[0]
        if number is None:
            raise _UnknownError
        return number


_Rule = Callable[[Given], Result]
RULES: dict[str, _Rule] = {}


def _rule(names: str) -> Callable[[_Rule], _Rule]:
    def enter(rule: _Rule) -> _Rule:
        RULES.update(dict.fromkeys(names.split(), rule))
        return rule

    return enter


_rule("Const HostConst")(lambda given: _stated(given.attribute("value"), "tensor"))
_rule("Placeholder PlaceholderWithDefault")(lambda given: _stated(given.attribute("shape"), "shape"))
_rule(
    "Identity StopGradient PreventGradient Snapshot Cast Exp Neg Relu Relu6 Sigmoid Tanh Softmax BiasAdd AddN ReverseV2"
)(lambda given: given.shape(0))
_rule("Conv2D DepthwiseConv2dNative MaxPool AvgPool ResizeBilinear ResizeNearestNeighbor CropAndResize FusedBatchNorm")(
    lambda given: (None,) * 4
)
_rule("FusedBatchNormV2 FusedBatchNormV3")(lambda given: [(None,) * 4])
_rule("Reshape BroadcastTo")(lambda given: _sizes(given.integers(1)))
_rule("Fill")(lambda given: _sizes(given.integers(0)))
_rule("Shape")(lambda given: (len(given.shape(0)),))
_rule("Size Rank")(lambda given: ())
_rule("Range NonMaxSuppression NonMaxSuppressionV2 NonMaxSuppressionV3")(lambda given: (None,))
_rule("Where")(lambda given: (None, len(given.shape(0))))
_rule("TopKV2")(lambda given: [(*given.shape(0)[:-1], None)] * 2)


@_rule("Add AddV2 Sub Mul RealDiv Div Minimum Maximum ClipByValue")
def _broadcast(given: Given) -> Shape:
    shapes = [given.shape(index) for index in range(len(given.inputs))]
    rank = max(map(len, shapes))
    result: list[int | None] = []
    for dims in zip(*((1,) * (rank - len(shape)) + shape for shape in shapes), strict=True):
        known = {dim for dim in dims if dim not in (1, None)}
        result.append(known.pop() if len(known) == 1 else None if None in dims else 1)
    return tuple(result)


@_rule("MatMul")
def _matmul(given: Given) -> Shape:
    second = given.inputs[1].shapes[0]
    return (None, None if second is None else second[0 if given.attribute("transpose_b").b else 1])


@_rule("Transpose")
def _transpose(given: Given) -> Shape:
    order, shape = given.integers(1), given.inputs[0].shapes[0]
    return tuple(None if shape is None or axis is None else shape[axis] for axis in order)


@_rule("ExpandDims")
def _expand_dims(given: Given) -> Shape:
    shape = given.shape(0)
    axis = given.integer(1) % (len(shape) + 1)
    return (*shape[:axis], 1, *shape[axis:])


@_rule("Squeeze")
def _squeeze(given: Given) -> Shape:
    shape, axes = given.shape(0), given.attribute("squeeze_dims").list.i
    if not axes:
        raise _UnknownError
    gone = {axis % len(shape) for axis in axes}
    return tuple(dim for index, dim in enumerate(shape) if index not in gone)


@_rule("ConcatV2")
def _concat(given: Given) -> Shape:
    shapes = [known.shapes[0] for known in given.inputs[:-1]]
    shape = next((shape for shape in shapes if shape is not None), None)
    if shape is None:
        raise _UnknownError
    axis = given.integer(-1) % len(shape)
    parts = [None if other is None else other[axis] for other in shapes]
    whole = None if None in parts else sum(part or 0 for part in parts)
    return (*shape[:axis], whole, *shape[axis + 1 :])


@_rule("Pack")
def _pack(given: Given) -> Shape:
    shape = given.shape(0)
    axis = given.attribute("axis").i % (len(shape) + 1)
    return (*shape[:axis], len(given.inputs), *shape[axis:])


def _pieces(count: int) -> int:
    if not 0 < count <= MAX_PIECES:
        raise _UnknownError
    return count


@_rule("Unpack")
def _unpack(given: Given) -> list[Shape]:
    shape, axis = given.shape(0), given.attribute("axis").i
    axis %= len(shape)
    return [(*shape[:axis], *shape[axis + 1 :])] * _pieces(given.attribute("num").i)


@_rule("Split")
def _split(given: Given) -> list[Shape]:
    shape, pieces = given.shape(1), _pieces(given.attribute("num_split").i)
    axis = given.integer(0) % len(shape)
    size = shape[axis]
    return [(*shape[:axis], None if size is None else size // pieces, *shape[axis + 1 :])] * pieces


@_rule("Slice")
def _slice(given: Given) -> Shape:
    shape, begin, size = given.shape(0), given.integers(1), given.integers(2)
    return tuple(
        dim if (start, count) == (0, -1) else None if count == -1 else count
        for dim, start, count in zip(shape, begin, size, strict=True)
    )


@_rule("Tile")
def _tile(given: Given) -> Shape:
    pairs = zip(given.shape(0), given.integers(1), strict=True)
    return tuple(None if dim is None or count is None else dim * count for dim, count in pairs)


@_rule("StridedSlice")
def _strided_slice(given: Given) -> Shape:
    shape = given.shape(0)
    if given.attribute("ellipsis_mask").i or given.attribute("new_axis_mask").i:
        raise _UnknownError
    count = len(given.integers(1))
    shrink = given.attribute("shrink_axis_mask").i
    kept = [axis for axis in range(count) if not shrink & 1 << axis]
    return (*(_length(given, axis, shape[axis]) for axis in kept), *shape[count:])


def _length(given: Given, axis: int, dim: int | None) -> int | None:
    """Return how much of an axis a StridedSlice keeps."""
    index = _index(given, axis)
    if index == slice(None, None, 1):
        return dim
    return None if dim is None or index is None else len(range(dim)[index])


def _index(given: Given, axis: int) -> slice | None:
    """Return the slice that a StridedSlice takes along an axis; None where a bound isn't known."""
    bounds: list[int | None] = []
    for at, name in ((1, "begin_mask"), (2, "end_mask")):
        masked = given.attribute(name).i & 1 << axis
        bound = None if masked else given.integers(at)[axis]
        if not masked and bound is None:
            return None
        bounds.append(bound)
    step = given.integers(3)[axis]
    return None if not step else slice(bounds[0], bounds[1], step)


@_rule("Gather GatherV2")
def _gather(given: Given) -> Shape:
    shape, indices = given.shape(0), given.shape(1)
    axis = (given.integer(2) if len(given.inputs) > 2 else 0) % len(shape)
    if given.attribute("batch_dims").i:
        raise _UnknownError
    return (*shape[:axis], *indices, *shape[axis + 1 :])


def _stated(attribute: Any, kind: str) -> Shape:
    shape = shape_of(attribute.tensor.tensor_shape if kind == "tensor" else attribute.shape)
    if shape is None or attribute.WhichOneof("value") != kind:
        raise _UnknownError
    return shape


def _sizes(dims: Sequence[int | None]) -> Shape:
    return tuple(None if dim == -1 else dim for dim in dims)


# ---------------------------------------------------------------- the elements of sizes, as far as they are known

_Value = Callable[[Given], Sequence[int | None]]


def _constant_value(given: Given) -> list[int | None]:
    tensor = given.attribute("value").tensor
    value = tensor_value(tensor) if len(tensor.tensor_shape.dim) < 2 else None
    if value is None or value.dtype.kind != "i" or value.size > MAX_RANK:
        raise _UnknownError
    return [int(number) for number in value.ravel()]


def _stacked(given: Given) -> list[int | None]:
    if any(known.shapes[0] != () for known in given.inputs):
        raise _UnknownError
    return [given.integers(index)[0] for index in range(len(given.inputs))]


def _picked(given: Given) -> Sequence[int | None]:
    """Return what a StridedSlice takes of a list."""
    values = given.integers(0)
    if len(given.integers(1)) != 1 or given.attribute("ellipsis_mask").i or given.attribute("new_axis_mask").i:
        raise _UnknownError
    if given.attribute("shrink_axis_mask").i:
        return [values[given.integer(1)]]
    index = _index(given, 0)
    if index is None:
        raise _UnknownError
    return values[index]


def _joined(given: Given) -> list[int | None]:
    if any(len(given.shape(index)) != 1 for index in range(len(given.inputs) - 1)):
        raise _UnknownError
    return [number for index in range(len(given.inputs) - 1) for number in given.integers(index)]


VALUES: dict[str, _Value] = {
    "Const": _constant_value,
    "HostConst": _constant_value,
    "Identity": lambda given: given.integers(0),
    "Cast": lambda given: given.integers(0),
    "Shape": lambda given: given.shape(0),
    "Pack": _stacked,
    "StridedSlice": _picked,
    "ConcatV2": _joined,
}
