"""Operators of ONNX and TensorFlow alike, once their arguments are known."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from detops.graph._finding import CannotRunError, Refusal
from detops.graph.model._graph import Node
from detops.graph.ops import _layout
from detops.graph.ops._ops import MAX_ELEMENTS, Function, Run, Symbolic, Value
from detops.graph.symbols import _poly, _sizes
from detops.graph.symbols._poly import Poly

ADD = (_poly.add, np.add)
SUBTRACT = (_poly.subtract, np.subtract)
MULTIPLY = (_poly.multiply, np.multiply)
MAX_POWER = 3


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


def power(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    """Pow, by a small whole number."""
    base, exponent = values
    if not isinstance(exponent, np.ndarray) or exponent.ndim or exponent.item() not in range(1, MAX_POWER + 1):
        raise Refusal(f"{node.label} ({node.op}) is no power that the proof follows")
    if not isinstance(base, Symbolic):
        return [np.asarray(np.power(base, exponent.astype(base.dtype)))]
    return [run.fold([base] * int(exponent.item()), *MULTIPLY)]


def identity(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    """Identity, and what else leaves a tensor as it is."""
    return [values[0]]


def tile(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    """Tile."""
    return [_layout.tile(run, values[0], run.listed_sizes(values[1]))]


def count(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    """Range; up to an open size, it counts the positions of an axis."""
    if isinstance(values[1], Symbolic) and _is(values[0], 0) and _is(values[2], 1):
        atoms = [run.sizes.atom_of(size) for size in run.listed_sizes(values[1])]
        if len(atoms) == 1 and atoms[0] is not None and values[1].dtype == np.int64:
            return [run.position(atoms[0])]
    start, limit, delta = (run.integers(value)[0] for value in values)
    if delta == 0 or abs(limit - start) > MAX_ELEMENTS * abs(delta):
        raise Refusal(f"{node.label} counts too far for a proof")
    return [np.arange(start, limit, delta, dtype=values[0].dtype)]


def _is(value: Any, number: int) -> bool:
    return isinstance(value, np.ndarray) and value.size == 1 and bool(value.ravel()[0] == number)


def fill(run: Run, sizes: Sequence[Poly], value: Any) -> Value:
    """Fill a tensor with one value, a constant."""
    if isinstance(value, Symbolic):
        raise Refusal(f"{run.label} fills with a value that is computed from the boxes", depth=1)
    return _layout.broadcast(run, np.asarray(value).reshape(()), sizes, both_ways=False)


def reduce(run: Run, node: Node, value: Value, axes: Sequence[int] | None, keep: bool) -> Sequence[Value]:
    """Reduce a tensor of sizes."""
    _integers_only(node, value)
    kind = node.op.removeprefix("Reduce")
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "iu":
            raise Refusal(f"{node.label} ({node.op}) computes a size in floating point")
        function: Any = {"Prod": np.prod, "Sum": np.sum, "Min": np.min, "Max": np.max}[kind]
        picked = None if axes is None else tuple(axes)
        return [np.asarray(function(value, axis=picked, keepdims=keep), dtype=value.dtype)]
    rank = len(run.axes(value))
    chosen = range(rank) if axes is None else {_layout.normalize_axis(axis, rank) for axis in axes}
    for axis in sorted(chosen, reverse=True):
        pieces = _layout.split(run, value, axis, [1] * _sizes.num_cells(run.axes(value)[axis]))
        if not pieces:
            raise Refusal(f"{node.label} ({node.op}) reduces nothing")
        value = functools.reduce(lambda left, right: _reduced(run, kind, left, right), pieces)
        value = value if keep else _layout.squeeze(run, value, [axis])
    return [value]


def _reduced(run: Run, kind: str, left: Value, right: Value) -> Value:
    if kind in ("Min", "Max"):
        return run.limit(left, right, "min" if kind == "Min" else "max")
    return run.fold((left, right), *(ADD if kind == "Sum" else MULTIPLY))


def _integers_only(node: Node, *values: Any) -> None:
    """Refuse an operator on the boxes that no decode has."""
    for value in values:
        if isinstance(value, Symbolic) and (value.dtype is None or value.dtype.kind not in "iu"):
            raise Refusal(f"{node.label} ({node.op}) computes on the boxes, and no decode does that", depth=1)


def equal(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    """Equal."""
    _integers_only(node, *values)
    if any(isinstance(value, Symbolic) for value in values):
        return [run.signs(*values) == 0]
    run.together(*values)
    return [np.asarray(np.equal(*values))]


def select(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
    """Where."""
    _integers_only(node, *values)
    if isinstance(values[0], Symbolic) or values[0].dtype != np.bool_:
        raise CannotRunError(f"{node.label} needs a condition that is boolean")
    return [run.choose(*values)]


def divide(numeric: Callable[[Any, Any], Any]) -> Function:
    """Make a division: of floats by a constant, of sizes where nothing remains."""

    def apply(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
        sizes = any(isinstance(value, Symbolic) and (value.dtype or np.dtype(float)).kind in "iu" for value in values)
        return [run.ratio(*values) if sizes else run.fold(values, _poly.divide, numeric)]

    return apply


def divide_integers(numeric: Callable[[Any, Any], Any]) -> Function:
    """Make a division that no decode does on boxes."""
    function = divide(numeric)

    def apply(run: Run, node: Node, values: Sequence[Any]) -> Sequence[Any]:
        _integers_only(node, *values)
        return function(run, node, values)

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


def gather(run: Run, node: Node, value: Value, indices: Any, axis: int) -> Sequence[Value]:
    """Gather along an axis."""
    if isinstance(indices, Symbolic):
        raise Refusal(f"{node.label} takes an index that is computed from the boxes or from an open size")
    return [_layout.take(run, value, _layout.normalize_axis(axis, len(run.axes(value))), indices)]


def python_slice(start: int | None, stop: int | None, step: int, size: int) -> slice:
    """Return the slice that NumPy and TensorFlow mean."""
    return slice(start, stop, step)
