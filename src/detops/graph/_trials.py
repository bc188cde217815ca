"""The sizes at which a proof runs: what the model leaves open is tried large, small, and unequal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from detops.graph._finding import Refusal
from detops.graph._ops import MAX_ELEMENTS, check_size
from detops.graph._view import Shape

MAX_TRIAL = 1 << 15  # elements of a trial with every free dimension large at once
MAX_UNEQUAL = 6
GUESS = 2  # the rank of two inputs of unknown rank, to find a better reason for a refusal than that

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Trial:
    """One size to run at.

    Where `required` is off, a subgraph that cannot run there is fine too; where the inputs are `unequal`, it must
    not run. A dimension of 1 in one input only is broadcast.
    """

    predictions: Sizes
    anchors: Sizes
    required: bool = False
    unequal: bool = False


def possible_axes(predictions: Shape | None, anchors: Shape | None) -> list[int]:
    """List the axes that may hold the coordinates: the last as -1, the others counted from the front."""
    if predictions is not None and anchors is not None and len(predictions) != len(anchors):
        raise Refusal(
            f"box_predictions has rank {len(predictions)} and anchors rank {len(anchors)}; DecodeBbox wants one shape",
            depth=1,
        )
    if predictions is None or anchors is None:
        return [-1]
    last = len(anchors) - 1
    axes = [-1] if anchors and anchors[last] in (4, None) else []
    # the last axis of 4 coordinates is what everybody writes; another one must be there for all to see
    axes += [axis for axis in range(last) if anchors[axis] == predictions[axis] == 4]
    if not axes:
        raise Refusal(f"anchors of the shape {_shown(anchors)} have no axis of 4 coordinates", depth=1)
    return axes


def list_trials(predictions: Shape | None, anchors: Shape | None, axis: int, largest: int) -> list[Trial]:
    """List the sizes to prove at; `largest` is the largest integer in the subgraph."""
    known = predictions if predictions is not None else anchors
    rank = GUESS if known is None else len(known)
    left = (None,) * rank if predictions is None else predictions
    right = (None,) * rank if anchors is None else anchors
    axis %= rank
    width = 4 if left[axis] is None else left[axis]
    if not width or width % 4:
        raise Refusal(f"box_predictions has {width} elements on axis {axis}, not a multiple of 4", depth=1)

    def whole(shape: Sequence[Any], coordinates: int) -> tuple[Any, ...]:
        return (*shape[:axis], coordinates, *shape[axis:])

    ours, theirs = ((*shape[:axis], *shape[axis + 1 :]) for shape in (left, right))
    sizes = _fill([_joined(*pair) for pair in zip(ours, theirs, strict=True)], largest, width)
    trials = [Trial(whole(size, width), whole(size, 4), required=True) for size in sizes]
    for left_size, right_size, unequal in _spread(ours, theirs, sizes[min(1, len(sizes) - 1)], width):
        trials.append(Trial(whole(left_size, width), whole(right_size, 4), unequal=unequal))
    trials += [Trial(*pair, unequal=True) for pair in _same_total(whole(ours, width), whole(theirs, 4))]
    return trials


def _spread(ours: Shape, theirs: Shape, usual: Sequence[int], width: int) -> Iterator[tuple[Sizes, Sizes, bool]]:
    """Yield sizes where what one input states and the other leaves open differs, and whether it mustn't run there.

    Where the open one is 1 it is broadcast.
    """
    mixed = [place for place, pair in enumerate(zip(ours, theirs, strict=True)) if pair.count(None) == 1]
    stated = [usual[place] for place in mixed]
    for coincident in (None, *stated):  # sizes that happen to agree let more through
        size = [
            coincident if coincident and ours[place] is theirs[place] is None else dim
            for place, dim in enumerate(usual)
        ]
        check_size((*size, width))
        for numbers in product(*((number, 1, number + 1, 2 * number) for number in stated)):
            left, right = list(size), list(size)
            for place, number in zip(mixed, numbers, strict=True):
                (left if ours[place] is None else right)[place] = number
            if left != right:
                unequal = any(number not in (1, usual) for number, usual in zip(numbers, stated, strict=True))
                yield tuple(left), tuple(right), unequal


def _same_total(left: Shape, right: Shape) -> Iterator[tuple[Sizes, Sizes]]:
    """Yield unequal shapes of as many elements, which a Reshape to rows would let through.

    Only dimensions that one input states and the other leaves open may differ.
    """
    mixed = [place for place, pair in enumerate(zip(left, right, strict=True)) if pair.count(None) == 1]
    found = 0
    for values in product((1, 2, 3, 4, 6, 8, 12), repeat=min(len(mixed), 4)):
        guess = dict(zip(mixed, values, strict=False))
        ours = tuple(guess.get(place, 2) if dim is None else dim for place, dim in enumerate(left))
        theirs = tuple(guess.get(place, 2) if dim is None else dim for place, dim in enumerate(right))
        if ours != theirs and math.prod(ours) == math.prod(theirs) <= MAX_TRIAL:
            yield ours, theirs
            found += 1
            if found == MAX_UNEQUAL:
                return


def _joined(left: int | None, right: int | None) -> int | None:
    if left is not None and right is not None and left != right:
        raise Refusal(f"box_predictions and anchors have {left} and {right} boxes along one axis", depth=1)
    return right if left is None else left


def _fill(shape: Sequence[int | None], largest: int, elements: int) -> list[list[int]]:
    """Fill the free dimensions: small (telling, at little cost), beyond every integer in two orders, and one."""
    free = [place for place, dim in enumerate(shape) if dim is None]
    fixed = elements * math.prod(1 if dim is None else dim for dim in shape)
    rising = [largest + 1 + number for number in range(len(free))]
    falling = [2 * largest + 3 + 2 * number for number in reversed(range(len(free)))]
    small = [2 + number for number in range(len(free))]
    fills: list[list[int]] = []
    for large in (rising, falling):
        if fixed * math.prod(large) <= MAX_TRIAL:
            fills.append(large)
        else:  # one large dimension at a time
            fills += [[*small[:at], large[at], *small[at + 1 :]] for at in range(len(free))]
    fills = [small, *fills, [1] * len(free)] if free else [[]]
    if fixed * max(math.prod(fill) for fill in fills) > MAX_ELEMENTS:
        raise Refusal(
            f"sizes beyond {largest}, the largest integer in the subgraph, are too large for a proof"
            if free
            else f"a static shape of {fixed} elements is too large for a proof"
        )
    filled = []
    for fill in fills:
        values = iter(fill)
        filled.append([next(values) if dim is None else dim for dim in shape])
    return filled


def _shown(shape: Shape) -> str:
    return "(" + ", ".join("?" if dim is None else str(dim) for dim in shape) + ")"
