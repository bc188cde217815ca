"""Cases of soft_nms. No score comes near another one, or near the least score, so that every type decides alike."""

import numpy as np

from tests.cases import Case, boxes_of

_rng = np.random.default_rng(19)


def _arrays(count, extent=64):
    low = _rng.integers(0, extent, (count, 2))
    boxes = np.concatenate([low, low + _rng.integers(1, 48, (count, 2))], -1) / 8
    return {"boxes": boxes, "scores": (_rng.permutation(count) + 1) / (count + 3)}


_ODD = {
    "boxes": np.array(
        [
            [0, 0, 4, 4],
            [0, 0, 4, 3],
            [4, 4, 0, 0],
            [4, 0, 0, 4],
            [1, 1, 1, 3],
            [np.nan, 0, 4, 4],
            [0, 0, np.inf, np.inf],
            [-np.inf, 0, 4, 4],
            [np.inf, np.inf, np.inf, np.inf],
            [0, 0, 4, 2],
            [1, 0, 4, 4],
        ]
    ),
    "scores": np.array([1, 0.5, 0.375, np.inf, -np.inf, -1, 3, 0.25, 2, np.nan, 0.75]),
}
_SAME = {"boxes": np.tile([0.0, 0, 4, 4], (5, 1)), "scores": np.array([0.5, 0.75, 0.25, 0.875, 0.625])}
_LOW = {**_arrays(6), "scores": np.array([1, 3, 2, 6, 4, 5]) / 8192}

_CASES = [
    *((f"{method}", _arrays(25), {"method": method}) for method in ("linear", "gaussian", "naive")),
    *((f"{method}, offset", _arrays(12), {"method": method, "offset": 1}) for method in ("linear", "gaussian")),
    *((f"{method}, odd boxes and scores", _ODD, {"method": method}) for method in ("linear", "gaussian", "naive")),
    *((f"{method}, equal boxes", _SAME, {"method": method}) for method in ("linear", "gaussian", "naive")),
    ("a threshold of 0", _arrays(12), {"iou_threshold": 0.0}),
    ("a threshold of 1", _SAME, {"iou_threshold": 1.0, "method": "naive"}),
    ("a narrow weight", _arrays(20, 16), {"method": "gaussian", "sigma": 0.05}),
    ("a high least score", _arrays(20, 16), {"min_score": 0.3141}),
    ("a least score below 0", _SAME, {"min_score": -1.0, "method": "naive"}),
    ("all below the least score", _LOW, {"min_score": 0.0105}),
    ("a limit", _arrays(20), {"max_output_boxes": 7}),
    ("a limit of none", _arrays(5), {"max_output_boxes": 0}),
    ("more boxes than lanes, most of them dropped", _arrays(70, 16), {"min_score": 0.3141}),
    ("one box", _arrays(1), {}),
    ("no boxes", _arrays(0), {}),
]

CASES = [Case("soft_nms", name, arrays, options) for name, arrays, options in _CASES]


def _ordinary(rng: np.random.Generator, size: int) -> Case:
    arrays = {"boxes": boxes_of(rng, 10 * size), "scores": rng.uniform(0, 1, 10 * size)}
    return Case("soft_nms", "", arrays, {"method": "gaussian"})


ORDINARY = {"soft_nms": _ordinary}
