"""What ONNX's and TensorFlow's operators have in common, once their arguments are known."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from detops.graph import _poly
from detops.graph._finding import CannotRunError, Refusal
from detops.graph._ops import MAX_ELEMENTS, Function, Run, Symbolic, Value, check_size
from detops.graph._poly import Poly
from detops.graph._view import Node

ADD = (_poly.add, np.add)
SUBTRACT = (_poly.subtract, np.subtract)
MULTIPLY = (_poly.multiply, np.multiply)


def combine(symbolic: Callable[[Poly, Poly], Poly], numeric: Callable[[Any, Any], Any]) -> Function:
    """Make an operator of a function of two forms and its like for arrays."""

    def apply(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
        return [run.fold(values, symbolic, numeric)]

    return apply


def bound(kind: Literal["min", "max"]) -> Function:
    """Make a minimum or a maximum of all inputs."""

    def apply(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
        return [functools.reduce(lambda result, value: run.limit(result, value, kind), values)]

    return apply


def exp(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    """Exp."""
    return [run.exp(values[0])]


def negate(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    """Neg."""
    return [run.negate(values[0])]


def identity(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    """Identity, and what else leaves a tensor as it is."""
    return [values[0]]


def tile(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    """Tile."""
    repeats = integers(values[1], node)
    if len(repeats) != len(values[0].shape):
        raise CannotRunError(f"{node.label} repeats {len(repeats)} axes of {len(values[0].shape)}")
    check_size([size * count for size, count in zip(values[0].shape, repeats, strict=True)])
    return [run.move(values[0], lambda array: np.tile(array, repeats))]


def count(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    """Range."""
    start, limit, delta = (integers(value, node)[0] for value in values)
    if delta == 0 or abs(limit - start) > MAX_ELEMENTS * abs(delta):
        raise Refusal(f"{node.label} counts too far for a proof")
    return [np.arange(start, limit, delta, dtype=values[0].dtype)]


def transpose(run: Run, node: Node, value: Value, perm: Sequence[int] | None) -> Sequence[Value]:
    """Permute all axes; None reverses them."""
    if perm is not None and sorted(perm) != list(range(len(value.shape))):
        raise CannotRunError(f"{node.label} permutes {len(perm)} axes of a tensor of rank {len(value.shape)}")
    return [run.move(value, lambda array: np.transpose(array, perm))]


def reduce(node: Node, value: Value, axes: Sequence[int] | None, keep: bool) -> Sequence[Value]:
    """Reduce a tensor of sizes."""
    if isinstance(value, Symbolic):
        raise Refusal(f"{node.label} ({node.op}) computes on the boxes, and no decode does that", depth=1)
    if value.dtype.kind not in "iu":
        raise Refusal(f"{node.label} ({node.op}) computes a size in floating point")
    function: Any = {"Prod": np.prod, "Sum": np.sum, "Min": np.min, "Max": np.max}[node.op.removeprefix("Reduce")]
    picked = None if axes is None else tuple(axes)
    return [np.asarray(function(value, axis=picked, keepdims=keep), dtype=value.dtype)]


def integers(value: Any, node: Node) -> list[int]:
    """Return the elements of a constant (or of a shape, which is constant at one size) as a list."""
    if isinstance(value, Symbolic):
        raise Refusal(f"{node.label} takes a size or an index that is computed from the boxes")
    if value is None or value.dtype.kind not in "iu" or value.ndim > 1:
        raise CannotRunError(f"{node.label} needs integers as a size or an index")
    return [int(number) for number in np.atleast_1d(value)]


def constants_only(function: Callable[..., Any]) -> Function:
    """Make an operator of a NumPy function that symbols never enter."""

    def apply(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
        if any(isinstance(value, Symbolic) for value in values):
            raise Refusal(f"{node.label} ({node.op}) computes on the boxes, and no decode does that", depth=1)
        return [np.asarray(function(*values))]

    return apply


def truncated_division(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """Divide; integers round toward zero."""
    if left.dtype.kind == "f":
        return np.asarray(left / right)
    if not np.all(right):
        raise CannotRunError("an integer is divided by zero")
    return np.asarray(np.sign(left) * np.sign(right) * (np.abs(left) // np.abs(right)), dtype=left.dtype)


def floor_division(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """Divide and round down."""
    if left.dtype.kind in "iu" and not np.all(right):
        raise CannotRunError("an integer is divided by zero")
    return np.asarray(left // right)


def real_division(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """Divide floats."""
    if left.dtype.kind != "f":
        raise CannotRunError("integers are divided as if they were real numbers")
    return np.asarray(left / right)


def split_evenly(value: NDArray[Any], sizes: Sequence[int], axis: int) -> list[NDArray[Any]]:
    """Cut an array into pieces of the given sizes, which must add up to the axis."""
    if sum(sizes) != value.shape[axis] or any(size < 0 for size in sizes):
        raise CannotRunError(f"a Split into {list(sizes)} doesn't fit an axis of {value.shape[axis]}")
    return np.split(value, np.cumsum(sizes)[:-1], axis=axis)


def reshape(value: NDArray[Any], dims: Sequence[int]) -> NDArray[Any]:
    """Reshape; one dimension may be -1."""
    if any(dim < -1 for dim in dims):
        raise CannotRunError(f"a Reshape to {list(dims)} is impossible")
    return value.reshape([int(dim) for dim in dims])


def take(value: NDArray[Any], indices: NDArray[Any], axis: int) -> NDArray[Any]:
    """Gather along an axis; an index out of range is an error."""
    if indices.dtype.kind not in "iu":
        raise CannotRunError("a Gather needs integer indices")
    return np.take(value, indices, axis=axis, mode="raise")
