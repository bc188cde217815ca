"""What mutants are fed: boxes at a dozen sizes, and then in every shape and rank that their declared types permit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

Random = np.random.Generator
Declared = tuple[int | str | None, ...] | None  # a name binds a size; None is any size, or any rank
Sizes = tuple[int, ...]

# the free dimensions of a model: one, equal, unequal, and next to the integers that mutants cut at
SIZES = ((1, 1), (3, 6), (131, 2), (5, 5), (1, 7), (7, 1), (99, 2), (100, 3), (101, 1), (999, 1), (1000, 2), (1001, 1))
SMALL = (6, 2)  # the sizes from which other shapes are made

# An input through which a mutant hides another one's shape, by what stands before the other one's name.
INDEX, FORM, CHOICE = "index_of_", "form_of_", "choice_of_"


@dataclass(frozen=True)
class Input:
    """An input of boxes: what the mutant declares, and the shape that the graph was made for."""

    name: str
    dtype: Any
    declared: Declared
    usual: Declared


def feeds(predictions: Input, anchors: Input, hiding: Sequence[str], random: Random) -> Iterator[dict[str, Any]]:
    """Yield what to run at: the usual shapes first, one for each of SIZES."""
    pair = (predictions, anchors)

    def drawn(shapes: Sequence[Sizes]) -> dict[str, Any]:
        values = (_predictions(random, shapes[0]), _boxes(random, shapes[1]))
        return {each.name: value.astype(each.dtype) for each, value in zip(pair, values, strict=True)}

    for size in SIZES:
        given = drawn([_filled(each.usual, size) for each in pair])
        yield given | {name: _hidden(name, given)[0] for name in hiding}
    small = [_filled(each.usual, SMALL) for each in pair]
    for shapes in product(*(_others(shape) for shape in small)):
        if _permitted([each.declared for each in pair], shapes):
            given = drawn(shapes)
            for values in product(*(_hidden(name, given) for name in hiding)):
                yield given | dict(zip(hiding, values, strict=True))


def _filled(shape: Declared, size: Sequence[int]) -> Sizes:
    assert shape is not None
    free = iter(size)
    return tuple(dim if isinstance(dim, int) else next(free) for dim in shape)


def _others(shape: Sizes) -> list[Sizes]:
    """Return a shape, and others that a Reshape or broadcasting might take for it."""
    count = math.prod(shape)
    found = [
        shape,
        (1, *shape),
        (*shape[:-1], 1, shape[-1]),
        (count,),
        (count // 4, 4),
        (1, *shape[1:]),
        (shape[0] + 1, *shape[1:]),
        (2 * shape[0], *shape[1:]),
        (shape[0], *(1 for _ in shape[1:-1]), shape[-1]),
        (*shape[:-1], 2 * shape[-1]),
        (*shape[:-1], shape[-1] + 1),
        (1, *shape[1:-1], 2 * shape[-1]),
        (*shape[:-1], 1),
        tuple(reversed(shape)),
        (*shape[1:], shape[0]),
    ]
    if count % 24 == 0:
        found.append((1, 2, count // 24, 12))
    return list(dict.fromkeys(found))


def _permitted(declared: Sequence[Declared], shapes: Sequence[Sizes]) -> bool:
    """Tell whether the declared types permit these shapes; a name means one size wherever it stands."""
    sizes: dict[str, int] = {}
    for wanted, shape in zip(declared, shapes, strict=True):
        if wanted is None:
            continue
        if len(wanted) != len(shape):
            return False
        for dim, size in zip(wanted, shape, strict=True):
            expected = sizes.setdefault(dim, size) if isinstance(dim, str) else dim
            if expected not in (None, size):
                return False
    return True


def _hidden(name: str, given: dict[str, Any]) -> list[Any]:
    """Return the values for an input that hides another one's shape; the first lets it through as it is."""
    for prefix in (INDEX, FORM, CHOICE):
        if name.startswith(prefix):
            shape = given[name.removeprefix(prefix)].shape
            break
    if prefix == CHOICE:
        return [np.array(True), np.array(False)]
    if prefix == FORM:
        return [np.array(other) for other in _others(shape) if math.prod(other) == math.prod(shape)]
    rows = np.arange(shape[0] if shape else 1)
    return [rows, rows[None], rows[:, None], rows[0], rows[::-1].copy()]


def _predictions(random: Random, shape: Sizes) -> Any:
    return random.normal(0, 1, shape) * random.choice([0.3, 1.0, 4.0, 5.0], shape)


def _boxes(random: Random, shape: Sizes) -> Any:
    return random.uniform(-50, 300, shape)  # every tenth or so with x2 < x1
