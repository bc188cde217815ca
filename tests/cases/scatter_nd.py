"""Cases of scatter_nd."""

import numpy as np

from tests.cases import Case

_FLOATS = ("float16", "float32", "float64")
_INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
_rng = np.random.default_rng(13)


def _numbers(*shape):
    return _rng.integers(0, 5, shape).astype(float)


_CUBE = _numbers(3, 4, 5)
_SHAPES = [
    ("scalars", _CUBE, _rng.integers(-3, 3, (6, 3)), (6,)),
    ("rows", _CUBE, _rng.integers(-3, 3, (2, 3, 2)), (2, 3, 5)),
    ("planes", _CUBE, np.array([[0], [-1], [0]]), (3, 4, 5)),
    ("one tuple", _CUBE, np.array([2, -4]), (5,)),
    ("the whole", _CUBE, np.empty((2, 0), int), (2, 3, 4, 5)),
    ("one axis", _numbers(9), _rng.integers(-9, 9, (20, 1)), (20,)),
    ("all in one place", _numbers(4), np.full((7, 1), 2), (7,)),
    ("no tuples", _CUBE, np.empty((0, 2), int), (0, 5)),
    ("no tuples, several axes", _CUBE, np.empty((2, 0, 3), int), (2, 0)),
    ("empty rows", np.empty((3, 0)), np.array([[1], [1]]), (2, 0)),
    ("no slots", np.empty((0, 3)), np.empty((0, 1), int), (0, 3)),
    ("long rows", _numbers(5, 70), _rng.integers(0, 5, (9, 1)), (9, 70)),
]

CASES = [
    Case(
        "scatter_nd",
        f"{reduction}, {name}",
        {"data": data, "indices": indices, "updates": _numbers(*shape)},
        {"reduction": reduction},
        fixed=("indices",),
        dtypes=(*_FLOATS, *_INTEGERS, "bool") if name in ("rows", "one axis") else ("float32", "float16", "int64"),
        exact=True,
    )
    for reduction in ("none", "add", "mul", "min", "max")
    for name, data, indices, shape in _SHAPES
] + [
    Case(
        "scatter_nd",
        f"{reduction}, NaN and infinities",
        {
            "data": np.array([np.nan, 1, np.inf, -np.inf, 2]),
            "indices": np.array([[0], [1], [1], [2], [3], [4], [4]]),
            "updates": np.array([1, np.nan, 3, -np.inf, np.inf, np.inf, 0]),
        },
        {"reduction": reduction},
        fixed=("indices",),
    )
    for reduction in ("none", "add", "mul", "min", "max")
]


def _ordinary(rng: np.random.Generator, size: int) -> Case:
    arrays = {
        "data": rng.normal(size=(10 * size, 16)),
        "indices": rng.integers(-5, 10 * size, (40 * size, 1)),
        "updates": rng.normal(size=(40 * size, 16)),
    }
    return Case("scatter_nd", "", arrays, {"reduction": "add"}, fixed=("indices",))


ORDINARY = {"scatter_nd": _ordinary}
