"""cummax and cummin: errors, bug reports, large arrays, threads, and any array against the oracle."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import detops
from detops.operators import _checks
from tests.oracle import oracle
from tests.support.comparison import BACKENDS
from tests.support.json_cases import Subcase, subcases

OPERATORS = ("cummax", "cummin")


def same(got, wanted):
    """The same values, signs of zeros included, and the same indices."""
    for result, expected in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(np.signbit(got[0]), np.signbit(wanted[0]))


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize(
    ("x", "options", "error", "message"),
    [
        (np.zeros(3, complex), {}, TypeError, "x: expected a real dtype or bool, got complex128"),
        (np.array(["a"]), {}, TypeError, "x: expected a real dtype or bool, got <U1"),
        (np.zeros((2, 3)), {"axis": 2}, ValueError, "axis: expected an axis from -2 to 1, got 2"),
        (np.zeros((2, 3)), {"axis": -3}, ValueError, "axis: expected an axis from -2 to 1, got -3"),
        (np.zeros((0, 3)), {"axis": 2}, ValueError, "axis: expected an axis from -2 to 1, got 2"),
        (np.zeros(3), {"axis": 0.0}, TypeError, "axis: expected an integer, got 0.0"),
        (np.zeros(3), {"out": np.zeros(3)}, ValueError, "out: expected a tuple of 2 arrays, got an array"),
        (
            np.zeros(3),
            {"out": (np.zeros(3), np.zeros(3))},
            ValueError,
            r"out: expected shape \(3,\) and dtype int64, got \(3,\) and float64",
        ),
    ],
)
def test_errors(operator, x, options, error, message):
    with pytest.raises(error, match=f"^{message}$"):
        getattr(detops, operator)(x, **options)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", subcases("cummax_empty_axis_dtypes", "cummax_ties_report_last_index"), ids=str)
def test_bug_reports(case: Subcase, backend: str) -> None:
    operator = getattr(detops, case.operator)
    if case.raises:
        with pytest.raises(ValueError, match="axis: expected an axis from "):
            operator(case.inputs["input"], case.attributes["dim"], backend=backend)
        return
    got = operator(case.inputs["input"], case.attributes["dim"], backend=backend)
    same(got, (case.expected["values"], case.expected["indices"]))
    assert got.values.dtype == case.inputs["input"].dtype


ELEMENTS = {
    "f": st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.5, np.inf, -np.inf, np.nan]),
    "i": st.integers(-2, 2),
    "u": st.integers(0, 3),
    "b": st.booleans(),
}


@pytest.mark.parametrize("backend", ["cython", "numba"])
@pytest.mark.parametrize("operator", OPERATORS)
@given(data=st.data())
def test_any_array(operator, backend, data):
    dtype = data.draw(st.sampled_from(list(_checks.NUMBERS)))
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=9))
    x = data.draw(hnp.arrays(dtype, shape, elements=ELEMENTS[dtype.kind]))
    axis = data.draw(st.integers(-max(x.ndim, 1), max(x.ndim, 1) - 1))
    same(getattr(detops, operator)(x, axis, backend=backend), oracle(operator)(x, axis))


def _by_numpy(operator, x, axis):
    """Values by NumPy and indices from them: for arrays that are too large for the oracle, without NaN."""
    values = (np.maximum if operator == "cummax" else np.minimum).accumulate(x, axis)
    positions = np.arange(x.shape[axis]).reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])
    return values, np.maximum.accumulate(np.where(x == values, positions, 0), axis)


@pytest.mark.parametrize("backend", ["cython", "numba"])
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("kind", ["random", "rising", "falling"])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((600_001,), 0),
        ((9, 70_003), 1),
        ((60_007, 9), 0),
        ((700, 777), 0),
        ((3, 500, 401), 1),
        ((200_000, 3), 1),
    ],
)
def test_large_arrays_on_any_number_of_threads(operator, shape, axis, kind, backend):
    x = np.random.default_rng(5).integers(0, 1000, shape)
    if kind != "random":
        x = np.sort(x, axis)
    if kind == "falling":
        x = np.flip(x, axis)
    wanted = _by_numpy(operator, x, axis)
    before = detops.get_num_threads()
    try:
        for dtype in ("float32", "int16"):
            for threads in (1, 2, 5):
                detops.set_num_threads(threads)
                same(getattr(detops, operator)(x.astype(dtype), axis, backend=backend), wanted)
    finally:
        detops.set_num_threads(before)


@pytest.mark.parametrize("length", [1000, 200_000])
@pytest.mark.parametrize("columns", [1, 4])
def test_a_late_nan_stays(length, columns):
    x = np.random.default_rng(6).random((length, columns), dtype=np.float32)
    x[length // 3] = x[length // 2] = np.nan
    values, indices = detops.cummax(x, 0)
    same(
        (values[: length // 3], indices[: length // 3]),
        _by_numpy("cummax", x[: length // 3], 0),
    )
    assert np.isnan(values[length // 3 :]).all()
    assert (indices[length // 3 : length // 2] == length // 3).all()
    assert (indices[length // 2 :] == length // 2).all()
