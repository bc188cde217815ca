"""``out=``: exactly the result's shape and dtype, C-contiguous and writable, and nothing else."""

from typing import Any

import numpy as np
import pytest

import detops
from tests.support import calls
from tests.support.comparison import BACKENDS


def packed(results: tuple[Any, ...]) -> Any:
    """Results as ``out=`` takes them."""
    return results if len(results) > 1 else results[0]


MARK = -77


def untouched(results: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Arrays that fit the results, full of a number that is none of them, so that whatever writes to them is seen."""
    assert all(MARK not in result for result in results)
    return tuple(np.full_like(result, MARK) for result in results)


def wide(array: np.ndarray) -> np.ndarray:
    """An equal array that is not C-contiguous."""
    return np.repeat(array, 2, axis=-1)[..., ::2]


def read_only(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flags.writeable = False
    return array


WRONG = {
    "shape": (lambda a: a[..., np.newaxis].copy(), "expected shape"),
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
    for i in range(len(results)):
        spoiled = tuple(spoil(array) if i == j else array for j, array in enumerate(untouched(results)))
        with pytest.raises(ValueError, match=f"^out: {message}"):
            calls.call(case, out=packed(spoiled), backend=backend)
        assert all((np.asarray(array) == MARK).all() for array in spoiled), "a refused call wrote to it"


@pytest.mark.parametrize("operator", calls.ALL)
def test_number_of_arrays(operator: str) -> None:
    case = calls.ordinary(operator)
    results = calls.call(case)
    given = untouched((*results, results[0]))
    with pytest.raises(ValueError, match=r"^out: expected "):
        calls.call(case, out=given)
    if len(results) > 1:
        with pytest.raises(ValueError, match=rf"^out: expected a tuple of {len(results)} arrays, got an array$"):
            calls.call(case, out=given[0])
    assert all((array == MARK).all() for array in given)


# What is found in the data: an argument, the place of an element in it, and the value that is refused there.
REFUSED = {
    "scatter_nd, an index": ("scatter_nd", "indices", (-1, 0), 1000, IndexError),
    "roi_align, an image": ("roi_align", "rois", (-1, 0), 2, ValueError),
    "roi_align, a size": ("roi_align", "rois", (-1, 3), 1e15, ValueError),
    "roi_pool, an image": ("roi_pool", "rois", (-1, 0), 2, ValueError),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("what", REFUSED)
def test_data_that_is_refused(what: str, backend: str) -> None:
    """Nothing is written before all of it is looked at, be it the last element that is wrong."""
    operator, name, index, value, error = REFUSED[what]
    case = calls.ordinary(operator)
    arrays = case.cast("float32")
    (out,) = untouched(calls.call(case))
    arrays[name] = arrays[name].copy()
    arrays[name][index] = value
    with pytest.raises(error, match=f"^{name}: "):
        getattr(detops, operator)(**arrays, **case.options, out=out, backend=backend)
    assert (out == MARK).all()


# Inputs of the shape and dtype of a result, which the result may overwrite.
LIKE_A_RESULT = {
    "batched_nms": ("labels",),  # where every box is kept
    "cummax": ("x",),
    "cummin": ("x",),
    "decode_bbox": ("box_predictions", "anchors"),
    "deform_conv2d": ("x",),
    "encode_bbox": ("boxes", "anchors"),
    "instance_norm": ("x",),
    "scatter_nd": ("data",),
}


@pytest.mark.parametrize("operator", calls.ALL)
def test_inputs_like_a_result(operator: str) -> None:
    case = calls.ordinary(operator)
    result = calls.call(case)[0]
    found = tuple(
        name
        for name, array in case.cast("float32").items()
        if array is not None and (array.shape, array.dtype) == (result.shape, result.dtype)
    )
    assert found == LIKE_A_RESULT.get(operator, ())


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("operator", LIKE_A_RESULT)
def test_out_may_be_an_input(operator: str, dtype: str, backend: str) -> None:
    case = calls.ordinary(operator)
    arrays = case.cast(dtype)
    wanted = calls.call(case, dtype, backend=backend)
    for name in LIKE_A_RESULT[operator]:
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
    both = np.full(7, MARK)
    with pytest.raises(ValueError, match=r"^out: expected arrays that share no memory, got some that may$"):
        detops.cummax(np.arange(6), out=(both[:-1], both[1:]), backend=backend)
    assert (both == MARK).all()


@pytest.mark.parametrize("operator", calls.ALL)
def test_no_result_is_allocated(operator: str) -> None:
    """float32 results are written to ``out`` itself: what comes back is the array that was given."""
    case = calls.ordinary(operator)
    wanted = calls.call(case)
    out = untouched(wanted)
    back = calls.call(case, out=packed(out))
    assert all(one is other for one, other in zip(back, out, strict=True))
    assert calls.as_bytes(out) == calls.as_bytes(wanted)


def unaligned(array: np.ndarray) -> np.ndarray:
    """An equal array whose elements lie one byte beside where C's type may lie."""
    memory = np.zeros(array.nbytes + 1, np.uint8)
    moved = np.ndarray(array.shape, array.dtype, buffer=memory[1:])
    moved[...] = array
    return moved


@pytest.mark.parametrize("backend", ["cython", "numba"])
@pytest.mark.parametrize("operator", calls.ALL)
def test_unaligned_arrays_reach_no_kernel(operator: str, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from detops.runtime import _registry

    case = calls.ordinary(operator)
    wanted = calls.call(case, backend=backend)
    seen: list[bool] = []
    kernel = _registry.kernel

    def watched(*names: Any) -> Any:
        def run(*arguments: Any) -> Any:
            seen.extend(value.flags.aligned for value in arguments if isinstance(value, np.ndarray))
            return kernel(*names)(*arguments)

        return run

    monkeypatch.setattr(_registry, "kernel", watched)
    arrays = {name: None if array is None else unaligned(array) for name, array in case.cast("float32").items()}
    out = tuple(unaligned(result) for result in wanted)
    getattr(detops, operator)(**arrays, **case.options, backend=backend, out=packed(out))
    assert calls.as_bytes(out) == calls.as_bytes(wanted)
    assert seen
    assert all(seen)
