"""Reads the parameters of a decode off its normal form, and says in words what stands in the way."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detops.graph._finding import Refusal
from detops.graph._schema import CENTER, CORNER, DECODE_BBOX_V2, Parameters
from detops.graph.symbols import _poly
from detops.graph.symbols._expressions import Pool
from detops.graph.symbols._poly import Poly

# slots of one box: tx, ty, tw, th and x1, y1, x2, y2
ANCHOR = 4
ZERO, HALF, ONE = Fraction(0), Fraction(1, 2), Fraction(1)
# what is added to x1 and x2: nothing, or, where pixels are counted in anchors and not in boxes, one at the end
# (py-faster-rcnn) or a half on both sides (MMDetection 2, for models of its first version)
NOTHING, LAST_PIXEL, HALF_PIXELS = (ZERO, ZERO), (ZERO, ONE), (-HALF, HALF)
# the pairs of that and of what is taken from the decoded size, which the known coders have
CORNER_FORMS = ((NOTHING, ZERO), (NOTHING, ONE), (LAST_PIXEL, ZERO), (HALF_PIXELS, ZERO))


@dataclass(frozen=True)
class Coefficients:
    """The exact numbers in a decode: t is taken as `scale * t + mean` (multiplied, not divided)."""

    scales: tuple[Fraction, ...]
    means: tuple[Fraction, ...]
    upper: Fraction | None
    lower: Fraction | None
    anchor_form: str = CORNER
    offset: Fraction = ZERO
    added: tuple[Fraction, Fraction] = NOTHING  # to the anchor's first and last corner, before all that

    def scaled(self, poly: Poly, coordinate: int) -> Poly:
        """Scale and shift one prediction."""
        product = _poly.multiply(poly, _poly.constant_poly(self.scales[coordinate]))
        return _poly.add(product, _poly.constant_poly(self.means[coordinate]))

    def grown(self, poly: Poly, coordinate: int) -> Poly:
        """Scale, shift and bound tw or th, and take the exponential."""
        poly = self.scaled(poly, coordinate)
        if self.lower is not None:
            poly = _poly.maximum(poly, _poly.constant_poly(self.lower))
        if self.upper is not None:
            poly = _poly.minimum(poly, _poly.constant_poly(self.upper))
        return _poly.exp(poly)


@dataclass(frozen=True)
class _Growth:
    """The argument of the exponential of one axis, and what the exponential is multiplied by."""

    scale: Fraction
    mean: Fraction
    upper: Fraction | None
    lower: Fraction | None
    anchor_form: str
    counted: Fraction  # what is added to x2 - x1


def read_off(pool: Pool, outputs: NDArray[Any], rows: NDArray[Any], boxes: NDArray[Any]) -> Coefficients:
    """Read the coefficients off the first box; whether they hold for all is for the caller to compare."""
    corners = [_of_one_box(pool, int(outputs[0, 0, coordinate]), rows, boxes) for coordinate in range(4)]
    for coordinate, corner in enumerate(corners):
        if not _exponentials(corner):
            raise Refusal(f"no exponential reaches coordinate {coordinate} of the output", depth=3)
    _check_order(corners)
    growths = [_growth(corners[coordinate], coordinate) for coordinate in (0, 1)]
    if (growths[0].upper, growths[0].lower) != (growths[1].upper, growths[1].lower):
        raise Refusal(
            f"tw and th have different bounds: {_words(growths[0].upper)} and {_words(growths[1].upper)}",
            depth=4,
        )
    if growths[0].lower is not None and growths[0].upper is None:
        raise Refusal(
            f"Maximum in place of Minimum: tw and th are bounded by {_words(growths[0].lower)} from below only",
            depth=4,
        )
    if growths[0].anchor_form != growths[1].anchor_form:
        raise Refusal("the anchors are in center form along one axis, and in corner form along the other", depth=4)
    form = growths[0].anchor_form
    scales, means = [ZERO] * 4, [ZERO] * 4
    for coordinate in (0, 1):
        terms = dict(corners[coordinate])
        last = ("x", ANCHOR + coordinate + 2)
        scales[coordinate] = terms.get((("x", coordinate), last), ZERO)
        means[coordinate] = terms.get((last,), ZERO) - (HALF if form == CORNER else ZERO)
        scales[coordinate + 2], means[coordinate + 2] = growths[coordinate].scale, growths[coordinate].mean
    if not all(scales):
        raise Refusal("a prediction doesn't reach the output", depth=4)
    counts = {
        _count(corners[coordinate], corners[coordinate + 2], growths[coordinate].counted, means[coordinate])
        for coordinate in (0, 1)
    }
    if len(counts) > 1:
        raise Refusal("pixels are counted along one axis otherwise than along the other", depth=4)
    offset, added = _settled(form, *counts.pop())
    return Coefficients(tuple(scales), tuple(means), growths[0].upper, growths[0].lower, form, offset, added)


def _count(low: Poly, high: Poly, counted: Fraction, mean: Fraction) -> tuple[Fraction, Fraction, Fraction]:
    """Return what is added to an anchor's size and to its center, and taken from the decoded size."""
    first, last = dict(low).get((), ZERO), dict(high).get((), ZERO)
    return counted, (first + last) / 2 - mean * counted, first - last


def _settled(
    form: str, size: Fraction, center: Fraction, taken: Fraction
) -> tuple[Fraction, tuple[Fraction, Fraction]]:
    """Return the offset of a node that counts pixels in such a way, and what is added to the corners of its anchors."""
    added = center - (size - taken) / 2, center + (size - taken) / 2
    if form == CENTER and not center and taken in (ZERO, ONE):
        return taken, NOTHING
    if form == CORNER and (added, taken) in CORNER_FORMS:
        return taken, added
    raise Refusal(
        f"pixels are counted (legacy +1) in another way than DecodeBbox does: an anchor's size is larger by "
        f"{_words(size)}, its center by {_words(center)}, and the decoded size is smaller by {_words(taken)}",
        depth=4,
    )


def _of_one_box(pool: Pool, element: int, rows: NDArray[Any], boxes: NDArray[Any]) -> Poly:
    """Return an element's form over the eight slots of the first box; refuse one that reads other boxes."""
    poly, symbols = pool.element(element)
    slots: dict[int, int] = {}
    for slot, symbol in enumerate(symbols):
        for source, name, shift in ((rows, "box_predictions", 0), (boxes, "anchors", ANCHOR)):
            # symbols are numbered along the memory of the tensor, which `rows` may have transposed
            first = int(source.min())
            indices = np.argwhere(source == first + symbol - pool.element(first)[1][0])
            if not len(indices):
                continue
            if indices[0][0] or indices[0][1]:
                where = f"box {int(indices[0][0])}" if indices[0][0] else f"class {int(indices[0][1])}"
                raise Refusal(
                    f"boxes are mixed: the first box of the output is built from {where} of {name} "
                    "(a Concat, Split, Reshape or Transpose on another axis)",
                    depth=3,
                )
            slots[slot] = int(indices[0][2]) + shift
    return _poly.relabel(poly, slots)


def _exponentials(poly: Poly) -> list[tuple[tuple[Any, ...], Fraction]]:
    return [(key, value) for key, value in poly if any(_holds_exp(atom) for atom in key)]


def _holds_exp(atom: tuple[Any, ...]) -> bool:
    if atom[0] == "exp":
        return True
    return atom[0] != "x" and any(_holds_exp(inner) for key, _ in atom[1] for inner in key)


def _check_order(corners: list[Poly]) -> None:
    """Find out which corner each output coordinate is: the axis from what it reads, the side from the sign."""
    order = []
    for coordinate, corner in enumerate(corners):
        used = _poly.used_slots(corner)
        axes = {slot % 2 for slot in used}
        if len(axes) != 1:
            raise Refusal(
                f"both axes are mixed: coordinate {coordinate} of the output is built from coordinates "
                f"{_listed(slot for slot in used if slot < ANCHOR)} of box_predictions and "
                f"{_listed(slot - ANCHOR for slot in used if slot >= ANCHOR)} of anchors",
                depth=4,
            )
        axis = axes.pop()
        _, value = max(_exponentials(corner), key=lambda term: [atom[1] for atom in term[0] if atom[0] == "x"])
        order.append(axis + (2 if value > 0 else 0))
    if order != [0, 1, 2, 3] and sorted(order) == [0, 1, 2, 3]:
        names = ("x1", "y1", "x2", "y2")
        raise Refusal(f"the corners come in the order {', '.join(names[coordinate] for coordinate in order)}", depth=4)


def _growth(corner: Poly, coordinate: int) -> _Growth:
    """Read scale, mean and bounds out of exp(min(max(scale * t + mean, lower), upper)) * (x2 - x1 + counted) / 2."""
    first, last = ("x", ANCHOR + coordinate), ("x", ANCHOR + coordinate + 2)
    terms = _exponentials(corner)
    for key, _ in terms:
        if any(atom[0] in ("min", "max") for atom in key):
            raise Refusal("the bound is applied after the exponential, not before it", depth=4)
    sizes = {tuple(atom for atom in key if atom[0] != "exp"): value for key, value in terms}
    counted = -2 * sizes.pop((), ZERO)
    form = CENTER if set(sizes) == {(last,)} else CORNER
    if form == CENTER and counted:
        raise Refusal(f"{_words(counted)} is added to the size of an anchor in center form (cx, cy, w, h)", depth=4)
    if len({atom for key, _ in terms for atom in key if atom[0] == "exp"}) > 1 or (
        form == CORNER and set(sizes) != {(first,), (last,)}
    ):
        raise Refusal("the exponential isn't multiplied by the size of the anchor alone", depth=4)
    if {abs(value) for value in sizes.values()} != {HALF}:
        found = ", ".join(sorted({_words(abs(value)) for value in sizes.values()}))
        raise Refusal(f"the size is multiplied by {found} where a decode takes 0.5 to either side", depth=4)
    inner = next(atom for atom in terms[0][0] if atom[0] == "exp")[1]
    upper = lower = None
    atom = _poly.as_atom(inner, "min")
    if atom is not None:
        inner, upper = atom[1], atom[2]
    atom = _poly.as_atom(inner, "max")
    if atom is not None:
        inner, lower = atom[1], atom[2]
    scaled = dict(inner)
    wanted = (("x", coordinate + 2),)
    scale, mean = scaled.pop(wanted, Fraction(0)), scaled.pop((), Fraction(0))
    if not scale and _poly.used_slots(inner) == {coordinate}:
        raise Refusal("bound and exponential act on tx and ty, not on tw and th", depth=4)
    if scaled or not scale:
        raise Refusal("what stands in the exponential isn't tw or th, scaled, shifted and bounded", depth=4)
    return _Growth(scale, mean, upper, lower, form, counted)


def parameters(found: Coefficients, dtype: np.dtype[Any], axis: int, classes: int) -> Parameters:
    """Return the coefficients as the node's attributes, or refuse where float32 attributes cannot hold them."""
    if found.lower is not None and found.upper is not None and not found.lower < found.upper:
        raise Refusal("the lower bound of tw and th isn't below the upper one", depth=6)
    upper, lower = (
        None if bound is None else _exact(bound, "bound of tw and th") for bound in (found.upper, found.lower)
    )
    values = Parameters(
        decode_clip=upper,
        lower_clip=lower,
        scales=tuple(_rounded(1 / scale, dtype, "scale") for scale in found.scales),
        means=tuple(_rounded(mean, dtype, "mean") for mean in found.means),
        anchor_form=found.anchor_form,
        offset=int(found.offset),
        axis=axis,
        classes=classes,
    )
    if values.operator == DECODE_BBOX_V2 and upper == 0:
        raise Refusal("a bound of 0 means no bound in DecodeBboxV2", depth=6)
    return values


def _exact(value: Fraction, what: str) -> float:
    with np.errstate(over="ignore"):
        single = float(np.float32(float(value)))
    if not np.isfinite(single) or Fraction(single) != value:
        raise Refusal(f"the {what}, {float(value)!r}, is no float32, and an attribute holds nothing finer", depth=6)
    return single


def _rounded(value: Fraction, dtype: np.dtype[Any], what: str) -> float:
    """Round to float32 where the model computes no finer than that."""
    with np.errstate(over="ignore"):
        single = float(np.float32(float(value)))
    error = abs(Fraction(single) - value) if np.isfinite(single) else abs(value)
    if error > abs(value) * (Fraction(1, 1 << 23) if dtype.itemsize <= 4 else 0):
        raise Refusal(f"the {what}, {float(value)!r}, is no {dtype.name} that an attribute can hold", depth=6)
    return single


def _words(value: Fraction | None) -> str:
    return "none" if value is None else repr(float(value))


def _listed(coordinates: Any) -> str:
    return ", ".join(str(coordinate) for coordinate in sorted(coordinates)) or "none"
