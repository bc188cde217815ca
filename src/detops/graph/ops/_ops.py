"""The meaning of operators, on symbols and on plain arrays alike.

Movement operators move cells, be they values or positions in the pool. Arithmetic builds normal forms where a symbol
takes part, and computes in the array's own dtype where none does. Integers that stem from open sizes are symbols too.
`_ops_onnx` and `_ops_tf` each fill a table of operators; `_ops_common` holds what both share.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from detops.graph._finding import CannotRunError, Refusal
from detops.graph.model._graph import Node, TensorInfo
from detops.graph.symbols import _poly, _sizes
from detops.graph.symbols._expressions import Budget, Pool
from detops.graph.symbols._poly import Poly
from detops.graph.symbols._sizes import Atom, Axis, Sizes, axis_of, num_cells

MAX_ELEMENTS = 1 << 21


@dataclass(frozen=True)
class Symbolic:
    """A tensor of expressions: the cells as positions in the pool, the axes, and the dtype where it is known."""

    ids: NDArray[np.int64]
    axes: tuple[Axis, ...]
    dtype: np.dtype[Any] | None


@dataclass(frozen=True)
class Foreign:
    """A tensor that comes from neither box_predictions nor anchors nor a constant; `root` is where it enters."""

    root: str
    info: TensorInfo


Value = Symbolic | NDArray[Any]
Function = Callable[["Run", Node, Sequence[Any]], Sequence[Any]]
Kind = Literal["move", "arithmetic", "shape", "constant"]


@dataclass(frozen=True)
class Definition:
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


Table = dict[str, Definition]


def register(
    table: Table, names: str, kind: Kind, data: tuple[int, ...] | None = (0,)
) -> Callable[[Function], Function]:
    """Enter the decorated function into `table` under each of the names."""

    def enter(function: Function) -> Function:
        for name in names.split():
            table[name] = Definition(kind, None if kind in ("arithmetic", "constant") else data, function)
        return function

    return enter


class Run:
    """One evaluation of a piece of graph: the pool of expressions and the helpers that operators share."""

    def __init__(self, budget: Budget | None = None) -> None:
        self.pool = Pool(budget)
        self.sizes = Sizes()
        self.label = "a node"  # of the node that is running

    def atom(self, axis: int, value: int | None, least: int) -> Atom:
        """Return an atom, with a symbol of its own for its length where that is open."""
        symbol = -1
        if value is None:
            (_, (symbol,)) = self.pool.element(int(self.pool.symbols(())))
        atom = Atom(axis, value, least, symbol)
        self.sizes.atoms[symbol] = atom
        return atom

    def position(self, atom: Atom) -> Symbolic:
        """Return the positions along an atom, as a list of integers: 0, 1, and so on."""
        ids = self.pool.symbols((1,))
        (_, (symbol,)) = self.pool.element(int(ids[0]))
        self.sizes.positions[symbol] = atom
        return Symbolic(ids, ((atom,),), np.dtype(np.int64))

    # ------------------------------------------------------------ tensors of both kinds

    def axes(self, value: Value) -> tuple[Axis, ...]:
        """Return a tensor's axes."""
        if isinstance(value, Symbolic):
            return value.axes
        return tuple(axis_of([dim]) for dim in value.shape)

    def cells(self, value: Value) -> NDArray[Any]:
        """Return a tensor's cells: positions in the pool, or values."""
        return value.ids if isinstance(value, Symbolic) else value

    def like(self, value: Value, cells: NDArray[Any], axes: Sequence[Axis]) -> Value:
        """Return a tensor of the same kind with other cells and axes."""
        if isinstance(value, Symbolic):
            return self.made(cells, axes, value.dtype)
        if not _sizes.atoms_in(axes):
            return cells
        return self.made(self.lift(cells), axes, value.dtype)

    def made(self, ids: NDArray[np.int64], axes: Sequence[Axis], dtype: np.dtype[Any] | None) -> Value:
        """Return a tensor of expressions; integers that turn out to be numbers become a plain array."""
        _sizes.check_once(axes, self.label)
        if dtype is None or dtype.kind not in "iu":
            return Symbolic(ids, tuple(axes), dtype)
        unique, inverse = np.unique(ids, return_inverse=True)
        sizes = [self._integer(int(position), dtype) for position in unique]
        numbers = [_sizes.number_of(size) for size in sizes]
        if None in numbers or _sizes.atoms_in(axes):
            return Symbolic(ids, tuple(axes), dtype)
        return np.array(numbers, dtype)[inverse].reshape(ids.shape)

    def _integer(self, position: int, dtype: np.dtype[Any]) -> Poly:
        """Return an integer as an expression of sizes, and refuse one that may overflow."""
        size = self.size_at(position)
        number = _sizes.number_of(size)
        if number is not None:
            if not np.iinfo(dtype).min <= number <= np.iinfo(dtype).max:
                raise Refusal(f"{self.label} computes an integer beyond {dtype.name}", depth=2)
        elif self.sizes.overflows(size, dtype.itemsize):
            raise Refusal(f"{self.label} computes something of sizes that may be beyond {dtype.name}", depth=2)
        return size

    def size_at(self, position: int) -> Poly:
        """Return the expression at a position of the pool, over the symbols of sizes."""
        poly, symbols = self.pool.element(position)
        return _poly.relabel(poly, symbols)

    def listed_sizes(self, value: Any) -> list[Poly]:
        """Return the elements of a list of integers (or of a scalar, as a list of one) as expressions of sizes."""
        if isinstance(value, Symbolic) and value.dtype is not None and value.dtype.kind in "iu":
            if len(value.axes) > 1 or _sizes.atoms_in(value.axes):
                raise Refusal(f"{self.label} takes a list of sizes that isn't a list of known length", depth=2)
            sizes = [self.size_at(int(position)) for position in value.ids.ravel()]
            if any(symbol in self.sizes.positions for size in sizes for symbol in _poly.used_slots(size)):
                raise Refusal(f"{self.label} takes a position for a size", depth=2)
            return sizes
        return [_sizes.of_number(number) for number in self.integers(value)]

    def integers(self, value: Any) -> list[int]:
        """Return the elements of a list of integers that are known."""
        if isinstance(value, Symbolic):
            what = "a size that the model leaves open" if _is_integer(value) else "the boxes"
            raise Refusal(f"{self.label} takes a size or an index that is computed from {what}", depth=2)
        if value is None or value.dtype.kind not in "iu" or value.ndim > 1:
            raise CannotRunError(f"{self.label} needs integers as a size or an index")
        return [int(number) for number in np.atleast_1d(value)]

    def indices(self, value: Value, column: int) -> NDArray[Any] | Atom:
        """Return a column of index tuples: numbers, or the atom of which each is the position."""
        if not isinstance(value, Symbolic):
            if value.dtype.kind not in "iu":
                raise CannotRunError(f"{self.label} needs integer indices")
            return value[..., column]
        if not _is_integer(value):
            raise Refusal(f"{self.label} takes an index that is computed from the boxes", depth=2)
        unique, inverse = np.unique(value.ids[..., column], return_inverse=True)
        sizes = [self.size_at(int(position)) for position in unique]
        numbers = [_sizes.number_of(size) for size in sizes]
        if None not in numbers:
            return np.array(numbers, np.int64)[inverse].reshape(value.ids.shape[:-1])
        for symbol, atom in self.sizes.positions.items():
            if sizes == [(((("x", symbol),), Fraction(1)),)]:
                return atom
        raise Refusal(f"{self.label} takes an index that is computed from an open size", depth=2)

    def sizes_tensor(self, sizes: Sequence[Poly], dtype: np.dtype[Any], scalar: bool = False) -> Value:
        """Return sizes as a list of integers, or a single one as a scalar."""
        ids = np.array([self.pool.expression(size) for size in sizes], np.int64)
        return self.made(ids.reshape(()) if scalar else ids, [] if scalar else [axis_of([len(sizes)])], dtype)

    def check_size(self, axes: Iterable[Axis]) -> None:
        """Refuse to build a tensor that is too large for a proof."""
        count = math.prod(num_cells(axis) for axis in axes)
        if count > MAX_ELEMENTS:
            raise Refusal(f"the proof would need a tensor of {count} elements, which is too many")

    def joined(
        self, values: Sequence[Value], function: Callable[[list[NDArray[Any]]], NDArray[Any]], axes: Sequence[Axis]
    ) -> Value:
        """Move elements of several tensors into one."""
        dtype = common_dtype(values)
        self.check_size(axes)
        if any(isinstance(value, Symbolic) for value in values):
            return self.made(function([self.lift(value) for value in values]), axes, dtype)
        return function([np.asarray(value) for value in values])

    def lift(self, value: Value) -> NDArray[np.int64]:
        """Return the positions in the pool of a tensor's elements."""
        if isinstance(value, Symbolic):
            return value.ids
        if value.dtype.kind not in "fiu":
            raise Refusal(f"{self.label} mixes {value.dtype.name} with the boxes")
        return self.pool.constants(value)

    # ------------------------------------------------------------ arithmetic

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
            axes = self.together(result, value)
            if isinstance(result, Symbolic) or isinstance(value, Symbolic):
                result = self.made(self.pool.binary(symbolic, self.lift(result), self.lift(value)), axes, dtype)
            else:
                result = np.asarray(numeric(result, value), dtype=result.dtype)
        return result

    def together(self, left: Value, right: Value) -> list[Axis]:
        """Return the axes of two tensors that are combined element by element."""
        return self.merged(self.axes(left), self.axes(right))

    def merged(self, ours: Sequence[Axis], theirs: Sequence[Axis]) -> list[Axis]:
        """Return the axes that broadcasting makes of two lists of them."""
        rank = max(len(ours), len(theirs))
        pairs = zip([()] * (rank - len(ours)) + list(ours), [()] * (rank - len(theirs)) + list(theirs), strict=True)
        axes = [_sizes.merge(self.sizes, *pair) for pair in pairs]
        self.check_size(axes)
        return axes

    def limit(self, value: Value, bound: Value | None, kind: Literal["min", "max"]) -> Value:
        """Bound a value; a bound that no finite value reaches is none."""
        if bound is None:
            return value
        if isinstance(value, np.ndarray) and isinstance(bound, Symbolic):
            value, bound = bound, value
        if isinstance(value, Symbolic) and _is_integer(value):
            signs = self.signs(value, bound, strict=False)
            return self.choose(signs <= 0 if kind == "min" else signs >= 0, value, bound)
        if isinstance(value, Symbolic) and isinstance(bound, np.ndarray) and bound.dtype.kind == "f":
            top = np.finfo(bound.dtype).max
            idle = (bound >= top) if kind == "min" else (bound <= -top)
            if bool(idle.all()):
                axes = self.together(value, bound)
                ids = np.broadcast_to(value.ids, [num_cells(axis) for axis in axes])
                return Symbolic(ids, tuple(axes), common_dtype((value, bound)))
        if kind == "min":
            return self.fold((value, bound), _poly.minimum, np.minimum)
        return self.fold((value, bound), _poly.maximum, np.maximum)

    def exp(self, value: Value) -> Value:
        """Take the exponential."""
        if _is_integer(value):
            raise CannotRunError(f"{self.label} takes the exponential of integers")
        if isinstance(value, Symbolic):
            return Symbolic(self.pool.unary(_poly.exp, value.ids), value.axes, value.dtype)
        return np.asarray(np.exp(value), dtype=value.dtype)

    def negate(self, value: Value) -> Value:
        """Change the sign."""
        if isinstance(value, Symbolic):
            minus = _poly.constant_poly(Fraction(-1))
            ids = self.pool.unary(lambda poly: _poly.multiply(poly, minus), value.ids)
            return self.made(ids, value.axes, value.dtype)
        return np.asarray(-value)

    def cast(self, value: Value, dtype: np.dtype[Any] | None, node: Node) -> Value:
        """Convert a constant; let symbols through where nothing changes."""
        if dtype is None:
            raise Refusal(f"{node.label} casts to a type that NumPy has no name for")
        if not isinstance(value, Symbolic):
            return value.astype(dtype)
        if value.dtype == dtype:
            return value
        if _is_integer(value):
            if dtype.kind != "i" or dtype.itemsize < 4:
                raise Refusal(f"{node.label} casts a size that the model leaves open to {dtype.name}", depth=2)
            return self.made(value.ids, value.axes, dtype)
        known = "an unknown type" if value.dtype is None else value.dtype.name
        raise Refusal(f"{node.label} casts from {known} to {dtype.name}, which changes the values", depth=2)

    # ------------------------------------------------------------ integers that stem from sizes

    def signs(self, left: Value, right: Value, *, strict: bool = True) -> NDArray[Any]:
        """Return the sign of left - right, element by element, where it is the same at all sizes.

        Where not `strict`, zero counts as either sign.
        """
        difference = self.fold((left, right), _poly.subtract, np.subtract)
        if not isinstance(difference, Symbolic):
            return np.sign(difference)
        if _sizes.atoms_in(difference.axes):
            raise Refusal(f"{self.label} compares element by element along an open axis", depth=2)
        unique, inverse = np.unique(difference.ids, return_inverse=True)
        signs = []
        for position in unique:
            size = self.size_at(int(position))
            sign = self.sizes.sign(size)
            if sign is None and not strict:
                sign = 1 if self.sizes.is_at_least(size, 0) else -1
                size = size if sign > 0 else _poly.subtract(_poly.ZERO, size)
                sign = sign if self.sizes.is_at_least(size, 0) else None
            if sign is None:
                raise Refusal(f"{self.label} decides by a size that the model leaves open", depth=2)
            signs.append(sign)
        return np.array(signs, np.int64)[inverse].reshape(difference.ids.shape)

    def ratio(self, left: Value, right: Value) -> Value:
        """Divide integers that stem from sizes, where nothing remains at any size."""
        dtype, axes = common_dtype((left, right)), self.together(left, right)
        ours, theirs = np.broadcast_arrays(self.lift(left), self.lift(right))
        found = []
        for over, under in zip(ours.ravel(), theirs.ravel(), strict=True):
            divisor = self.size_at(int(under))
            share = _sizes.quotient(self.size_at(int(over)), divisor)
            if share is None or not self.sizes.is_at_least(divisor, 1):
                raise Refusal(f"{self.label} divides a size that the model leaves open, with a remainder", depth=2)
            found.append(self.pool.expression(share))
        return self.made(np.array(found, np.int64).reshape(ours.shape), axes, dtype)

    def choose(self, condition: NDArray[Any], left: Value, right: Value) -> Value:
        """Take elements of one tensor or of another one."""
        axes = self.together(condition, left)
        axes = self.merged(axes, self.axes(right))
        dtype = common_dtype((left, right))
        if isinstance(left, Symbolic) or isinstance(right, Symbolic):
            return self.made(np.where(condition, self.lift(left), self.lift(right)), axes, dtype)
        return np.asarray(np.where(condition, left, right), dtype)


def _is_integer(value: Any) -> bool:
    return value.dtype is not None and value.dtype.kind in "iu"


def common_dtype(values: Sequence[Value]) -> np.dtype[Any] | None:
    """Return the dtype that all values have; a symbol may not know its own, but is never an integer then."""
    dtypes = {value.dtype for value in values if value.dtype is not None}
    if len(dtypes) > 1:
        raise CannotRunError("an operator mixes " + " and ".join(sorted(dtype.name for dtype in dtypes)))
    dtype = next(iter(dtypes), None)
    if dtype is not None and dtype.kind != "f" and any(value.dtype is None for value in values):
        raise Refusal("integers are mixed with the boxes")
    return dtype
