"""The suite for other people's backends: ours pass it, and what is wrong does not."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings

import detops
from detops._specification import OPERATORS
from detops.testing import Arguments, arguments, check_backend
from tests.oracle import oracle
from tests.support import calls
from tests.support.comparison import same
from tests.support.processes import run

INTEGERS = ("int8", "uint8", "int64", "bool")
MORE_DTYPES = {"cummax": INTEGERS, "cummin": INTEGERS, "scatter_nd": INTEGERS}
FLOATS = ("float16", "float32", "float64")
# Where a float result is only moved or chosen, never computed.
EXACT = {"cummax", "cummin"}


def dtypes_of(operator: str) -> tuple[str, ...]:
    return FLOATS + MORE_DTYPES.get(operator, ())


@pytest.mark.parametrize("operator", calls.ALL)
def test_cython_does_what_the_oracle_says(operator: str) -> None:
    @settings(max_examples=80)
    @given(arguments(operator, dtypes_of(operator)))
    def check(call: Arguments) -> None:
        with np.errstate(all="ignore"):
            wanted = oracle(operator)(**call.arrays, **call.options)
        got = getattr(detops, operator)(**call.given(), **call.options, backend="cython")
        wanted, got = (value if isinstance(value, tuple) else (value,) for value in (wanted, got))
        for one, other in zip(got, wanted, strict=True):
            same(one, other, operator in EXACT, operator)

    check()


@pytest.mark.parametrize(("backend", "examples"), [("numba", 40), ("cuda", 15)])
@pytest.mark.parametrize("operator", calls.ALL)
def test_our_backends_conform(operator: str, backend: str, examples: int) -> None:
    function = partial(getattr(detops, operator), backend=backend)
    check_backend(function, operator, dtypes=dtypes_of(operator), max_examples=examples)


@pytest.mark.parametrize("operator", calls.ALL)
def test_every_option_is_drawn(operator: str) -> None:
    """Whatever the specification has, calls have, too, and not its default alone."""
    options = list(OPERATORS[operator].options)
    other: set[str] = set()

    @settings(max_examples=30, phases=[Phase.generate], database=None, derandomize=True)
    @given(arguments(operator, ["float32"], layouts=False))
    def draw(call: Arguments) -> None:
        other.update(option.name for option in options if call.options[option.name] != option.default)

    draw()
    assert other == {option.name for option in options}


def changed(spoil: Any, operator: str = "encode_bbox") -> Any:
    """An implementation that gets something wrong."""

    def function(**arguments: Any) -> Any:
        return spoil(getattr(detops, operator)(**arguments), arguments)

    return function


def overwrite(result: Any, arguments: dict[str, Any]) -> Any:
    if arguments["boxes"].flags.writeable:
        arguments["boxes"][...] = 1
    return result


WRONG = {
    "values": (lambda result, _: result + result.dtype.type(0.01), "Not equal to tolerance"),
    "dtype": (lambda result, _: result.astype(np.float64), "expected shape and dtype"),
    "shape": (lambda result, _: result[np.newaxis], "expected shape and dtype"),
    "NaN": (lambda result, _: np.nan_to_num(result), "location mismatch|Not equal to tolerance"),
    "number": (lambda result, _: (result, result), "expected 1 results, got 2"),
    "kind": (lambda result, _: result.tolist(), "expected a NumPy array, got list"),
    "input": (overwrite, "boxes was changed"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_found(what: str) -> None:
    spoil, message = WRONG[what]
    with pytest.raises(AssertionError, match=message):
        check_backend(changed(spoil), "encode_bbox", dtypes=["float32"], layouts=False, max_examples=50)


def test_a_wrong_index_is_found() -> None:
    """torch's cummax gives the later index of a tie; one that gives the first must not pass."""

    def first_of_ties(x: np.ndarray, axis: int) -> Any:
        values, indices = detops.cummax(x, axis)
        if x.ndim == 1 and x.size:
            indices = (values[:, np.newaxis] == x).argmax(1)
        return values, indices

    with pytest.raises(AssertionError, match="result 1 of cummax"):
        check_backend(first_of_ties, "cummax", dtypes=["float32"], layouts=False)


def test_tolerances() -> None:
    slightly = changed(lambda result, _: result + np.float32(1e-4))
    check_backend(slightly, "encode_bbox", dtypes=["float32"], tolerances={"float32": 1e-3}, max_examples=20)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check_backend(slightly, "encode_bbox", dtypes=["float32"])


def test_unknown_operators() -> None:
    with pytest.raises(ValueError, match=r"^operator: expected one of batched_nms, .*, got 'softmax'$"):
        check_backend(lambda: None, "softmax")


def test_without_hypothesis() -> None:
    last = run("import detops.testing", blocked=("hypothesis",)).stderr.splitlines()[-1]
    assert last.startswith("ImportError: detops.testing needs hypothesis: pip install hypothesis")
