"""One ordinary call of each operator, small, or large enough for several threads."""

import numpy as np

import detops
from detops._specification import OPERATORS
from tests.cases import Case, makers

Arrays = dict[str, np.ndarray]
MAKERS = makers()
SMALL, LARGE = 2, 60


def ordinary(operator: str, size: int = SMALL) -> Case:
    """Return an ordinary call of a public operator."""
    return MAKERS[operator](np.random.default_rng(11), size)


def call(case: Case, dtype: str = "float32", **more: object) -> tuple[np.ndarray, ...]:
    """Call the operator of a case; return its results, one or many."""
    found = getattr(detops, case.operator)(**case.cast(dtype), **case.options, **more)
    return found if isinstance(found, tuple) else (found,)


def as_bytes(results: tuple[np.ndarray, ...]) -> list[bytes]:
    """Results as they lie in memory: what is equal to the bit."""
    return [result.tobytes() for result in results]


ALL = sorted(OPERATORS)
