"""The proof: run a subgraph on symbols at several sizes and compare every output element with the decode."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detops.graph._decode import Operation, corners
from detops.graph._finding import CannotRunError, Refusal
from detops.graph._schema import Parameters
from detops.graph.model._graph import Graph, Node, Shape
from detops.graph.ops._evaluate import cone, evaluate
from detops.graph.ops._ops import Run, Symbolic
from detops.graph.proof._cases import Case, list_cases, possible_axes
from detops.graph.proof._coefficients import Coefficients, parameters, read_off
from detops.graph.proof._folded import Made
from detops.graph.proof._parts import Parts
from detops.graph.symbols import _poly
from detops.graph.symbols._expressions import OVERHEAD, Budget, Pool
from detops.graph.symbols._sizes import Axis, Question, ask_for_cells, axis_of, shown, size_of

SWAPPED = (1, 0, 3, 2)  # y1, x1, y2, x2 of x1, y1, x2, y2, and the other way round
GUESS: Shape = (None, 4)  # the shape of an input of unknown rank, to find a better reason for a refusal than that


@dataclass(frozen=True)
class Proof:
    """A subgraph that is proved to decode boxes."""

    box_predictions: str
    anchors: str
    decoded_boxes: str
    nodes: tuple[Node, ...]
    parameters: Parameters
    dtype: np.dtype[Any]
    shapes: tuple[Shape, Shape]  # of the two inputs, where the model leaves nothing open that the other one states
    made: Made | None = None  # the anchors, where they are no tensor of the graph yet
    rows: frozenset[str] = frozenset()  # inputs of shape (N, 2, 2), which the node reads as (N, 4)
    tail: tuple[int, ...] = ()  # classes and 4, where the output has two axes for the node's last one
    swapped: bool = False  # the output has x and y in the other order than the inputs
    alike: bool = False  # it holds for as many anchors as box_predictions only, which the node doesn't ask for itself
    parts: Parts | None = None  # the corners, where the graph bounds them before it joins them
    added: tuple[float, float] = (0.0, 0.0)  # to the first and the last corner of the anchors, before the node

    @property
    def corners_added(self) -> NDArray[Any] | None:
        """What is added to the anchors before the node; None for nothing."""
        if not any(self.added):
            return None
        rank = len(self.shapes[1])
        after = (1,) * (rank - 1 - self.parameters.axis % rank)
        return np.repeat(np.array(self.added, self.dtype), 2).reshape(4, *after)

    @property
    def held(self) -> tuple[Node, ...]:
        """The nodes of the graph itself, without those that were made for the proof."""
        return tuple(node for node in self.nodes if node.index >= 0)

    @property
    def ends(self) -> tuple[str, ...]:
        """The tensors of the graph that the node's output replaces."""
        return self.parts.tensors if self.parts else (self.decoded_boxes,)

    def seen(self, name: str, value: NDArray[Any]) -> NDArray[Any]:
        """Return what the node reads in the shape that the graph has it in."""
        return value.reshape(-1, 2, 2) if name in self.rows else value


@dataclass(frozen=True)
class _Claim:
    """A claim to be proved: which tensor is the decode of which, along which axis."""

    graph: Graph
    nodes: tuple[Node, ...]
    box_predictions: str
    anchors: str
    target: str
    axis: int
    width: int  # of box_predictions along the axis
    missing: int  # axes that anchors have fewer
    budget: Budget | None
    made: Made | None
    views: bool
    rows: frozenset[str]


@dataclass(frozen=True)
class _Known:
    """The results of the cases so far."""

    found: Coefficients | None = None
    dtype: np.dtype[Any] | None = None
    tail: tuple[int, ...] = ()
    swapped: bool = False


def prove(
    graph: Graph,
    box_predictions: str,
    anchors: str | Made,
    target: str,
    budget: Budget | None = None,
    *,
    views: bool = False,
) -> Proof:
    """Prove that `target` is the decode of the two tensors for all values and sizes, or raise `Refusal`.

    With `views`, a Reshape or a Gather may stand next to the node: rows of (2, 2) are taken as boxes, an output of
    (N, classes, 4) as one of (N, 4 * classes), or one of x1, y1, x2, y2 as one of y1, x1, y2, x2.
    """
    made = None if isinstance(anchors, str) else anchors
    anchors = anchors if isinstance(anchors, str) else anchors.name
    nodes = cone(graph, target, frozenset((box_predictions, anchors)), budget)
    dtype = graph.info(box_predictions).dtype
    if dtype is not None and dtype.kind != "f":
        raise Refusal(f"{box_predictions} is of type {dtype.name}, not a float")
    shapes = graph.info(box_predictions).shape, made.anchors.shape if made else graph.info(anchors).shape
    pairs = list(zip((box_predictions, anchors), shapes, strict=True))
    rows = frozenset(name for name, shape in pairs if views and shape is not None and shape[1:] == (2, 2))
    shapes = _as_boxes(shapes[0], box_predictions in rows), _as_boxes(shapes[1], anchors in rows)
    failures: list[Refusal] = []
    for axis in possible_axes(*shapes):
        try:
            ours, theirs = (GUESS if shape is None else shape for shape in _guessed(shapes))
            width = ours[axis] or 4
            if width % 4:
                raise Refusal(f"box_predictions has {width} elements on axis {axis}, not a multiple of 4", depth=1)
            missing = len(ours) - len(theirs)
            claim = _Claim(
                graph, tuple(nodes), box_predictions, anchors, target, axis, width, missing, budget, made, views, rows
            )
            proof = _prove_on(claim, ours, (1,) * missing + theirs)
            _check_known((box_predictions, anchors), shapes, axis)
        except Refusal as refusal:
            failures.append(refusal)
        else:
            return proof
    raise max(failures, key=lambda refusal: refusal.depth)


def _as_boxes(shape: Shape | None, rows: bool) -> Shape | None:
    return (shape[0], 4) if rows and shape else shape


def _guessed(shapes: tuple[Shape | None, Shape | None]) -> tuple[Shape | None, Shape | None]:
    """Give an input of unknown rank that of the other one."""
    ours, theirs = shapes
    open_like = None if ours is None and theirs is None else (None,) * (len(ours or theirs or ()) - 1) + (4,)
    return (open_like if ours is None else ours, open_like if theirs is None else theirs)


def _check_known(names: tuple[str, str], shapes: tuple[Shape | None, Shape | None], axis: int) -> None:
    """Refuse what may be no boxes: a proof is for one rank, and for one number of coordinates."""
    for name, shape in zip(names, shapes, strict=True):
        if shape is None:
            raise Refusal(f"it is a decode if {name} has the right rank, which the model leaves open", depth=6)
        if shape[axis] is None:
            raise Refusal(f"it is a decode if {name} has the right number of columns, which the model leaves open", 6)


def _prove_on(claim: _Claim, ours: Shape, theirs: Shape) -> Proof:
    """Prove a claim about inputs of the given shapes, in every case."""
    known = _Known()
    first: Case | None = None
    alike = False
    for case in list_cases(_without(ours, claim.axis), _without(theirs, claim.axis)):
        try:
            known = _settle(claim, case, known)
        except Refusal:
            # of one axis of boxes, a Reshape of the anchors sees to it that there are as many
            if not (case.unequal and claim.views and len(case.sides) == 1):
                raise
            alike = True
        first = first or case
    if known.found is None or known.dtype is None or first is None:
        raise Refusal(f"the type of {claim.box_predictions} isn't known", depth=1)
    values = parameters(known.found, known.dtype, claim.axis, claim.width // 4)
    left = _with([side.value for side in first.sides], claim.axis, claim.width)
    right = _with([1 if side.spread else side.value for side in first.sides], claim.axis, 4)
    return Proof(
        claim.box_predictions,
        claim.anchors,
        claim.target,
        claim.nodes,
        values,
        known.dtype,
        (left, right[claim.missing :]),
        claim.made,
        claim.rows,
        known.tail,
        known.swapped,
        alike,
        added=(float(known.found.added[0]), float(known.found.added[1])),
    )


def _settle(claim: _Claim, case: Case, known: _Known) -> _Known:
    """Prove one case; where a run asks what an axis is like, prove it for each answer."""
    try:
        return _run(claim, case, known)
    except Question as question:
        axis, side = question.atom.axis, case.sides[question.atom.axis]
        if side.value is not None:
            return _settle(claim, case.at(axis, replace(side, listed=True)), known)
        longer = case.at(axis, replace(side, least=2))
        known = _settle(claim, longer, known)
        return _settle(claim, replace(case.at(axis, side.fixed(1)), required=False), known)
    except CannotRunError:
        if case.required:
            raise
        return known


def _run(claim: _Claim, case: Case, known: _Known) -> _Known:
    """Prove one case; the first one reads the coefficients off, and the others must agree with them."""
    run = Run(claim.budget)
    run.pool.budget.spend(8 * OVERHEAD)
    left, right = _inputs(run, claim, case)
    given = {
        claim.box_predictions: _view(left, claim.box_predictions in claim.rows),
        claim.anchors: _view(right, claim.anchors in claim.rows),
        **_filled(run, claim.made, right),
    }
    result = evaluate(claim.graph, run, claim.nodes, given, claim.target)
    if not isinstance(result, Symbolic):
        raise Refusal("the output doesn't depend on the boxes")
    tail = _tail(claim, result.axes, left.axes) if result.axes != left.axes else ()
    if not tail:
        _check_axes(run, result.axes, left.axes)
    if not result.ids.size:
        return known
    found, dtype = known.found, known.dtype
    if found is not None and tail != known.tail:
        raise Refusal("the output's axes are others at another size", depth=3)
    rows = _in_rows(left.ids, claim.axis, claim.width // 4)
    boxes = np.broadcast_to(right.ids, _with(_without(left.ids.shape, claim.axis), claim.axis, 4))
    boxes = _in_rows(boxes, claim.axis, 1)
    outputs = _in_rows(result.ids.reshape(left.ids.shape), claim.axis, claim.width // 4)
    swapped = known.swapped
    if found is None:
        found, swapped = _read(run.pool, outputs, rows, boxes, may_swap=claim.views and claim.width == 4)
        dtype = result.dtype
    if swapped:
        outputs = outputs[..., SWAPPED]
    wrong = ~run.pool.same(outputs, decode(run.pool, rows, boxes, found))
    if wrong.any():
        row, kind, coordinate = (int(index[0]) for index in np.nonzero(wrong))
        raise Refusal(
            f"coordinate {coordinate} of box {row}, class {kind}, isn't what a decode gives there "
            f"({int(wrong.sum())} of {wrong.size} elements differ)",
            depth=5,
        )
    return _Known(found, dtype, tail, swapped)


def _read(
    pool: Pool, outputs: NDArray[np.int64], rows: NDArray[np.int64], boxes: NDArray[np.int64], *, may_swap: bool
) -> tuple[Coefficients, bool]:
    """Read the coefficients off, and tell whether the output has x and y in the other order."""
    try:
        return read_off(pool, outputs, rows, boxes), False
    except Refusal as refusal:
        if may_swap:
            with suppress(Refusal):
                return read_off(pool, outputs[..., SWAPPED], rows, boxes), True
        raise refusal


def _tail(claim: _Claim, found: tuple[Axis, ...], wanted: tuple[Axis, ...]) -> tuple[int, ...]:
    """Return the lengths of two axes, classes and coordinates, that take the place of one; none if they don't.

    A Reshape in a GraphDef would need to compute the lengths of several other axes.
    """
    if not claim.views or claim.rows or claim.axis != -1:
        return ()
    classes = claim.width // 4
    if claim.graph.dialect != "onnx" and (classes == 1 or len(wanted) != 2):
        return ()
    return (classes, 4) if found == (*wanted[:-1], axis_of([classes]), (4,)) else ()


def _view(value: Symbolic, rows: bool) -> Symbolic:
    """Return (N, 4) as (N, 2, 2) where the graph has it so."""
    if not rows:
        return value
    return Symbolic(value.ids.reshape(-1, 2, 2), (value.axes[0], (2,), (2,)), value.dtype)


def _inputs(run: Run, claim: _Claim, case: Case) -> tuple[Symbolic, Symbolic]:
    """Make the two inputs. Their elements come first among the symbols, and those of open sizes after them."""
    counts = [side.value or 0 if side.listed else 1 for side in case.sides]
    shared = [1 if side.spread else count for side, count in zip(case.sides, counts, strict=True)]
    left = run.pool.symbols(_with(counts, claim.axis, claim.width))
    run.sizes.cells = claim.width * math.prod(side.value or 1 for side in case.sides)
    right = run.pool.symbols(_with(shared, claim.axis, 4)[claim.missing :])
    axes = [
        axis_of([side.value or 0]) if side.listed else (run.atom(index, side.value, side.least),)
        for index, side in enumerate(case.sides)
    ]
    shared_axes = [() if side.spread else axis for side, axis in zip(case.sides, axes, strict=True)]
    info, made = claim.graph.info, claim.made
    dtype = made.anchors.dtype if made else info(claim.anchors).dtype
    return (
        Symbolic(left, _with(axes, claim.axis, (claim.width,)), info(claim.box_predictions).dtype),
        Symbolic(right, _with(shared_axes, claim.axis, (4,))[claim.missing :], dtype),
    )


def _filled(run: Run, made: Made | None, anchors: Symbolic) -> dict[str, Symbolic]:
    """Return the tables of constants as the expressions of corners that they are."""
    if made is None:
        return {}
    if anchors.ids.size != 4:
        raise Refusal("anchors that were folded into constants meet what tells them apart", depth=3)
    symbols = [run.pool.element(int(position))[1][0] for position in anchors.ids.ravel()]
    found = {}
    for name, table in made.tables.items():
        ids = [run.pool.expression(_poly.relabel(poly, symbols)) for poly in table.cells.ravel()]
        axes = [axis_of([dim]) for dim in table.cells.shape]
        axes.insert(table.axis, anchors.axes[-2])
        shape = [*table.cells.shape[: table.axis], 1, *table.cells.shape[table.axis :]]
        found[name] = Symbolic(np.array(ids, np.int64).reshape(shape), tuple(axes), anchors.dtype)
    return found


def _check_axes(run: Run, found: tuple[Axis, ...], wanted: tuple[Axis, ...]) -> None:
    """Refuse an output of another shape than box_predictions, or of the same with its boxes in another order."""
    if found == wanted:
        return
    shapes = [f"({', '.join(map(shown, axes))})" for axes in (found, wanted)]
    reason = f"the output has the shape {shapes[0]} for box_predictions of {shapes[1]}"
    if len(found) == len(wanted):
        for axis, other in zip(found, wanted, strict=True):
            same = axis == other or run.sizes.equal(size_of(axis), size_of(other))
            if axis != other and same:
                ask_for_cells(axis + other, reason)
            elif same is None:
                run.sizes.ask_for_ones_in([size_of(axis), size_of(other)], reason)
    raise Refusal(reason, depth=3)


def _with(shape: Sequence[Any], axis: int, item: Any) -> tuple[Any, ...]:
    """Insert what stands for the coordinates' axis."""
    index = axis % (len(shape) + 1)
    return (*shape[:index], item, *shape[index:])


def _without(shape: Sequence[Any], axis: int) -> tuple[Any, ...]:
    """Drop the coordinates' axis."""
    index = axis % len(shape)
    return (*shape[:index], *shape[index + 1 :])


def _in_rows(ids: NDArray[np.int64], axis: int, classes: int) -> NDArray[np.int64]:
    """Return the elements as (boxes, classes, 4)."""
    return np.moveaxis(ids, axis, -1).reshape(-1, classes, 4)


def decode(pool: Pool, rows: NDArray[np.int64], boxes: NDArray[np.int64], found: Coefficients) -> NDArray[np.int64]:
    """Return the decode of (boxes, classes, 4) predictions against (boxes, 1, 4) anchors, as expressions."""
    half = _poly.constant_poly(Fraction(1, 2))
    operations: dict[str, Callable[..., NDArray[np.int64]]] = {
        "Add": partial(pool.binary, _poly.add),
        "Sub": partial(pool.binary, _poly.subtract),
        "Mul": partial(pool.binary, _poly.multiply),
        "Half": partial(pool.unary, lambda poly: _poly.multiply(poly, half)),
        # What grows comes as its exponential, within bounds.
        "Exp": lambda growth: growth,
    }

    def compute(operation: Operation, name: str, *operands: NDArray[np.int64]) -> NDArray[np.int64]:
        return operations[operation](*operands)

    offset = np.array(pool.expression(_poly.constant_poly(found.offset))) if found.offset else None
    both = []
    for coordinate in (0, 1):
        shift = pool.unary(partial(found.scaled, coordinate=coordinate), rows[..., coordinate])
        growth = pool.unary(partial(found.grown, coordinate=coordinate + 2), rows[..., coordinate + 2])
        first, last = (
            pool.unary(partial(_poly.add, _poly.constant_poly(number)), boxes[..., at]) if number else boxes[..., at]
            for number, at in zip(found.added, (coordinate, coordinate + 2), strict=True)
        )
        both.append(corners(compute, shift, growth, first, last, found.anchor_form, offset))
    return np.stack([ends[end] for end in (0, 1) for ends in both], axis=-1)
