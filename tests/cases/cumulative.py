"""Cases of cummax and cummin."""

import numpy as np

from tests.cases import Case

_INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
_FLOATS = ("float16", "float32", "float64")
_rng = np.random.default_rng(3)
_SMALL = _rng.integers(0, 5, (3, 4, 5)).astype(float)
_NAN = np.array([[1, np.nan, 3, np.nan, 5], [2, 2, -np.inf, np.inf, 2], [np.nan, 1, 0, -1, 7]])

_EVERYWHERE = [
    ("last axis", _SMALL, {}),
    ("first axis", _SMALL, {"axis": 0}),
    ("middle axis", _SMALL, {"axis": 1}),
    ("negative axis", _SMALL, {"axis": -2}),
    ("ties", np.ones((2, 6)), {}),
    ("wide", _rng.integers(0, 90, (3, 1100)), {"axis": 0}),
    ("0-d", np.array(3.0), {}),
    ("0-d, axis 0", np.array(3.0), {"axis": 0}),
    ("no elements", np.empty(0), {}),
    ("empty axis", np.empty((3, 0, 2)), {"axis": 1}),
    ("empty beside", np.empty((3, 0, 2)), {"axis": 0}),
    ("one element", np.ones((3, 1)), {}),
]
_FLOAT_ONLY = [
    ("NaN", _NAN, {}),
    ("NaN, first axis", _NAN, {"axis": 0}),
    ("signed zeros", np.array([0.0, -0.0, 0.0, -0.0]), {}),
]

CASES = []
for _operator in ("cummax", "cummin"):
    for _name, _x, _options in _EVERYWHERE:
        CASES.append(Case(_operator, _name, {"x": _x}, _options, dtypes=(*_FLOATS, *_INTEGERS, "bool"), exact=True))
    for _name, _x, _options in _FLOAT_ONLY:
        CASES.append(Case(_operator, _name, {"x": _x}, _options, exact=True))
    CASES.append(
        Case(
            _operator,
            "beyond float64",
            {"x": np.array([2**53, 2**53 + 1, 2**53])},
            {},
            dtypes=("int64", "uint64"),
            exact=True,
        )
    )


def _ordinary_cummax(rng: np.random.Generator, size: int) -> Case:
    return Case("cummax", "", {"x": rng.integers(0, 999, (8, 200 * size)).astype(float)})


def _ordinary_cummin(rng: np.random.Generator, size: int) -> Case:
    return Case("cummin", "", {"x": rng.integers(0, 999, (4 * size, 60, 30)).astype(float)}, {"axis": 1})


ORDINARY = {"cummax": _ordinary_cummax, "cummin": _ordinary_cummin}
