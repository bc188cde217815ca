"""Cases of box_iou_rotated."""

import numpy as np

from tests.cases import Case, rotated_boxes_of

_rng = np.random.default_rng(8)


def _boxes(count):
    """Whole centers and sizes, and angles of eighths of a turn and others."""
    place = _rng.integers(-6, 7, (count, 2))
    return np.concatenate([place, _rng.integers(1, 12, (count, 2)), _rng.integers(-6, 7, (count, 1)) * 0.5], 1)


_A, _B = _boxes(4), _boxes(6)
# Equal, a quarter turn and a whole one, one in the other, crossing, touching at a side and a corner, apart.
_PLACES = np.array(
    [
        [0, 0, 8, 4, 0],
        [0, 0, 4, 8, np.pi / 2],
        [0, 0, 8, 4, 2 * np.pi],
        [0, 0, 4, 2, 1],
        [0, 0, 2, 20, 0.5],
        [8, 0, 8, 4, 0],
        [4 + np.sqrt(2), 0, 2, 2, np.pi / 4],
        [30, 0, 4, 4, 1],
    ]
)
# No area, turned inside out, thin, nearly parallel.
_THIN = np.array(
    [[0, 0, 0, 4, 1], [0, 0, 4, 0, 1], [0, 0, -4, 4, 1], [0, 0, 800, 1, 1], [4, 6, 800, 1, 1.001], [0, 0, 9, 9, 3]]
)
_ODD = _boxes(7)
_ODD[range(5), range(5)] = np.nan, np.inf, -np.inf, np.nan, np.inf
_ODD[5] = np.inf

CASES = [
    Case("box_iou_rotated", f"{name}, {mode}", {"boxes_a": a, "boxes_b": b}, {**options, "mode": mode})
    for mode in ("iou", "iof")
    for name, a, b, options in [
        ("plain", _A, _B, {}),
        ("places", _PLACES, _PLACES[::2], {}),
        ("thin", _THIN, np.concatenate([_THIN[2:], _A[:2]]), {}),
        ("counterclockwise, aligned", _A, _B[:4], {"clockwise": False, "aligned": True}),
    ]
]
CASES += [
    Case("box_iou_rotated", "NaN and infinite", {"boxes_a": _ODD, "boxes_b": _A}),
    Case("box_iou_rotated", "no boxes", {"boxes_a": _A[:0], "boxes_b": _B[:0]}),
    Case("box_iou_rotated", "no first boxes", {"boxes_a": _A[:0], "boxes_b": _B}, {"mode": "iof"}),
    Case("box_iou_rotated", "no pairs", {"boxes_a": _A[:0], "boxes_b": _B[:0]}, {"aligned": True}),
    Case("box_iou_rotated", "integers", {"boxes_a": _A.astype(np.int16), "boxes_b": _B}, fixed=("boxes_a",)),
]


def _ordinary(rng: np.random.Generator, size: int) -> Case:
    arrays = {"boxes_a": rotated_boxes_of(rng, 8 * size, 60), "boxes_b": rotated_boxes_of(rng, 10 * size, 60)}
    return Case("box_iou_rotated", "", arrays)


ORDINARY = {"box_iou_rotated": _ordinary}
