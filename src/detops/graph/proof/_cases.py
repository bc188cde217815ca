"""The cases that a proof is made of: together they cover all shapes that the two inputs can have where the node runs.

The node wants anchors that broadcast to the shape of box_predictions, and fails at run time for others. So along each
axis but the coordinates', both are n >= 1 long, or both are empty, or the anchors are 1 and the predictions n >= 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from detops.graph._finding import Refusal
from detops.graph.model._graph import Shape

MAX_OPEN = 6  # axes along which anchors may or may not be 1


@dataclass(frozen=True)
class Side:
    """An axis of box_predictions in a case: how long it is, as far as that is fixed, and where anchors are 1 on it."""

    value: int | None
    least: int = 1
    listed: bool = False  # positions are told apart; of an open axis, they can't be
    spread: bool = False  # anchors have one position there

    def fixed(self, value: int) -> Side:
        """Return the same axis with a length."""
        return replace(self, value=value, listed=True)


@dataclass(frozen=True)
class Case:
    """One side per axis, without the coordinates'."""

    sides: tuple[Side, ...]
    required: bool = False  # the graph must run in it
    unequal: bool = False  # anchors have fewer boxes, though the model permits as many

    def at(self, axis: int, side: Side) -> Case:
        """Return the case with another side along one axis."""
        return replace(self, sides=(*self.sides[:axis], side, *self.sides[axis + 1 :]))


def possible_axes(predictions: Shape | None, anchors: Shape | None) -> list[int]:
    """List the axes that may hold the coordinates: the last as -1, the others counted from the front."""
    if predictions == () or anchors == ():
        raise Refusal("box_predictions or anchors is a scalar, not a tensor of boxes", depth=1)
    if predictions is None or anchors is None:
        return [-1]
    if len(predictions) < len(anchors) or not anchors:
        raise Refusal(
            f"box_predictions has rank {len(predictions)} and anchors rank {len(anchors)}; DecodeBbox wants one shape",
            depth=1,
        )
    last = len(anchors) - 1
    axes = [-1] if anchors[last] in (4, None) else []
    # the last axis of 4 coordinates is what everybody writes; another one must be there for all to see
    if len(predictions) == len(anchors):
        axes += [axis for axis in range(last) if anchors[axis] == predictions[axis] == 4]
    if not axes:
        raise Refusal(f"anchors of the shape {shown(anchors)} have no axis of 4 coordinates", depth=1)
    return axes


def list_cases(predictions: Shape, anchors: Shape) -> Iterator[Case]:
    """Yield the cases for two shapes of one rank without the coordinates' axis, the usual one first."""
    pairs = list(zip(predictions, anchors, strict=True))
    usual = Case(tuple(_side(*pair) for pair in pairs), required=True)
    inner = [side.spread for side in usual.sides if side.value != 1]
    if inner != sorted(inner, reverse=True):
        reason = "anchors are broadcast along an inner axis; DecodeBbox broadcasts them along leading ones"
        raise Refusal(reason, depth=3)
    yield usual
    for axis, side in enumerate(usual.sides):
        if side.value is None:
            yield Case(usual.at(axis, side.fixed(0)).sides)
    open_axes = [axis for axis, (ours, theirs) in enumerate(pairs) if theirs is None and (ours or 2) > 1]
    if len(open_axes) > MAX_OPEN:
        raise Refusal(f"{len(open_axes)} axes of the anchors are open, and {MAX_OPEN} are as many as a proof can try")
    for chosen in product((False, True), repeat=len(open_axes)):
        case = Case(usual.sides, unequal=True)
        for axis, spread in zip(open_axes, chosen, strict=True):
            if spread:
                case = case.at(axis, replace(case.sides[axis], least=2, spread=True))
        if any(chosen):
            yield case


def _side(ours: int | None, theirs: int | None) -> Side:
    """Return the usual side of an axis with the lengths that a model states."""
    if ours is not None and theirs not in (ours, None, 1):
        raise Refusal(f"box_predictions and anchors have {ours} and {theirs} boxes along one axis", depth=1)
    if ours == 1 and theirs is None:
        raise Refusal("box_predictions have one box along an axis where anchors may have more", depth=3)
    spread = theirs == 1 and ours != 1
    value = ours if ours is not None or spread else theirs
    return Side(value, listed=value is not None and value < 2, spread=spread)


def shown(shape: Shape) -> str:
    """Return a shape as text."""
    return "(" + ", ".join("?" if dim is None else str(dim) for dim in shape) + ")"
