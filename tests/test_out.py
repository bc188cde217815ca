"""``out=``: exactly the result's shape and dtype, C-contiguous and writable, and nothing else."""

from typing import Any

import numpy as np
import pytest

import detops
from tests import calls

BACKENDS = ("cython", "numba", "cuda")


def packed(results: tuple[Any, ...]) -> Any:
    """Results as ``out=`` takes them."""
    return results if len(results) > 1 else results[0]


def wide(array: np.ndarray) -> np.ndarray:
    """An array of the same shape that is not C-contiguous."""
    large = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    return large[..., ::2]


def read_only(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flags.writeable = False
    return array


WRONG = {
    "shape": (lambda a: np.zeros((*a.shape, 1), a.dtype), "expected shape"),
    "dtype": (lambda a: a.astype("int8" if a.dtype != "int8" else "int16"), "expected shape"),
    "byte order": (lambda a: a.astype(a.dtype.newbyteorder()), "expected shape"),
    "layout": (wide, "expected a C-contiguous and writable array"),
    "read-only": (read_only, "expected a C-contiguous and writable array"),
    "list": (lambda a: a.tolist(), "expected an array, got list"),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("operator", calls.ALL)
@pytest.mark.parametrize("what", WRONG)
def test_what_does_not_fit(operator: str, what: str, backend: str) -> None:
    case = calls.ordinary(operator)
    results = calls.call(case)
    spoil, message = WRONG[what]
    for i, result in enumerate(results):
        spoiled = tuple(spoil(other) if i == j else other.copy() for j, other in enumerate(results))
        with pytest.raises(ValueError, match=f"^out: {message}"):
            calls.call(case, out=packed(spoiled), backend=backend)
        assert result.tobytes() == results[i].tobytes()


@pytest.mark.parametrize("operator", calls.ALL)
def test_number_of_arrays(operator: str) -> None:
    case = calls.ordinary(operator)
    results = calls.call(case)
    with pytest.raises(ValueError, match=r"^out: expected "):
        calls.call(case, out=(*results, results[0]))
    if len(results) > 1:
        with pytest.raises(ValueError, match=rf"^out: expected a tuple of {len(results)} arrays, got an array$"):
            calls.call(case, out=results[0])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("operator", calls.ALL)
def test_out_may_be_an_input(operator: str, dtype: str, backend: str) -> None:
    """Where an input has the shape and dtype of a result, the result may overwrite it."""
    case = calls.ordinary(operator)
    arrays = case.cast(dtype)
    wanted = calls.call(case, dtype, backend=backend)
    for name, array in arrays.items():
        if array is None or array.shape != wanted[0].shape or array.dtype != wanted[0].dtype:
            continue
        given = {key: None if value is None else value.copy() for key, value in arrays.items()}
        out = (given[name], *(np.zeros_like(result) for result in wanted[1:]))
        getattr(detops, operator)(**given, **case.options, out=packed(out), backend=backend)
        assert calls.as_bytes(out) == calls.as_bytes(wanted), name


def test_out_may_overlap_an_input() -> None:
    numbers = np.arange(12.0)[::-1].copy()
    wanted = detops.cummin(numbers[1:].copy())
    indices = np.zeros(11, np.int64)
    detops.cummin(numbers[1:], out=(numbers[:-1], indices))
    np.testing.assert_array_equal(numbers[:-1], wanted.values)
    np.testing.assert_array_equal(indices, wanted.indices)


@pytest.mark.parametrize("backend", BACKENDS)
def test_results_must_not_overlap_each_other(backend: str) -> None:
    both = np.zeros(7, np.int64)
    with pytest.raises(ValueError, match=r"^out: expected arrays that share no memory, got some that may$"):
        detops.cummax(np.arange(6), out=(both[:-1], both[1:]), backend=backend)


@pytest.mark.parametrize("operator", calls.ALL)
def test_no_result_is_allocated(operator: str) -> None:
    """float32 results are written to ``out`` itself: what comes back is the array that was given."""
    case = calls.ordinary(operator)
    out = tuple(np.zeros_like(result) for result in calls.call(case))
    back = calls.call(case, out=packed(out))
    assert all(one is other for one, other in zip(back, out, strict=True))


def unaligned(array: np.ndarray) -> np.ndarray:
    """An equal array whose elements lie one byte beside where C's type may lie."""
    memory = np.zeros(array.nbytes + 1, np.uint8)
    moved = np.ndarray(array.shape, array.dtype, buffer=memory[1:])
    moved[...] = array
    return moved


@pytest.mark.parametrize("backend", ["cython", "numba"])
@pytest.mark.parametrize("operator", calls.ALL)
def test_unaligned_arrays_reach_no_kernel(operator: str, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from detops import _registry

    case = calls.ordinary(operator)
    wanted = calls.call(case, backend=backend)
    seen: list[bool] = []
    kernel = _registry.kernel

    def watched(*names: Any) -> Any:
        def run(*arguments: Any) -> None:
            seen.extend(value.flags.aligned for value in arguments if isinstance(value, np.ndarray))
            kernel(*names)(*arguments)

        return run

    monkeypatch.setattr(_registry, "kernel", watched)
    arrays = {name: None if array is None else unaligned(array) for name, array in case.cast("float32").items()}
    out = tuple(unaligned(result) for result in wanted)
    getattr(detops, operator)(**arrays, **case.options, backend=backend, out=packed(out))
    assert calls.as_bytes(out) == calls.as_bytes(wanted)
    assert seen
    assert all(seen)
