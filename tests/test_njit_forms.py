"""One body for ``detops.numba``: each form gives what the public function gives, and refuses what it refuses."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

import numba
import numpy as np
import pytest
from numba.core.errors import TypingError

import detops
import detops.numba
from tests import calls
from tests.cases import Case, all_cases

ELSEWHERE = ("out", "backend")
FLOATS = ("float32", "float64")


def results(value: Any) -> tuple[np.ndarray, ...]:
    """The results of a call, one or many."""
    return value if isinstance(value, tuple) else (value,)


def outcome(function: Any, arguments: dict[str, Any], **more: Any) -> Any:
    """What a call returns, or the error that it ends in."""
    try:
        return function(**arguments, **more)
    except (TypingError, TypeError, ValueError, IndexError) as error:
        return error


def argument_of(error: Exception) -> str:
    """The argument that an error names; what is wrong in one of its items is wrong in it."""
    return re.match(r"(\w*)", str(error)).group()


def agree(operator: str, arguments: dict[str, Any], form: Any = None) -> Any:
    """Call the form in compiled code and the public function; return what both said."""
    wanted = outcome(getattr(detops, operator), arguments, backend="numba")
    got = outcome(form or getattr(detops.numba, operator), arguments)
    if isinstance(wanted, Exception):
        assert isinstance(got, (type(wanted), TypingError)), f"{got!r}, expected {wanted!r}"
        assert argument_of(got) == argument_of(wanted), f"{got!r}, expected {wanted!r}"
        assert ": expected " in str(got)
        return wanted
    if isinstance(got, Exception):
        raise got
    assert type(got) is type(wanted)
    for result, expected in zip(results(got), results(wanted), strict=True):
        assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
        assert result.tobytes() == expected.tobytes()
    return wanted


@pytest.mark.parametrize("operator", calls.ALL)
def test_signatures_are_the_same(operator: str) -> None:
    wanted = inspect.signature(getattr(detops, operator)).parameters.values()
    got = inspect.signature(getattr(detops.numba, operator)).parameters.values()
    described = [(p.name, p.kind, p.default) for p in wanted if p.name not in ELSEWHERE]
    assert [(p.name, p.kind, p.default) for p in got] == described


def _cases() -> Iterator[Any]:
    for case in all_cases():
        # One dtype, as each costs a compilation; test_mixed_types has the others.
        for dtype in [dtype for dtype in case.dtypes if dtype != "float16"][:1]:
            yield pytest.param(case, dtype, id=str(case))


@pytest.mark.parametrize(("case", "dtype"), list(_cases()))
def test_values(case: Case, dtype: str) -> None:
    agree(case.operator, {**case.cast(dtype), **case.options})


def in_njit(operator: str, names: list[str], **constants: Any) -> Any:
    """A user's compiled function of the arrays, with everything else written in its text."""
    given = [f"{name}={name}" for name in names] + [f"{name}={value!r}" for name, value in constants.items()]
    text = f"def users({', '.join(names)}):\n    return operator({', '.join(given)})"
    scope = {"operator": getattr(detops.numba, operator)}
    exec(text, scope)
    # What a user asks of his own code changes no result of ours.
    return numba.njit(fastmath=True)(scope["users"])


@pytest.mark.parametrize("operator", calls.ALL)
def test_constants_and_keywords_in_a_users_function(operator: str) -> None:
    case = calls.ordinary(operator)
    users = in_njit(operator, list(case.arrays), **case.options)
    agree(operator, {**case.cast("float32"), **case.options}, lambda **given: users(*(given[n] for n in case.arrays)))
