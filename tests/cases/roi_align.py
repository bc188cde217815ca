"""Cases of roi_align. Coordinates are multiples of 1/8, so that every dtype places bins and samples alike."""

import numpy as np

from tests.cases import Case, boxes_of

_rng = np.random.default_rng(11)
MAP = _rng.integers(-64, 65, (2, 3, 9, 11)) / 8


def rois_of(count, batch=2, low=-4, high=14):
    corners = np.sort(_rng.integers(low * 8, high * 8, (count, 2, 2)) / 8, axis=1).reshape(count, 4)
    return np.concatenate([_rng.integers(0, batch, (count, 1)), corners], 1)


ROIS = rois_of(6)
_BAD = ROIS.copy()
_BAD[0, 1], _BAD[2, 4], _BAD[3, 2], _BAD[4, 3] = np.nan, np.inf, -np.inf, np.nan
_TURNED = ROIS[:, [0, 3, 2, 1, 4]]
_INSIDE = np.array([[0, 1.25, 1.5, 7.5, 6.25], [1, 0, 0, 11, 9], [1, 2, 3, 2.5, 3.25]])
_OUTSIDE = np.array([[0, 30, 30, 40, 40], [1, -20, 1, -10, 5], [0, -1.5, -1.5, 12, 10], [1, 500, 500, 503, 504]])
_EMPTY = np.array([[0, 3, 3, 3, 3], [1, 2, 5, 6, 5], [1, 4, 2, 4, 6], [0, 1, 1, 4, 4]])
_EDGE = np.array([[0, -0.5, -0.5, 11.5, 9.5], [0, -1, -1, 0, 0], [1, 10, 8, 12, 10], [1, 11, 9, 11.5, 9.5]])
_WIDE = _rng.integers(-64, 65, (1, 19, 9, 11)) / 8
_HOLED = MAP.copy()
_HOLED[0, 0, 4, 5], _HOLED[1, 2, 0, 0] = np.nan, np.nan

PLACES = [
    ("inside", MAP, _INSIDE),
    ("anywhere", MAP, ROIS),
    ("outside", MAP, _OUTSIDE),
    ("at the edge", MAP, _EDGE),
    ("empty rois", MAP, _EMPTY),
    ("turned rois", MAP, _TURNED),
    ("NaN and inf in rois", MAP, _BAD),
    ("NaN in the map", _HOLED, ROIS),
    ("no rois", MAP, np.empty((0, 5))),
    ("no channels", np.empty((2, 0, 9, 11)), ROIS),
    ("no rows", np.empty((2, 3, 0, 11)), ROIS),
    ("no images, no rois", np.empty((0, 3, 9, 11)), np.empty((0, 5))),
    ("one element", np.full((2, 1, 1, 1), 3.5), ROIS),
]
_OPTIONS = [
    ("adaptive", {"output_size": 2}),
    ("two samples", {"output_size": (2, 4), "sampling_ratio": 2}),
    ("not aligned", {"output_size": 2, "aligned": False}),
    ("max", {"output_size": 2, "mode": "max", "sampling_ratio": 2}),
    ("corner_max", {"output_size": 2, "mode": "corner_max"}),
]

_SINGLE = [
    ("scaled", MAP, rois_of(5, low=-16, high=56), {"output_size": (4, 2), "spatial_scale": 0.25}),
    ("three samples", MAP, _INSIDE, {"output_size": 1, "sampling_ratio": 3}),
    ("large bins, few samples", MAP, _INSIDE, {"output_size": 1, "sampling_ratio": 1}),
    ("small bins, many samples", MAP, _INSIDE, {"output_size": 8, "sampling_ratio": 2}),
    ("negative numbers, max", -1 - abs(MAP), _INSIDE, {"output_size": 2, "mode": "max"}),
    ("wide bins beside narrow", MAP, _INSIDE, {"output_size": (8, 1)}),
    ("a block of channels and a rest", _WIDE, _INSIDE[:1], {"output_size": 2}),
    ("not aligned, max", MAP, ROIS, {"output_size": 2, "aligned": False, "mode": "max"}),
]

CASES = [
    Case("roi_align", f"{place}, {kind}", {"features": features, "rois": rois}, options)
    for place, features, rois in PLACES
    for kind, options in _OPTIONS
]
CASES += [Case("roi_align", name, {"features": f, "rois": r}, options) for name, f, r, options in _SINGLE]
CASES += [
    Case(
        "roi_align",
        f"batch indices apart, {kind}",
        {"features": MAP, "rois": ROIS[:, 1:], "batch_indices": ROIS[:, 0].astype(kind)},
        {"output_size": 2},
        fixed=("batch_indices",),
    )
    for kind in ("int64", "int32", "uint8")
]
CASES += [
    Case(
        "roi_align",
        f"{kind} rois",
        {"features": MAP, "rois": ROIS.round().clip(0, 99).astype(kind)},
        {"output_size": 2, "spatial_scale": 0.5},
        fixed=("rois",),
    )
    for kind in ("int64", "uint8")
]


def ordinary_rois(rng: np.random.Generator, size: int) -> dict[str, np.ndarray]:
    """Features and rois of ordinary sizes."""
    count = 4 * size
    rois = np.concatenate([rng.integers(0, 2, (count, 1)), boxes_of(rng, count, 60)], axis=1)
    return {"features": rng.normal(size=(2, size, 24, 28)), "rois": rois}


def _ordinary(rng: np.random.Generator, size: int) -> Case:
    return Case("roi_align", "", ordinary_rois(rng, size), {"output_size": 3, "spatial_scale": 0.25})


ORDINARY = {"roi_align": _ordinary}
