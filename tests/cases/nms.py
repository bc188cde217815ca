"""Cases of nms, batched_nms, non_max_suppression and non_max_suppression_padded.

Coordinates are eighths and thresholds are ratios of small numbers, so that every type decides as float64 does.
"""

import numpy as np

from tests.cases import Case, boxes_of

_rng = np.random.default_rng(11)


def _boxes(*shape, turned=False):
    low = _rng.integers(0, 64, (*shape, 2))
    high = low + _rng.integers(1, 48, (*shape, 2))
    boxes = np.concatenate([low, high], -1) / 8
    if turned:
        boxes = np.where(_rng.random((*shape, 1)) < 0.5, boxes, boxes[..., [0, 3, 2, 1]])
        boxes = np.where(_rng.random((*shape, 1)) < 0.5, boxes, boxes[..., [2, 1, 0, 3]])
    return boxes


def _centered(*shape):
    return np.concatenate([_rng.integers(0, 64, (*shape, 2)), _rng.integers(1, 48, (*shape, 2))], -1) / 8


def _scores(*shape):
    return _rng.integers(-8, 64, shape) / 64


_N = 25
_B, _S, _L = _boxes(_N), _scores(_N), _rng.integers(-2, 3, _N)
_BATCH, _TURNED, _CENTERED, _CLASSES = _boxes(2, 18), _boxes(2, 18, turned=True), _centered(2, 18), _scores(2, 3, 18)
_ODD = np.array(
    [
        [0, 0, 4, 4],
        [0, 0, 4, 4],
        [4, 4, 0, 0],
        [4, 0, 0, 4],
        [1, 1, 1, 3],
        [1, 1, 1, 3],
        [np.nan, 0, 4, 4],
        [0, 0, 4, np.nan],
        [0, 0, np.inf, np.inf],
        [-np.inf, 0, 4, 4],
        [-np.inf, -np.inf, np.inf, np.inf],
        [np.inf, np.inf, np.inf, np.inf],
        [0, 0, 4, 3],
        [-0.0, -0.0, 4, 4],
    ]
)
_ODD_SCORES = np.array([1, 0.5, 0.5, np.inf, -np.inf, -1, 3, 3, 0, 2, 4, 0.25, np.nan, -0.0])

# Neighboring numbers are further apart here than the pixel that an offset adds: far in float32, and in float64.
_FAR = [
    (f"{name}, far away", place + step * np.array([[0, 0, 0, 0], [0, 0, 0, 0], [8, 0, 8, 0], [8, 0, 16, 8]], float))
    for name, place, step in (("offset", 2.0**24, 1), ("offset, farther", 2.0**60, 2.0**40))
]

_EVERYWHERE = [
    ("plain", _B, _S, {"iou_threshold": 0.5}),
    ("threshold of 0", _B, _S, {"iou_threshold": 0}),
    ("threshold of 1", np.tile(_B, (2, 1)), np.tile(_S, 2), {"iou_threshold": 1}),
    ("offset", _B, _S, {"iou_threshold": 0.25, "offset": 1}),
    ("above a score", _B, _S, {"iou_threshold": 0.5, "score_threshold": 0.25}),
    ("above a negative score", _B, _S, {"iou_threshold": 0.5, "score_threshold": -0.0625}),
    ("above every score", _B, _S, {"iou_threshold": 0.5, "score_threshold": 1}),
    ("a few", _B, _S, {"iou_threshold": 0.5, "max_output_boxes": 5}),
    ("none", _B, _S, {"iou_threshold": 0.5, "max_output_boxes": 0}),
    ("more than there are", _B, _S, {"iou_threshold": 0.5, "max_output_boxes": 2**63}),
    ("ties", _B, np.ones(_N), {"iou_threshold": 0.5}),
    ("signed zeros tie", _B, np.where(np.arange(_N) % 2, 0.0, -0.0), {"iou_threshold": 0.5}),
    ("no boxes", np.empty((0, 4)), np.empty(0), {"iou_threshold": 0.5}),
    ("few scores, far apart", _B[:2], np.array([-np.inf, 1]), {"iou_threshold": 0.5}),
    ("one box", _B[:1], _S[:1], {"iou_threshold": 0.5}),
    ("no score", _B, np.full(_N, np.nan), {"iou_threshold": 0.5}),
    ("odd boxes and scores", _ODD, _ODD_SCORES, {"iou_threshold": 0.5}),
    ("odd boxes, offset", _ODD, _ODD_SCORES, {"iou_threshold": 0.5, "offset": 1}),
    ("a few take part", _B, _S, {"iou_threshold": 0.25, "pre_nms_top_k": 9}),
    ("a few above a score take part", _B, _S, {"iou_threshold": 0.25, "score_threshold": 0.25, "pre_nms_top_k": 4}),
    ("a few of equal score take part", _B, np.ones(_N), {"iou_threshold": 0.25, "pre_nms_top_k": 5}),
    ("of a few that take part, fewer", _B, _S, {"iou_threshold": 0.25, "pre_nms_top_k": 9, "max_output_boxes": 3}),
    ("none take part", _B, _S, {"iou_threshold": 0.5, "pre_nms_top_k": 0}),
    ("more may take part than there are", _B, _S, {"iou_threshold": 0.5, "pre_nms_top_k": 2**63}),
    ("odd boxes, threshold of 0", _ODD, _ODD_SCORES, {"iou_threshold": 0}),
    *((name, boxes, _S[:4], {"iou_threshold": 0.5, "offset": 1}) for name, boxes in _FAR),
]
_PER_CLASS = [
    ("all", {"max_output_boxes_per_class": 18, "iou_threshold": 0.5}),
    ("defaults", {}),
    ("a few", {"max_output_boxes_per_class": 3, "iou_threshold": 0.25}),
    ("above a score", {"max_output_boxes_per_class": 18, "iou_threshold": 0.5, "score_threshold": 0.25}),
    ("above 0", {"max_output_boxes_per_class": 18, "iou_threshold": 0.5, "score_threshold": 0.0}),
    ("above every score", {"max_output_boxes_per_class": 18, "iou_threshold": 0.5, "score_threshold": 2.0}),
    ("no limit", {"max_output_boxes_per_class": 2**63 - 1, "iou_threshold": 0.5}),
    ("a few take part", {"max_output_boxes_per_class": 18, "iou_threshold": 0.25, "pre_nms_top_k": 5}),
    ("of a few that take part, fewer", {"max_output_boxes_per_class": 2, "iou_threshold": 0.25, "pre_nms_top_k": 5}),
    ("none take part", {"max_output_boxes_per_class": 18, "pre_nms_top_k": 0}),
    ("a few of all classes", {"max_output_boxes_per_class": 18, "iou_threshold": 0.5, "max_output_boxes_total": 4}),
    (
        "a few of each class, fewer of all",
        {"max_output_boxes_per_class": 5, "iou_threshold": 0.5, "pre_nms_top_k": 9, "max_output_boxes_total": 11},
    ),
    ("one of all classes", {"max_output_boxes_per_class": 18, "iou_threshold": 0.5, "max_output_boxes_total": 1}),
    ("none of all classes", {"max_output_boxes_per_class": 18, "max_output_boxes_total": 0}),
    (
        "no limit over all classes",
        {"max_output_boxes_per_class": 18, "iou_threshold": 0.5, "max_output_boxes_total": 2**63},
    ),
]
_SHAPES = [
    ("no boxes", np.empty((2, 0, 4)), np.empty((2, 3, 0))),
    ("no classes", _BATCH, np.empty((2, 0, 18))),
    ("no batches", np.empty((0, 18, 4)), np.empty((0, 3, 18))),
    ("odd boxes and scores", _ODD[None], np.stack([_ODD_SCORES, _ODD_SCORES[::-1]])[None]),
]
# Zeros of either sign tie; a class without boxes, and one whose scores are all NaN.
_TIES = np.where(np.arange(18) % 2, 0.0, -0.0) * np.ones((2, 4, 1))
_TIES[:, 1], _TIES[:, 3] = np.nan, 0.125 * (np.arange(18) % 3 == 1)

CASES = []
for _name, _boxes_, _scores_, _options in _EVERYWHERE:
    _arrays = {"boxes": _boxes_, "scores": _scores_}
    CASES.append(Case("nms", _name, _arrays, _options))
    _labeled = {**_arrays, "labels": np.arange(len(_scores_)) % 3 - 1}
    CASES.append(Case("batched_nms", _name, _labeled, _options, fixed=("labels",)))
for _name, _labels in (
    ("one label", np.full(_N, 7, np.uint8)),
    ("a label each", np.arange(_N, dtype=np.int16)),
    ("labels far apart", _L.astype(np.uint64)),
):
    _arrays = {"boxes": _B, "scores": _S, "labels": _labels}
    CASES.append(Case("batched_nms", _name, _arrays, {"iou_threshold": 0.25}, fixed=("labels",)))
# Of a label and of a class that no box passes, too, and of one that scores have exactly.
_OF_LABELS = [
    ("a threshold for each label", (0.25, -0.5, 0.5, 2.0), None),
    ("a threshold for each label, a few", (0.25, -0.5, 0.0, 2.0), 3),
    ("no threshold passed", (2.0, 3.0, 4.0, np.inf), None),
    ("thresholds that all pass", (-np.inf, -np.inf, -1.0, -2.0), None),
]
for _name, _thresholds, _top_k in _OF_LABELS:
    for _scores_ in (_S, np.append(_S[:-2], [np.nan, np.inf])):
        _arrays = {"boxes": _B, "scores": _scores_, "labels": np.abs(_L) + _N % 2}
        _options = {"iou_threshold": 0.25, "score_threshold": _thresholds, "pre_nms_top_k": _top_k}
        _infinite = "" if np.isfinite(_scores_).all() else ", odd scores"
        CASES.append(Case("batched_nms", _name + _infinite, _arrays, _options, fixed=("labels",)))
# Some scores are the threshold of their label or class: above it is none, not below it is.
_EXACT = np.array([0.125, 0.25, 0.5])
_arrays = {"boxes": _B, "scores": _EXACT[np.arange(_N) % 3], "labels": np.arange(_N) % 4}
_options = {"iou_threshold": 0.25, "score_threshold": (0.25, 0.125, 0.5, 2.0)}
CASES.append(Case("batched_nms", "scores that are thresholds of labels", _arrays, _options, fixed=("labels",)))
_arrays = {"boxes": _BATCH, "scores": _EXACT[(np.arange(18) + np.arange(3)[:, np.newaxis]) % 3] * np.ones((2, 1, 1))}
_options = {"max_output_boxes_per_class": 18, "iou_threshold": 0.25, "score_threshold": (0.25, 0.125, 0.5)}
for _operator in ("non_max_suppression", "non_max_suppression_padded"):
    CASES.append(Case(_operator, "scores that are thresholds of classes", _arrays, _options))
_no_labels = {"boxes": np.empty((0, 4)), "scores": np.empty(0), "labels": np.empty(0, np.int64)}
for _name, _thresholds in (("thresholds and no boxes", (0.5,)), ("no thresholds and no boxes", ())):
    _options = {"iou_threshold": 0.25, "score_threshold": _thresholds}
    CASES.append(Case("batched_nms", _name, _no_labels, _options, fixed=("labels",)))
_OF_CLASSES = [
    ("a threshold for each class", (0.25, -0.5, 2.0), {}),
    ("a threshold for each class, all", (-np.inf, -1.0, -0.25), {"max_output_boxes_total": 20}),
    ("a threshold for each class, a few", (0.5, 0.0, 0.125), {"pre_nms_top_k": 6, "max_output_boxes_total": 7}),
]
for _name, _thresholds, _more in _OF_CLASSES:
    _options = {"max_output_boxes_per_class": 18, "iou_threshold": 0.25, "score_threshold": _thresholds, **_more}
    for _operator in ("non_max_suppression", "non_max_suppression_padded"):
        CASES.append(Case(_operator, _name, {"boxes": _BATCH, "scores": _CLASSES}, _options))
        _empty = {"boxes": np.empty((2, 0, 4)), "scores": np.empty((2, 3, 0))}
        CASES.append(Case(_operator, f"{_name}, no boxes", _empty, _options))
for _kind in ("int64", "uint8"):
    _arrays = {"boxes": (_B * 4).clip(0, 255).astype(_kind), "scores": _S, "labels": _L.astype(float)}
    _options = {"iou_threshold": 0.25}
    CASES.append(Case("batched_nms", f"{_kind} boxes, whole labels", _arrays, _options, fixed=("boxes", "labels")))
    _arrays = {"boxes": (_TURNED * 4).clip(0, 255).astype(_kind), "scores": _CLASSES}
    _options = {"max_output_boxes_per_class": 5, "iou_threshold": 0.25}
    CASES.append(Case("non_max_suppression", f"{_kind} boxes", _arrays, _options, fixed=("boxes",)))
for _name, _options in _PER_CLASS:
    for _form, _boxes_, _extra in (
        ("corners", _TURNED, {}),
        ("center", _CENTERED, {"center_point_box": True}),
    ):
        for _operator in ("non_max_suppression", "non_max_suppression_padded"):
            CASES.append(
                Case(_operator, f"{_name}, {_form}", {"boxes": _boxes_, "scores": _CLASSES}, {**_options, **_extra})
            )
    CASES.append(
        Case(
            "non_max_suppression_padded",
            f"{_name}, offset",
            {"boxes": _BATCH, "scores": _CLASSES},
            {**_options, "offset": 1},
        )
    )
    for _operator in ("non_max_suppression", "non_max_suppression_padded"):
        CASES.append(Case(_operator, f"{_name}, ties", {"boxes": _BATCH, "scores": _TIES}, _options))
for _name, _boxes_, _scores_ in _SHAPES:
    for _operator in ("non_max_suppression", "non_max_suppression_padded"):
        for _extra in ({}, {"center_point_box": True}):
            CASES.append(
                Case(
                    _operator,
                    f"{_name}{', center' if _extra else ''}",
                    {"boxes": _boxes_, "scores": _scores_},
                    {"max_output_boxes_per_class": 20, "iou_threshold": 0.5, **_extra},
                )
            )


def _ordinary_nms(rng: np.random.Generator, size: int) -> Case:
    arrays = {"boxes": boxes_of(rng, 40 * size), "scores": rng.uniform(0, 1, 40 * size)}
    return Case("nms", "", arrays, {"iou_threshold": 0.4, "score_threshold": 0.05})


def _ordinary_batched_nms(rng: np.random.Generator, size: int) -> Case:
    arrays = {**_ordinary_nms(rng, size).arrays, "labels": rng.integers(0, 3, 40 * size)}
    return Case("batched_nms", "", arrays, {"iou_threshold": 0.4}, fixed=("labels",))


def _ordinary_non_max_suppression(rng: np.random.Generator, size: int) -> Case:
    arrays = {
        "boxes": np.stack([boxes_of(rng, 10 * size) for _ in range(2)]),
        "scores": rng.uniform(0, 1, (2, 3, 10 * size)),
    }
    options = {"max_output_boxes_per_class": 7, "iou_threshold": 0.4, "score_threshold": 0.3}
    return Case("non_max_suppression", "", arrays, options)


def _ordinary_non_max_suppression_padded(rng: np.random.Generator, size: int) -> Case:
    plain = _ordinary_non_max_suppression(rng, size)
    return Case("non_max_suppression_padded", "", plain.arrays, plain.options)


ORDINARY = {
    "nms": _ordinary_nms,
    "batched_nms": _ordinary_batched_nms,
    "non_max_suppression": _ordinary_non_max_suppression,
    "non_max_suppression_padded": _ordinary_non_max_suppression_padded,
}
