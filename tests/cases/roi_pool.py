"""Cases of roi_pool: the places of roi_align's cases. Maxima are exact in every dtype."""

import numpy as np

from tests.cases import Case
from tests.cases.roi_align import MAP, PLACES, ROIS, ordinary_rois, rois_of

_OPTIONS = [
    ("bins of elements", {"output_size": 2}),
    ("scaled", {"output_size": (3, 7), "spatial_scale": 0.5}),
]
_HALVES = np.array([[0, 0.5, 1.5, 6.5, 2.5], [1, -0.5, -1.5, 3.5, 4.5], [0, 0.4375, 0.5625, 0.4375, 8.5]])

CASES = [
    Case("roi_pool", f"{place}, {kind}", {"features": features, "rois": rois}, options, exact=True)
    for place, features, rois in PLACES
    for kind, options in _OPTIONS
]
CASES += [
    Case("roi_pool", name, {"features": MAP, "rois": rois}, options, exact=True)
    for name, rois, options in [
        ("halves", _HALVES, {"output_size": (2, 3)}),
        ("more bins than elements", _HALVES, {"output_size": 13}),
        ("one bin", ROIS, {"output_size": 1}),
        ("more rois than the map is large", rois_of(30), {"output_size": (1, 2)}),
    ]
]
CASES += [
    Case(
        "roi_pool",
        "batch indices apart",
        {"features": MAP, "rois": ROIS[:, 1:], "batch_indices": ROIS[:, 0].astype(int)},
        {"output_size": 2},
        fixed=("batch_indices",),
        exact=True,
    )
]
CASES += [
    Case(
        "roi_pool",
        f"{kind} rois",
        {"features": MAP, "rois": ROIS.round().clip(0, 99).astype(kind)},
        {"output_size": 2, "spatial_scale": 0.5},
        fixed=("rois",),
        exact=True,
    )
    for kind in ("int64", "uint8")
]


def _ordinary(rng: np.random.Generator, size: int) -> Case:
    return Case("roi_pool", "", ordinary_rois(rng, size), {"output_size": 3, "spatial_scale": 0.25})


ORDINARY = {"roi_pool": _ordinary}
