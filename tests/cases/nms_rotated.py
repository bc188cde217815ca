"""Cases of nms_rotated: no IoU is so near to a threshold that rounding could decide."""

import numpy as np

from tests.cases import Case, rotated_boxes_of

_rng = np.random.default_rng(12)
_N = 24
_B = np.concatenate(
    [_rng.integers(0, 20, (_N, 2)), _rng.integers(4, 16, (_N, 2)), _rng.integers(-6, 7, (_N, 1)) * 0.5], 1
)
_S, _L = _rng.integers(-8, 64, _N) / 64, _rng.integers(-2, 2, _N)
# Equal ones, no area, inside out, NaN, infinite, far away.
_ODD = np.array([[0, 0, 4, 2, 1]] * 9, float)
_ODD[2:8, 2] = 0, -4, np.nan, np.inf, 4, 4
_ODD[6, 4], _ODD[7, 0], _ODD[8, 1] = np.nan, np.inf, 1000
_ODD_SCORES = np.array([0.5, 0.5, 0.75, 0.25, 0.5, 0.5, np.nan, 0.5, -0.5])


def _case(name, options, **arrays):
    given = {"boxes": _B, "scores": _S, **arrays}
    return Case("nms_rotated", name, given, {"iou_threshold": 0.3003, **options}, fixed=("labels",), exact=True)


CASES = [
    _case("plain", {}),
    _case("counterclockwise", {"clockwise": False, "iou_threshold": 0.1501}),
    _case("labels", {}, labels=_L),
    _case("score threshold and limit", {"score_threshold": 0.25, "max_output_boxes": 5}),
    _case("labels and limit", {"max_output_boxes": 6, "iou_threshold": 0.0503}, labels=_L),
    _case("odd boxes", {}, boxes=_ODD, scores=_ODD_SCORES),
    _case("a label for each", {"max_output_boxes": 9}, labels=np.arange(_N)),
    _case("none is above the threshold", {"score_threshold": 1.0}),
    _case("no boxes", {}, boxes=_B[:0], scores=_S[:0]),
]


def _ordinary(rng: np.random.Generator, size: int) -> Case:
    boxes, scores = rotated_boxes_of(rng, 20 * size, 100), rng.uniform(0, 1, 20 * size)
    arrays = {"boxes": boxes, "scores": scores, "labels": rng.integers(0, 3, 20 * size)}
    return Case("nms_rotated", "", arrays, {"iou_threshold": 0.1}, fixed=("labels",))


ORDINARY = {"nms_rotated": _ordinary}
