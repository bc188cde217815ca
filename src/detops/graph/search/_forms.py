"""The forms of decodes that have a name, as what the four numbers of a box are of the symbols of its predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from detops.graph.symbols import _poly
from detops.graph.symbols._poly import Poly

HALF = Fraction(1, 2)

REASONS = {
    "ltrb": "distances to the left, top, right and bottom from a point, which DecodeBbox doesn't take",
    "dfl": "distances to the sides as means of distributions, which DecodeBbox doesn't take",
    "tblr": "distances to the top, bottom, left and right, which DecodeBbox doesn't take",
    "cxcywh": "centers and sizes that become corners, without anchors",
    "yolo": "centers relative to a cell of a grid, and sizes apart from them, which DecodeBbox doesn't take",
}


@dataclass(frozen=True)
class Read:
    """The symbols of one tensor of predictions: where each lies, and those that went through a sigmoid."""

    indices: dict[int, tuple[int, ...]]
    gated: frozenset[int]


def _order(atoms: Sequence[int], read: Read) -> list[int] | None:
    """Return the order in which four symbols lie along one axis of the predictions, None where they don't."""
    found = np.array([read.indices[symbol] for symbol in atoms])
    varying = np.flatnonzero((found != found[0]).any(axis=0))
    if len(set(atoms)) < 4 or len(varying) != 1:
        return None
    return [int(rank) for rank in np.argsort(np.argsort(found[:, varying[0]]))]


def _alone(poly: Poly, read: Read) -> int | None:
    """Return the one symbol of the predictions that a polynomial reads, None where there is another number of them."""
    symbols = [symbol for symbol in _poly.used_slots(poly) if symbol in read.indices]
    return symbols[0] if len(symbols) == 1 else None


def _split(poly: Poly, symbol: int) -> tuple[Poly, Poly]:
    """Return the terms with a symbol, and those without it."""
    with_it = tuple(term for term in poly if symbol in _poly.used_slots((term,)))
    return with_it, tuple(term for term in poly if term not in with_it)


def _half(poly: Poly) -> Poly:
    return _poly.multiply(poly, _poly.constant_poly(HALF))


def _distances(polys: Sequence[Poly], read: Read, wanted: Sequence[int]) -> bool:
    """Tell whether corners are a point less and plus a prediction each."""
    symbols = [_alone(poly, read) for poly in polys]
    if None in symbols:
        return False
    if _order([symbol for symbol in symbols if symbol is not None], read) != list(wanted):
        return False
    for low, high in ((0, 2), (1, 3)):
        parts = [_split(polys[coordinate], symbols[coordinate] or 0) for coordinate in (low, high)]
        ours, theirs = (
            _renamed(part[0], symbols[coordinate] or 0) for part, coordinate in zip(parts, (low, high), strict=True)
        )
        if parts[0][1] != parts[1][1] or _poly.add(ours, theirs) != _poly.ZERO:
            return False
        if any(value > 0 for _, value in ours if len(ours) == 1):
            return False
    return True


def _renamed(poly: Poly, symbol: int) -> Poly:
    """Return a polynomial with -1 in place of one symbol."""
    slots = {slot: -1 if slot == symbol else slot for slot in _poly.used_slots(poly)}
    return _poly.relabel(poly, slots)


def _corners(polys: Sequence[Poly]) -> list[Poly]:
    """Return the corners of what is given as center and size."""
    pairs = [(polys[coordinate], _half(polys[coordinate + 2])) for coordinate in (0, 1)]
    return [_poly.subtract(*pair) for pair in pairs] + [_poly.add(*pair) for pair in pairs]


def _from_corners(polys: Sequence[Poly]) -> list[Poly]:
    """Return the center and the size of what is given as corners."""
    pairs = [(polys[coordinate], polys[coordinate + 2]) for coordinate in (0, 1)]
    return [_half(_poly.add(*pair)) for pair in pairs] + [_poly.subtract(high, low) for low, high in pairs]


def _ltrb(polys: Sequence[Poly], read: Read) -> bool:
    return any(_distances(each, read, (0, 1, 2, 3)) for each in (polys, _corners(polys)))


def _tblr(polys: Sequence[Poly], read: Read) -> bool:
    return _distances(polys, read, (2, 0, 3, 1))


def _cxcywh(polys: Sequence[Poly], read: Read) -> bool:
    """Tell whether corners are a center less and plus half a size, each of one prediction."""
    given = _from_corners(polys)
    symbols = [_alone(poly, read) for poly in given]
    if None in symbols or any(len(poly) != 1 or poly[0][1] < 0 for poly in given):
        return False
    listed = [symbol for symbol in symbols if symbol is not None]
    same = [_renamed(poly, symbol) for poly, symbol in zip(given, listed, strict=True)]
    return _order(listed, read) == [0, 1, 2, 3] and same[0] == same[2] and same[1] == same[3]


def _yolo(polys: Sequence[Poly], read: Read) -> bool:
    """Tell whether centers are linear in a prediction each, and sizes an exponential or a square of one.

    As corners, centers must be sigmoids: without, they are what DecodeBbox takes, with anchors as numbers.
    """
    if _centers_and_sizes(polys, read):
        return True
    given = _from_corners(polys)
    centers = [_alone(poly, read) for poly in given[:2]]
    return read.gated.issuperset(symbol for symbol in centers if symbol is not None) and _centers_and_sizes(given, read)


def _centers_and_sizes(polys: Sequence[Poly], read: Read) -> bool:
    symbols = [_alone(poly, read) for poly in polys]
    if None in symbols or any(len(poly) != 1 for poly in polys[2:]):
        return False
    listed = [symbol for symbol in symbols if symbol is not None]
    linear = all(
        [atom for key, _ in _split(poly, symbol)[0] for atom in key].count(("x", symbol)) == 1
        for poly, symbol in zip(polys[:2], listed[:2], strict=True)
    )
    grown = all(
        any(atom[0] == "exp" for atom in poly[0][0]) or poly[0][0].count(("x", symbol)) == 2
        for poly, symbol in zip(polys[2:], listed[2:], strict=True)
    )
    return linear and grown and _order(listed, read) == [0, 1, 2, 3]


FORMS: dict[str, Callable[[Sequence[Poly], Read], bool]] = {
    "ltrb": _ltrb,
    "tblr": _tblr,
    "cxcywh": _cxcywh,
    "yolo": _yolo,
}
