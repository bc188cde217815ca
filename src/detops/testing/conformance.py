"""The suite that compares an implementation with detops."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings

import detops
from detops.testing.arguments import FLOATS, Arguments, arguments

# How far a float may be from detops' own, in parts of the largest number of the result.
TOLERANCES = {"float16": 4e-3, "float32": 4e-5, "float64": 1e-11}


def check_backend(
    function: Callable[..., Any],
    operator: str,
    *,
    dtypes: Sequence[str] = FLOATS,
    layouts: bool = True,
    max_examples: int = 200,
    tolerances: dict[str, float] | None = None,
) -> None:
    """Compare an implementation of an operator with detops' own on the CPU.

    The function is called as the operator is, all arguments by name. Shapes, dtypes and indices must be equal, floats
    equal within a tolerance, NaN and infinities in the same places; and no input may change.

    Parameters
    ----------
    function : callable
        What is tested. It returns a NumPy array or a tuple of them, as the operator does.
    operator : str
        The name of the public function of detops that it should do the same as.
    dtypes : sequence of str
        Types of the float arrays that it is called with.
    layouts : bool, default True
        Whether it also gets arrays that are transposed, strided, byte-swapped or read-only.
    max_examples : int, default 200
        How many calls are tried.
    tolerances : dict of str to float, optional
        By dtype, how far a float may be off, in parts of the largest number of the result. Default: 4e-3 for float16,
        4e-5 for float32, 1e-11 for float64.

    Raises
    ------
    AssertionError
        If a result differs; hypothesis shows the smallest call that it found.
    ValueError
        If there is no such operator.

    Examples
    --------
    >>> import numpy as np
    >>> import detops
    >>> from detops.testing import check_backend
    >>> def decode(box_predictions, anchors, **options):
    ...     return detops.decode_bbox(box_predictions, anchors, **options, backend="cython")
    >>> check_backend(decode, "decode_bbox", max_examples=20)
    """
    allowed = {**TOLERANCES, **(tolerances or {})}

    # Not the phase that explains a failure: it takes long, and names lines of NumPy.
    phases = [phase for phase in Phase if phase is not Phase.explain]

    @settings(max_examples=max_examples, deadline=None, suppress_health_check=list(HealthCheck), phases=phases)
    @given(arguments(operator, dtypes, layouts=layouts))
    def conforms(call: Arguments) -> None:
        compare(function, operator, call, allowed)

    conforms()


def compare(
    function: Callable[..., Any], operator: str, call: Arguments, tolerances: dict[str, float] = TOLERANCES
) -> None:
    """Raise AssertionError unless the function gives what the operator gives for one call."""
    with np.errstate(all="ignore"):
        wanted = _results(getattr(detops, operator)(**call.given(), **call.options, backend=_cpu()))
        given_arrays = call.given()
        got = _results(function(**given_arrays, **call.options))
    for name, array in call.arrays.items():
        if array is not None:
            np.testing.assert_array_equal(given_arrays[name], array, err_msg=f"{name} was changed")
    assert len(got) == len(wanted), f"expected {len(wanted)} results, got {len(got)}"
    for i, (one, other) in enumerate(zip(got, wanted, strict=True)):
        what = f"result {i} of {operator}" if len(wanted) > 1 else operator
        assert isinstance(one, np.ndarray), f"{what}: expected a NumPy array, got {type(one).__name__}"
        expected, found = ((array.shape, array.dtype) for array in (other, one))
        assert found == expected, f"{what}: expected shape and dtype {expected}, got {found}"
        if other.dtype.kind != "f":
            np.testing.assert_array_equal(one, other, err_msg=what)
            continue
        finite = np.abs(other[np.isfinite(other)].astype(np.float64))
        tolerance = tolerances[other.dtype.name] * max(1.0, finite.max(initial=0.0))
        np.testing.assert_allclose(one.astype(np.float64), other, rtol=0, atol=tolerance, err_msg=what)


def _cpu() -> str | None:
    from detops.runtime._registry import available

    return "cython" if available("cython") else "numba"


def _results(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)
