"""Anchors that an exporter has folded into constants, such as centers and sizes: corners are rebuilt from them.

The constants are tables with one row per anchor. A run with a symbol for each of their columns shows what a decode
takes for the corners: expressions of the columns. Two columns for two corners can be solved for, so each column is an
expression of corners, and the usual proof says whether the subgraph is a decode of those. How they were found doesn't
matter to it. Where no floats are such corners, as of small boxes far away, the anchors are rebuilt in center form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detops.graph._finding import Refusal
from detops.graph._schema import CORNER
from detops.graph.model._graph import Graph, Node
from detops.graph.ops._evaluate import cone, evaluate
from detops.graph.ops._ops import Run, Symbolic
from detops.graph.symbols import _poly
from detops.graph.symbols._expressions import Budget
from detops.graph.symbols._poly import Poly
from detops.graph.symbols._sizes import Axis, axis_of

MIN_ROWS = 5  # a shorter axis could be one of coordinates
NOT_FOUND = "anchors come from more than one tensor (or were folded into constants)"


@dataclass(frozen=True)
class Table:
    """A constant with one row per anchor."""

    axis: int  # the axis of the anchors
    cells: NDArray[Any]  # of polynomials over the slots of an anchor's four numbers, in the shape without that axis


@dataclass(frozen=True)
class Made:
    """Anchors that are no tensor of the graph yet."""

    name: str
    anchors: NDArray[Any]
    tables: Mapping[str, Table]


def rebuild(graph: Graph, box_predictions: str, target: str, budget: Budget | None, form: str = CORNER) -> Made:
    """Return anchors in a form, of which the tables are expressions, or refuse."""
    shape, dtype = graph.info(box_predictions).shape, graph.info(box_predictions).dtype
    if dtype is None or shape is None or len(shape) < 2 or shape[-1] != 4 or (shape[-2] or 0) < MIN_ROWS:
        raise Refusal(NOT_FOUND, depth=1)
    nodes = cone(graph, target, frozenset((box_predictions,)), budget)
    tables = _tables(graph, nodes, shape[-2] or 0)
    if not tables:
        raise Refusal(NOT_FOUND, depth=1)
    run = Run(budget)
    rows, axes = _rows(run, shape)
    columns = _Columns(run)
    last = axes[-1]
    given: dict[str, Any] = {box_predictions: Symbolic(rows, (*axes, (4,)), dtype)}
    for name, (axis, value) in tables.items():
        others = [axis_of([dim]) for dim in value.shape]
        others[axis] = last
        given[name] = Symbolic(columns.of(value, axis), tuple(others), value.dtype)
    result = evaluate(graph, run, nodes, given, target)
    if not isinstance(result, Symbolic) or result.ids.size != 4:
        raise Refusal(NOT_FOUND, depth=1)
    outputs = [run.size_at(int(position)) for position in result.ids.ravel()]
    boxes = {run.pool.element(int(position))[1][0] for position in rows.ravel()}
    known: dict[int, Poly] = {}
    anchors = np.empty((shape[-2] or 0, 4), dtype)
    with np.errstate(all="ignore"):  # a table may hold infinities, of which no anchors are made
        for coordinate in (0, 1):
            center, half_size = _center_and_half_size(outputs[coordinate], outputs[coordinate + 2], boxes)
            asked = center, _poly.add(half_size, half_size)
            corners = _poly.subtract(center, half_size), _poly.add(center, half_size)
            known |= _solved(corners if form == CORNER else asked, coordinate)
            middle, size = (columns.value(poly).astype(dtype) for poly in asked)
            if form == CORNER:
                low, high = (columns.value(poly) for poly in corners)
                anchors[:, coordinate], anchors[:, coordinate + 2] = _rounded(low, high, size, middle)
            else:
                anchors[:, coordinate], anchors[:, coordinate + 2] = middle, size
    if not np.isfinite(anchors).all():
        raise Refusal("the anchors aren't made of finite constants", depth=7)
    cells = {name: Table(axis, columns.expressions(value, axis, known)) for name, (axis, value) in tables.items()}
    return Made(graph.free_name(target, "_anchors"), anchors, cells)


def _tables(graph: Graph, nodes: Sequence[Node], rows: int) -> dict[str, tuple[int, NDArray[Any]]]:
    """Return the constants with one axis of as many elements as there are anchors, and that axis."""
    found = {}
    for name in dict.fromkeys(name for node in nodes for name in node.inputs if name):
        value = graph.constant(name)
        if value is not None and value.dtype.kind == "f" and value.shape.count(rows) == 1:
            found[name] = (value.shape.index(rows), value)
    return found


def _rows(run: Run, shape: Sequence[int | None]) -> tuple[NDArray[np.int64], list[Axis]]:
    """Return the cells of predictions and their axes, without the coordinates'."""
    ids = run.pool.symbols((*(1 for _ in shape[:-1]), 4))
    axes: list[Axis] = [() if dim == 1 else (run.atom(axis, dim, 1),) for axis, dim in enumerate(shape[:-1])]
    return ids, axes


class _Columns:
    """The columns of tables, by their values: what was folded twice, or halved, is one column."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._known: dict[bytes, tuple[int, Fraction]] = {}  # a symbol, and what it is multiplied by
        self._values: dict[int, NDArray[np.float64]] = {}

    def _columns(self, value: NDArray[Any], axis: int) -> NDArray[Any]:
        return np.moveaxis(value, axis, -1).reshape(-1, value.shape[axis])

    def of(self, value: NDArray[Any], axis: int) -> NDArray[np.int64]:
        """Return a table's cells as positions in the pool."""
        ids = []
        for column in self._columns(value, axis):
            symbol, factor = self._symbol(column)
            ids.append(self._run.pool.expression((((("x", symbol),), factor),)))
        return np.array(ids, np.int64).reshape([1 if at == axis else dim for at, dim in enumerate(value.shape)])

    def _symbol(self, column: NDArray[Any]) -> tuple[int, Fraction]:
        key = column.tobytes()
        if key not in self._known:
            self._known[key] = self._multiple(column.astype(np.float64))
        return self._known[key]

    def _multiple(self, column: NDArray[np.float64]) -> tuple[int, Fraction]:
        """Return a column as a power of two times one that is there already, or as a new one."""
        for symbol, values in self._values.items():
            at = int(np.argmax(np.abs(values)))
            if not np.isfinite(values[at]) or not np.isfinite(column[at]):
                continue
            factor = column[at] / values[at] if values[at] else 0.0
            if factor and abs(np.frexp(factor)[0]) == 0.5 and np.array_equal(values * factor, column):
                return symbol, Fraction(float(factor))
        (_, (symbol,)) = self._run.pool.element(int(self._run.pool.symbols(())))
        self._values[symbol] = column
        return symbol, Fraction(1)

    def value(self, poly: Poly) -> NDArray[np.float64]:
        """Return the values of a sum of columns."""
        total: Any = 0.0
        for key, number in poly:
            total = total + float(number) * (self._values[key[0][1]] if key else 1.0)
        return np.asarray(total)

    def expressions(self, value: NDArray[Any], axis: int, known: Mapping[int, Poly]) -> NDArray[Any]:
        """Return a table's cells as expressions of an anchor's numbers."""
        cells = np.empty(value.size // value.shape[axis], object)
        for at, column in enumerate(self._columns(value, axis)):
            symbol, factor = self._symbol(column)
            if symbol not in known:
                raise Refusal("a table of constants is no part of the anchors", depth=3)
            cells[at] = _poly.multiply(known[symbol], _poly.constant_poly(factor))
        return cells.reshape([dim for at, dim in enumerate(value.shape) if at != axis])


def _center_and_half_size(low: Poly, high: Poly, boxes: set[int]) -> tuple[Poly, Poly]:
    """Return the center and half the size of the anchor in the two ends of a box."""
    size = _poly.subtract(high, low)
    both = _poly.multiply(_poly.add(low, high), _poly.constant_poly(Fraction(1, 2)))
    return _parts(both, boxes)[1], _poly.multiply(_parts(size, boxes)[0], _poly.constant_poly(Fraction(1, 2)))


def _parts(poly: Poly, boxes: set[int]) -> tuple[Poly, Poly]:
    """Return what an exponential is multiplied by, and what stands for itself, of anchors alone."""
    grown: dict[tuple[Any, ...], Fraction] = {}
    alone: dict[tuple[Any, ...], Fraction] = {}
    for key, number in poly:
        exponentials = [atom for atom in key if atom[0] != "x"]
        plain = tuple(atom for atom in key if atom[0] == "x")
        if len(exponentials) == 1 and exponentials[0][0] == "exp":
            grown[plain] = grown.get(plain, Fraction(0)) + number
        elif not exponentials and not any(atom[1] in boxes for atom in plain):
            alone[plain] = number
    return tuple(sorted(grown.items())), tuple(sorted(alone.items()))


def _solved(pair: tuple[Poly, Poly], coordinate: int) -> dict[int, Poly]:
    """Return the two columns that two numbers of an anchor are made of as expressions of these."""
    symbols = sorted(set().union(*(_poly.used_slots(poly) for poly in pair)))
    if len(symbols) != 2 or any(len(key) > 1 for poly in pair for key, _ in poly):
        raise Refusal("anchors aren't made of two columns of constants along each axis", depth=3)
    matrix = [[dict(poly).get((("x", symbol),), Fraction(0)) for symbol in symbols] for poly in pair]
    shift = [dict(poly).get((), Fraction(0)) for poly in pair]
    (a, b), (c, d) = matrix
    determinant = a * d - b * c
    if not determinant:
        raise Refusal("an anchor's corners follow from one column of constants", depth=3)
    inverse = [[d / determinant, -b / determinant], [-c / determinant, a / determinant]]
    numbers = [
        _poly.subtract((((("x", coordinate + 2 * at),), Fraction(1)),), _poly.constant_poly(shift[at])) for at in (0, 1)
    ]
    return {
        symbol: _poly.add(
            *(_poly.multiply(poly, _poly.constant_poly(factor)) for poly, factor in zip(numbers, line, strict=True))
        )
        for symbol, line in zip(symbols, inverse, strict=True)
    }


def _rounded(low: Any, high: Any, size: Any, center: Any) -> tuple[Any, Any]:
    """Round corners so that the node finds the very sizes, and centers within a unit in the last place."""
    dtype = size.dtype
    first, last = low.astype(dtype), high.astype(dtype)
    unit = np.spacing(np.maximum(np.abs(first), np.abs(last)))
    near = (last - first == size) & (np.abs((last + first) * dtype.type(0.5) - center) <= unit)
    best = [np.where(near & (first == low) & (last == high), 0, np.inf), first, last]
    for ours, theirs in _pairs(first, last, size):
        error = np.abs((theirs + ours) * dtype.type(0.5) - center).astype(np.float64)
        error[(theirs - ours) != size] = np.inf
        better = error < best[0]
        best = [np.where(better, new, old) for new, old in zip((error, ours, theirs), best, strict=True)]
    if not (best[0] <= unit).all():
        raise Refusal("the corners of anchors cannot be rebuilt exactly from their centers and sizes", depth=7)
    return best[1], best[2]


def _pairs(first: Any, last: Any, size: Any) -> Iterator[tuple[Any, Any]]:
    """Yield corners next to the given ones, each for itself and each as far from the other one as the size says."""
    steps = [
        [values, *(np.nextafter(values, values.dtype.type(to)) for to in (-np.inf, np.inf))] for values in (first, last)
    ]
    yield from product(*steps)
    yield from ((ours, ours + size) for ours in steps[0])
    yield from ((theirs - size, theirs) for theirs in steps[1])
