"""Cases of box_iou."""

import numpy as np

from tests.cases import Case, boxes_of

MODES = ("iou", "iof", "giou", "diou", "ciou")
_rng = np.random.default_rng(3)


def _boxes(count):
    low = _rng.integers(0, 24, (count, 2)) / 2
    return np.concatenate([low, low + _rng.integers(1, 24, (count, 2)) / 2], 1)


_A, _B = _boxes(5), _boxes(7)
# Apart, touching, crossing, one in the other, equal.
_PLACES = np.array([[40, 40, 44, 42], [8, 0, 12, 8], [-2, 3, 10, 5], [2, 2, 6, 6], [0, 0, 8, 8], [0, 0, 8, 2]], float)
# Points, lines, boxes that are turned in one or both axes, and such that only an offset gives an area.
_THIN = np.array([[3, 3, 3, 3], [3, 3, 3, 7], [2, 3, 6, 3], [6, 2, 2, 6], [6, 6, 2, 2], [4, 2, 3.5, 6], [3, 3, 3, 3]])
_ODD = _boxes(6)
_ODD[0, 0], _ODD[1, 3], _ODD[2, 0], _ODD[3, 2] = np.nan, np.nan, -np.inf, np.inf
_ODD[4] = -np.inf, -np.inf, np.inf, np.inf
_FAR = _boxes(4) + 1000

_SETS = [
    ("plain", _A, _B, {}),
    ("places", _PLACES, _PLACES[::-1], {}),
    ("without area", _THIN, np.concatenate([_THIN, _A[:2]]), {}),
    ("NaN and infinite", _ODD, np.concatenate([_ODD, _A[:2]]), {}),
    ("far away", _FAR, _FAR[::-1], {}),
    ("aligned", _A, _B[:5], {"aligned": True}),
]
_OFFSETS = [("offset", _A, _B), ("offset without area", _THIN, _PLACES), ("offset, NaN and infinite", _ODD, _A)]

CASES = [
    Case("box_iou", f"{name}, {mode}", {"boxes_a": a, "boxes_b": b}, {**options, "mode": mode})
    for mode in MODES
    for name, a, b, options in _SETS
]
CASES += [
    Case("box_iou", f"{name}, {mode}", {"boxes_a": a, "boxes_b": b}, {"offset": 1, "mode": mode})
    for mode in MODES
    for name, a, b in _OFFSETS
]
CASES += [
    Case("box_iou", "no boxes", {"boxes_a": _A[:0], "boxes_b": _B[:0]}),
    Case("box_iou", "no first boxes", {"boxes_a": _A[:0], "boxes_b": _B}, {"mode": "giou"}),
    Case("box_iou", "no second boxes", {"boxes_a": _A, "boxes_b": _B[:0]}),
    Case("box_iou", "no pairs", {"boxes_a": _A[:0], "boxes_b": _B[:0]}, {"aligned": True}),
    Case("box_iou", "integers", {"boxes_a": _PLACES.astype(np.int16), "boxes_b": _A}, fixed=("boxes_a",)),
]


def _ordinary(rng: np.random.Generator, size: int) -> Case:
    arrays = {"boxes_a": boxes_of(rng, 8 * size), "boxes_b": boxes_of(rng, 20 * size)}
    return Case("box_iou", "", arrays, {"mode": "ciou"})


ORDINARY = {"box_iou": _ordinary}
