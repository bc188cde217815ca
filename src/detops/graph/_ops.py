"""What operators mean, on symbols and on plain arrays alike.

Movement operators apply one NumPy function to an array, be it of values or of positions in the pool. Arithmetic builds
normal forms where a symbol takes part, and computes in the array's own dtype where none does. `_ops_onnx` and `_ops_tf`
each fill a table of operators; `_ops_common` holds what both share.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from detops.graph import _poly
from detops.graph._finding import CannotRunError, Refusal
from detops.graph._forms import Budget, Pool
from detops.graph._view import Node, TensorInfo

MAX_ELEMENTS = 1 << 21
HUGE = 1 << 31  # an integer from here on means "to the end", not a size


@dataclass(frozen=True)
class Symbolic:
    """A tensor of expressions: positions in the pool, and the dtype where it is known."""

    ids: NDArray[np.int64]
    dtype: np.dtype[Any] | None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape at the sizes of this run."""
        return self.ids.shape


@dataclass(frozen=True)
class Foreign:
    """A tensor that comes from neither box_predictions nor anchors nor a constant; `root` is where it enters."""

    root: str
    info: TensorInfo


Value = Symbolic | NDArray[Any]
Function = Callable[["Run", Node, Sequence[Any]], Sequence[Any]]
Kind = Literal["move", "arithmetic", "shape", "constant"]


@dataclass(frozen=True)
class Operator:
    """An operator: its kind, which inputs carry data (None: all), and what it does."""

    kind: Kind
    data: tuple[int, ...] | None
    apply: Function

    def data_inputs(self, node: Node) -> tuple[str, ...]:
        """Return the tensors whose elements end up in the node's output."""
        if self.kind == "shape":
            return ()
        picked = range(len(node.inputs)) if self.data is None else self.data
        return tuple(node.inputs[index] for index in picked if index < len(node.inputs) and node.inputs[index])


Table = dict[str, Operator]


def register(
    table: Table, names: str, kind: Kind, data: tuple[int, ...] | None = (0,)
) -> Callable[[Function], Function]:
    """Enter the decorated function into `table` under each of the names."""

    def enter(function: Function) -> Function:
        for name in names.split():
            table[name] = Operator(kind, None if kind in ("arithmetic", "constant") else data, function)
        return function

    return enter


class Run:
    """One evaluation of a piece of graph: the pool of expressions and the helpers that operators share."""

    def __init__(self, budget: Budget | None = None) -> None:
        self.pool = Pool(budget)

    def move(self, value: Value, function: Callable[[NDArray[Any]], NDArray[Any]]) -> Value:
        """Move elements about."""
        if isinstance(value, Symbolic):
            return Symbolic(function(value.ids), value.dtype)
        return function(value)

    def cut(self, value: Value, function: Callable[[NDArray[Any]], Sequence[NDArray[Any]]]) -> list[Value]:
        """Move elements into several tensors."""
        if isinstance(value, Symbolic):
            return [Symbolic(piece, value.dtype) for piece in function(value.ids)]
        return list(function(value))

    def join(self, values: Sequence[Value], function: Callable[[list[NDArray[Any]]], NDArray[Any]]) -> Value:
        """Move elements of several tensors into one."""
        dtype = common_dtype(values)
        if any(isinstance(value, Symbolic) for value in values):
            return Symbolic(function([self.lift(value) for value in values]), dtype)
        return function([np.asarray(value) for value in values])

    def lift(self, value: Value) -> NDArray[np.int64]:
        """Return the positions in the pool of a tensor's elements."""
        if isinstance(value, Symbolic):
            return value.ids
        if value.dtype.kind != "f":
            raise Refusal("integers are mixed with the boxes")
        return self.pool.constants(value)

    def fold(
        self,
        values: Sequence[Value],
        symbolic: Callable[[_poly.Poly, _poly.Poly], _poly.Poly],
        numeric: Callable[[Any, Any], Any],
    ) -> Value:
        """Combine values from the left with a function of two."""
        if not values:
            raise Refusal("an operator has no inputs")
        result = values[0]
        for value in values[1:]:
            dtype = common_dtype((result, value))
            shape = np.broadcast_shapes(result.shape, value.shape)
            check_size(shape)
            if isinstance(result, Symbolic) or isinstance(value, Symbolic):
                ids = self.pool.binary(symbolic, self.lift(result), self.lift(value))
                result = Symbolic(ids, dtype)
            else:
                result = np.asarray(numeric(result, value), dtype=result.dtype)
        return result

    def limit(self, value: Value, bound: Value | None, kind: Literal["min", "max"]) -> Value:
        """Bound a value; a bound that no finite value reaches is none."""
        if bound is None:
            return value
        if isinstance(value, np.ndarray) and isinstance(bound, Symbolic):
            value, bound = bound, value
        if isinstance(value, Symbolic) and isinstance(bound, np.ndarray) and bound.dtype.kind == "f":
            top = np.finfo(bound.dtype).max
            idle = (bound >= top) if kind == "min" else (bound <= -top)
            if bool(idle.all()):
                shape = np.broadcast_shapes(value.shape, bound.shape)
                return Symbolic(np.broadcast_to(value.ids, shape), common_dtype((value, bound)))
        if kind == "min":
            return self.fold((value, bound), _poly.minimum, np.minimum)
        return self.fold((value, bound), _poly.maximum, np.maximum)

    def exp(self, value: Value) -> Value:
        """Take the exponential."""
        if isinstance(value, Symbolic):
            return Symbolic(self.pool.unary(_poly.exp, value.ids), value.dtype)
        return np.asarray(np.exp(value), dtype=value.dtype)

    def negate(self, value: Value) -> Value:
        """Change the sign."""
        if isinstance(value, Symbolic):
            minus = _poly.constant_poly(Fraction(-1))
            return Symbolic(self.pool.unary(lambda poly: _poly.multiply(poly, minus), value.ids), value.dtype)
        return np.asarray(-value)

    def cast(self, value: Value, dtype: np.dtype[Any] | None, node: Node) -> Value:
        """Convert a constant; let symbols through where nothing changes."""
        if dtype is None:
            raise Refusal(f"{node.label} casts to a type that NumPy has no name for")
        if isinstance(value, Symbolic):
            if value.dtype != dtype:
                known = "an unknown type" if value.dtype is None else value.dtype.name
                raise Refusal(f"{node.label} casts from {known} to {dtype.name}, which changes the values", depth=2)
            return value
        if dtype.kind == "f" and value.dtype.kind in "iu":
            raise Refusal(f"{node.label} turns an integer into a float; a proof at a few sizes cannot follow that")
        return value.astype(dtype)


def common_dtype(values: Sequence[Value]) -> np.dtype[Any] | None:
    """Return the dtype that all values have; a symbol may not know its own."""
    dtypes = {value.dtype for value in values if value.dtype is not None}
    if len(dtypes) > 1:
        raise CannotRunError("an operator mixes " + " and ".join(sorted(dtype.name for dtype in dtypes)))
    return next(iter(dtypes), None)


def check_size(shape: Sequence[int]) -> None:
    """Refuse to build a tensor that is too large for a proof."""
    if any(dim < 0 for dim in shape):
        raise CannotRunError(f"a shape has a negative dimension: {tuple(shape)}")
    if math.prod(shape) > MAX_ELEMENTS:
        raise Refusal(f"the proof would need a tensor of {math.prod(shape)} elements, which is too many")
