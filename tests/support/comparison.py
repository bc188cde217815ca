"""Backends, and how their results are compared with the oracle's."""

import functools

import numpy as np

from detops._specification import COORDINATES, OPERATORS
from tests.cases import Case
from tests.oracle import oracle

BACKENDS = ("cython", "numba", "cuda")

# How far a float result may be from float64 arithmetic, relative to the largest number in it.
TOLERANCE = {"float16": 2e-3, "float32": 2e-5, "float64": 1e-12}


def results(value):
    """The results of a call, one or many, as a tuple."""
    return value if isinstance(value, tuple) else (value,)


def dtypes_of_results(operator: str, arrays: dict[str, np.ndarray | None]) -> list[np.dtype]:
    """The dtypes that results must have: their own, or the widest of arguments; integer coordinates are float64."""
    given = {
        each.name: np.dtype("float64") if each.dtypes is COORDINATES and array.dtype.kind in "iu" else array.dtype
        for each in OPERATORS[operator].arrays
        if (array := arrays.get(each.name)) is not None
    }
    found = [[given.get(name, name) for name in each.dtype.split()] for each in OPERATORS[operator].results]
    return [np.result_type(*dtypes) for dtypes in found]


def same(got, wanted, exact: bool, what: str) -> None:
    """Compare a result with the oracle's."""
    assert got.shape == wanted.shape, what
    if exact or got.dtype.kind not in "f":
        np.testing.assert_array_equal(got, wanted, err_msg=what)
        if got.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(got), np.signbit(wanted), err_msg=what)
        return
    with np.errstate(over="ignore"):
        wanted = wanted.astype(got.dtype).astype(np.float64)
    finite = np.abs(wanted[np.isfinite(wanted)])
    tolerance = TOLERANCE[got.dtype.name]
    np.testing.assert_allclose(
        got.astype(np.float64),
        wanted,
        rtol=tolerance,
        atol=tolerance * max(1, finite.max(initial=0)),
        err_msg=what,
    )


@functools.cache
def of_oracle(case: Case, dtype: str) -> tuple[np.ndarray, ...]:
    """What the oracle says, once for all backends."""
    with np.errstate(all="ignore"):
        return results(oracle(case.operator)(**case.cast(dtype), **case.options))
