"""The proof: run a subgraph on symbols at several sizes and compare every output element with the decode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detops.graph import _poly
from detops.graph._evaluate import cone, evaluate, largest_integer
from detops.graph._finding import CannotRunError, Refusal
from detops.graph._forms import Budget, Pool
from detops.graph._ops import Run, Symbolic
from detops.graph._read_off import Coefficients, parameters, read_off
from detops.graph._schema import Parameters
from detops.graph._trials import Sizes, Trial, list_trials, possible_axes
from detops.graph._view import Graph, Node, Shape


@dataclass(frozen=True)
class Proof:
    """A subgraph that is proved to decode boxes."""

    box_predictions: str
    anchors: str
    decoded_boxes: str
    nodes: tuple[Node, ...]
    parameters: Parameters
    dtype: np.dtype[Any]
    shapes: tuple[tuple[Sizes, Sizes], ...]  # of the two inputs, at each size where they are alike


def prove(graph: Graph, box_predictions: str, anchors: str, target: str, budget: Budget | None = None) -> Proof:
    """Prove that `target` is the decode of the two tensors for all values and sizes, or raise `Refusal`."""
    nodes = cone(graph, target, frozenset((box_predictions, anchors)))
    dtype = graph.info(box_predictions).dtype
    if dtype is not None and dtype.kind != "f":
        raise Refusal(f"{box_predictions} is of type {dtype.name}, not a float")
    shapes = graph.info(box_predictions).shape, graph.info(anchors).shape
    largest = largest_integer(graph, nodes)
    failures: list[Refusal] = []
    for axis in possible_axes(*shapes):
        try:
            trials = list_trials(*shapes, axis, largest)
            proof = _prove_on(graph, nodes, (box_predictions, anchors, target), axis, trials, budget)
            _check_known((box_predictions, anchors), shapes, axis)
        except Refusal as refusal:
            failures.append(refusal)
        else:
            return proof
    raise max(failures, key=lambda refusal: refusal.depth)


def _check_known(names: tuple[str, str], shapes: tuple[Shape | None, Shape | None], axis: int) -> None:
    """Refuse what may be no boxes: no number of trials makes up for a rank or a number of coordinates that is open."""
    for name, shape in zip(names, shapes, strict=True):
        if shape is None:
            raise Refusal(f"it is a decode if {name} has the right rank, which the model leaves open", depth=6)
        if shape[axis] is None:
            raise Refusal(f"it is a decode if {name} has the right number of columns, which the model leaves open", 6)


def _prove_on(
    graph: Graph,
    nodes: list[Node],
    names: tuple[str, str, str],
    axis: int,
    trials: Sequence[Trial],
    budget: Budget | None,
) -> Proof:
    found: Coefficients | None = None
    dtype: np.dtype[Any] | None = None
    shapes: list[tuple[Sizes, Sizes]] = []
    for trial in trials:
        try:
            found, dtype = _run(graph, nodes, names, axis, trial, found, budget)
        except CannotRunError:
            if trial.required:
                raise
            continue
        except Refusal as refusal:
            if trial.required:
                raise
            raise Refusal(
                f"{refusal.reason} (at box_predictions of {trial.predictions} and anchors of {trial.anchors}, "
                "which the model leaves open)",
                refusal.depth,
            ) from refusal
        if trial.required:
            shapes.append((trial.predictions, trial.anchors))
    if found is None or dtype is None:
        raise Refusal(f"the type of {names[0]} isn't known", depth=1)
    box_predictions, anchors, target = names
    values = parameters(found, dtype, axis, trials[0].predictions[axis] // 4)
    return Proof(box_predictions, anchors, target, tuple(nodes), values, dtype, tuple(shapes))


def _run(
    graph: Graph,
    nodes: list[Node],
    names: tuple[str, str, str],
    axis: int,
    trial: Trial,
    found: Coefficients | None,
    budget: Budget | None,
) -> tuple[Coefficients, np.dtype[Any] | None]:
    """Prove one size; the first one reads the coefficients off, and the others must agree with them."""
    box_predictions, anchors, target = names
    run = Run(budget)
    left = Symbolic(run.pool.symbols(trial.predictions), graph.info(box_predictions).dtype)
    right = Symbolic(run.pool.symbols(trial.anchors), graph.info(anchors).dtype)
    result = evaluate(graph, run, nodes, {box_predictions: left, anchors: right}, target)
    if not isinstance(result, Symbolic):
        raise Refusal("the output doesn't depend on the boxes")
    if trial.unequal:
        raise Refusal("the two inputs may differ in shape, and DecodeBbox wants one shape", depth=3)
    width = trial.predictions[axis]
    shape = np.broadcast_shapes(trial.predictions, _with(trial.anchors, axis, width))
    if result.shape != shape:
        raise Refusal(
            f"the output has the shape {result.shape} for box_predictions of {trial.predictions} "
            f"and anchors of {trial.anchors}",
            depth=3,
        )
    rows = _in_rows(np.broadcast_to(left.ids, shape), axis, width // 4)
    boxes = _in_rows(np.broadcast_to(right.ids, _with(shape, axis, 4)), axis, 1)
    outputs = _in_rows(result.ids, axis, width // 4)
    if found is None:
        found = read_off(run.pool, outputs, rows, boxes)
    wrong = ~run.pool.same(outputs, decode(run.pool, rows, boxes, found))
    if wrong.any():
        row, kind, coordinate = (int(place[0]) for place in np.nonzero(wrong))
        raise Refusal(
            f"coordinate {coordinate} of box {row}, class {kind}, isn't what a decode gives there "
            f"({int(wrong.sum())} of {wrong.size} elements differ at box_predictions of {trial.predictions})",
            depth=5,
        )
    return found, result.dtype


def _with(shape: Sizes, axis: int, size: int) -> Sizes:
    return tuple(size if place == axis % len(shape) else dim for place, dim in enumerate(shape))


def _in_rows(ids: NDArray[np.int64], axis: int, classes: int) -> NDArray[np.int64]:
    """Return the elements as (boxes, classes, 4)."""
    return np.moveaxis(ids, axis, -1).reshape(-1, classes, 4)


def decode(pool: Pool, rows: NDArray[np.int64], boxes: NDArray[np.int64], found: Coefficients) -> NDArray[np.int64]:
    """Return the decode of (boxes, classes, 4) predictions against (boxes, 1, 4) anchors, as expressions."""
    half = _poly.constant_poly(Fraction(1, 2))
    corners: list[NDArray[np.int64]] = [rows[..., 0]] * 4
    for place in (0, 1):
        first, last = boxes[..., place], boxes[..., place + 2]
        size = pool.binary(_poly.subtract, last, first)
        centre = pool.unary(lambda poly: _poly.multiply(poly, half), pool.binary(_poly.add, first, last))
        shift = pool.unary(partial(found.scaled, place=place), rows[..., place])
        growth = pool.unary(partial(found.grown, place=place + 2), rows[..., place + 2])
        centre = pool.binary(_poly.add, pool.binary(_poly.multiply, shift, size), centre)
        size = pool.binary(_poly.multiply, growth, size)
        size = pool.unary(lambda poly: _poly.multiply(poly, half), size)
        corners[place] = pool.binary(_poly.subtract, centre, size)
        corners[place + 2] = pool.binary(_poly.add, centre, size)
    return np.stack(corners, axis=-1)
