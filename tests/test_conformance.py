"""One body for everything: operator x backend x dtype x memory layout x case, against the oracle."""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

import detops
from detops._cuda import device
from detops.testing.arguments import LAYOUTS
from tests.cases import Case, all_cases
from tests.support import launches
from tests.support.comparison import BACKENDS, dtypes_of_results, of_oracle, results, same


def _combinations():
    for case, backend in itertools.product(all_cases(), BACKENDS):
        for dtype in case.dtypes:
            yield pytest.param(case, backend, dtype, id=f"{case}-{backend}-{dtype}")


@pytest.fixture(autouse=True)
def _no_launch_twice() -> Iterator[None]:
    with launches.remembered():
        yield


@pytest.mark.parametrize(("case", "backend", "dtype"), list(_combinations()))
def test_conformance(case: Case, backend: str, dtype: str) -> None:
    arrays = case.cast(dtype)
    operator = getattr(detops, case.operator)
    wanted = of_oracle(case, dtype)
    dtypes = dtypes_of_results(case.operator, arrays)
    plain = None
    for layout, lay in LAYOUTS.items():
        given = {name: None if array is None else lay(array.copy()) for name, array in arrays.items()}
        got = results(operator(**given, **case.options, backend=backend))
        assert len(got) == len(wanted)
        assert [result.dtype for result in got] == dtypes
        for result, expected in zip(got, wanted, strict=True):
            same(result, expected, case.exact, f"{layout}: {case}")
        for name, array in arrays.items():
            if array is not None:
                np.testing.assert_array_equal(given[name], array, err_msg=f"{name} was changed")
        if plain is None:
            plain = got
        for result, first in zip(got, plain, strict=True):
            assert result.tobytes() == first.tobytes(), f"{layout} differs from contiguous"
    out = tuple(np.full_like(result, 1) for result in plain)
    returned = operator(**arrays, **case.options, backend=backend, out=out if len(out) > 1 else out[0])
    for target, result, back in zip(out, plain, results(returned), strict=True):
        assert back is target
        assert target.tobytes() == result.tobytes()


def test_a_launch_is_left_out_only_where_it_would_be_a_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    run: list[object] = []
    simulate = device.launch
    monkeypatch.setattr(device, "launch", lambda kernel, *given: run.append(kernel) or simulate(kernel, *given))
    x = np.array([3.25, 7.125, 3.25])
    calls = [(x, "cummax", 1), (x[::-1].copy()[::-1], "cummax", 1), (x, "cummin", 2), (-x, "cummax", 3)]
    calls += [(np.nextafter(x, 9), "cummax", 4), (x.astype(np.float32), "cummax", 5), (x[:2], "cummax", 6)]
    for given, operator, times in calls:
        wanted = getattr(detops, operator)(given)
        for got, expected in zip(getattr(detops, operator)(given, backend="cuda"), wanted, strict=True):
            np.testing.assert_array_equal(got, expected)
        assert len(run) == times
