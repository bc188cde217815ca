"""Cases of decode_bbox and encode_bbox."""

import numpy as np

from tests.cases import Case, boxes_of

_rng = np.random.default_rng(7)


def _anchors(count):
    low = _rng.integers(-20, 20, (count, 2))
    return np.concatenate([low, low + _rng.integers(1, 30, (count, 2))], 1).astype(float)


def _predictions(*shape):
    return _rng.integers(-16, 17, shape) / 8


_A = _anchors(7)
_CENTERED = np.concatenate([(_A[:, :2] + _A[:, 2:]) / 2, _A[:, 2:] - _A[:, :2]], 1)
_CENTER = {"anchor_form": "center"}
_STDS = {"scales": (10, 10, 5, 5), "means": (0.5, -0.25, 0.125, 0)}
# Twice such a coordinate is beyond what float32 holds.
_FAR = np.array([[1.8, 1.9, 3.0, 2.6], [2.0, 1.75, 2.5, 3.0]]).repeat(4, 0)[:7] * 1e38
_NAN = _predictions(7, 4)
_NAN[0, 0] = _NAN[1, 3] = np.nan
_NAN[2] = np.inf, -np.inf, -np.inf, np.inf

_DECODE = [
    ("plain", _predictions(7, 4), _A, {}),
    ("one box", _predictions(4), _A[0], {}),
    ("clipped", _predictions(7, 4) * 4, _A, {"decode_clip": 1.5}),
    ("clip of 0", _predictions(7, 4), _A, {"decode_clip": 0}),
    ("negative clip", _predictions(7, 4), _A, {"decode_clip": -0.5}),
    ("clipped below", _predictions(7, 4), _A, {"lower_clip": -0.5}),
    ("clipped on both sides", _predictions(7, 4), _A, {"lower_clip": -0.5, "decode_clip": 0.5}),
    ("clips that cross", _predictions(7, 4), _A, {"lower_clip": 1, "decode_clip": -1}),
    ("NaN, clipped below", _NAN, _A, {"lower_clip": -1}),
    ("scales and means", _predictions(7, 4), _A, _STDS),
    ("coordinates in the middle", _predictions(3, 4, 2), _anchors(6).reshape(3, 2, 4).swapaxes(1, 2), {"axis": 1}),
    ("classes of a map", _predictions(2, 3, 12), _anchors(6).reshape(2, 3, 4), _STDS),
    ("coordinates first", _predictions(4, 7), _A.T, {"axis": 0}),
    ("coordinates first, map", _predictions(4, 2, 3), _anchors(6).T.reshape(4, 2, 3), {"axis": 0}),
    ("coordinates last, map", _predictions(2, 3, 4), _anchors(6).reshape(2, 3, 4), {}),
    ("square, first axis", _predictions(4, 4), _anchors(4).T, {"axis": 0}),
    ("square, last axis", _predictions(4, 4), _anchors(4), {"axis": 1}),
    ("classes", _predictions(7, 12), _A, {}),
    ("classes, scales", _predictions(7, 12), _A, _STDS),
    ("no boxes", np.empty((0, 4)), np.empty((0, 4)), {}),
    ("no boxes, classes", np.empty((0, 12)), np.empty((0, 4)), {}),
    ("no classes", np.empty((7, 0)), _A, {}),
    ("NaN and inf", _NAN, _A, {}),
    ("NaN and inf, clipped", _NAN, _A, {"decode_clip": 4}),
    ("anchors of each image of a batch", _predictions(3, 7, 4), _A, {}),
    ("anchors with a batch of 1", _predictions(3, 7, 4), _A[np.newaxis], _STDS),
    ("anchors of two leading axes fewer", _predictions(2, 3, 7, 4), _A, {}),
    ("one anchor for all", _predictions(300, 4), _A[0], {}),
    ("a batch of no boxes", np.empty((3, 0, 4)), np.empty((0, 4)), {}),
    ("a batch of none", np.empty((0, 7, 4)), _A, {}),
    ("classes of each image of a batch", _predictions(3, 7, 12), _A, _STDS),
    ("one anchor for all classes", _predictions(5, 12), _A[:1], {}),
    ("coordinates in the middle of a batch", _predictions(3, 4, 7), _A.T, {"axis": 1}),
    ("coordinates before a map, in a batch", _predictions(3, 4, 2, 3), _anchors(6).T.reshape(1, 4, 2, 3), {"axis": -3}),
    ("far away", _predictions(7, 4) / 16, _FAR, {}),
    ("centers and sizes", _predictions(7, 4), _CENTERED, _STDS | _CENTER),
    ("centers and sizes, classes", _predictions(7, 12), _CENTERED, _CENTER),
    (
        "centers and sizes, coordinates first",
        _predictions(4, 7),
        _CENTERED.T,
        {"axis": 0, "lower_clip": -0.5} | _CENTER,
    ),
    ("counted pixels", _predictions(7, 4), _A, _STDS | {"offset": 1, "decode_clip": 1.5}),
    ("counted pixels, coordinates first", _predictions(4, 7), _A.T, {"axis": 0, "offset": 1}),
    ("counted pixels of centers and sizes", _predictions(7, 4), _CENTERED, _CENTER | {"offset": 1}),
    ("counted pixels of empty anchors", _predictions(7, 4), _A[:, [0, 1, 0, 1]], {"offset": 1}),
    ("turned anchors", _predictions(7, 4), _A[:, [2, 1, 0, 3]], {}),
    ("empty anchors", _predictions(7, 4), _A[:, [0, 1, 0, 1]], {}),
]
_ENCODE = [
    ("plain", _anchors(7), _A, {}),
    ("scales and means", _anchors(7), _A, _STDS),
    ("coordinates first", _anchors(7).T, _A.T, {"axis": 0}),
    ("coordinates in the middle", _anchors(6).reshape(3, 4, 2), _anchors(6).reshape(3, 4, 2), {"axis": -2}),
    ("classes", _anchors(21).reshape(7, 12), _A, _STDS),
    ("anchors of each image of a batch", _anchors(21).reshape(3, 7, 4), _A, _STDS),
    ("classes of each image of a batch", _anchors(42).reshape(2, 7, 12), _A, {}),
    ("coordinates in the middle of a batch", _anchors(21).reshape(3, 7, 4).swapaxes(1, 2), _A.T, {"axis": 1}),
    ("no boxes", np.empty((0, 4)), np.empty((0, 4)), {}),
    ("a box of no area", _anchors(7)[:, [0, 1, 0, 1]], _A, {}),
    ("centers and sizes", _anchors(7), _CENTERED, _STDS | _CENTER),
    ("centers and sizes, classes", _anchors(21).reshape(7, 12), _CENTERED, _CENTER),
    ("counted pixels", _anchors(7), _A, _STDS | {"offset": 1}),
    ("counted pixels of centers and sizes", _anchors(7), _CENTERED, _CENTER | {"offset": 1}),
    ("counted pixels of a box of no area", _anchors(7)[:, [0, 1, 0, 1]], _A, {"offset": 1}),
    ("turned boxes", _anchors(7)[:, [2, 3, 0, 1]], _A, {}),
    ("empty anchors", _anchors(7), _A[:, [0, 1, 0, 1]], {}),
    ("far away", _FAR[::-1] * 1.1, _FAR, {}),
]

# Beyond what float16 holds.
_WIDE = {"far away": ("float32", "float64")}
_ALL = ("float16", "float32", "float64")

CASES = [
    Case("decode_bbox", name, {"box_predictions": t, "anchors": a}, options, dtypes=_WIDE.get(name, _ALL))
    for name, t, a, options in _DECODE
] + [
    Case("encode_bbox", name, {"boxes": b, "anchors": a}, options, dtypes=_WIDE.get(name, _ALL))
    for name, b, a, options in _ENCODE
]
_WHOLE = _A.astype(np.int64)
CASES += [
    Case(
        "decode_bbox", "integer anchors", {"box_predictions": _predictions(7, 4), "anchors": _WHOLE}, fixed=("anchors",)
    ),
    Case("encode_bbox", "integer boxes", {"boxes": _WHOLE[::-1].astype(np.int8), "anchors": _A}, fixed=("boxes",)),
    Case("encode_bbox", "integers", {"boxes": _WHOLE[::-1], "anchors": _WHOLE}, fixed=("boxes", "anchors")),
]


def _ordinary_decode_bbox(rng: np.random.Generator, size: int) -> Case:
    arrays = {"box_predictions": rng.normal(0, 0.5, (200 * size, 4)), "anchors": boxes_of(rng, 200 * size)}
    return Case("decode_bbox", "", arrays, {"decode_clip": 4.0, "scales": (10, 10, 5, 5)})


def _ordinary_encode_bbox(rng: np.random.Generator, size: int) -> Case:
    return Case("encode_bbox", "", {"boxes": boxes_of(rng, 200 * size), "anchors": boxes_of(rng, 200 * size)})


ORDINARY = {"decode_bbox": _ordinary_decode_bbox, "encode_bbox": _ordinary_encode_bbox}
