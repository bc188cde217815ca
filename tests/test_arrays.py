"""Arrays of other classes: what a subclass says of itself reaches no check and no kernel."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import detops
from tests import calls

BACKENDS = ("cython", "numba", "cuda")


class Liar(np.ndarray):
    """An array that answers every question with nonsense."""

    shape = property(lambda self: (1, 2, 3))  # type: ignore[assignment]
    ndim = property(lambda self: 7)  # type: ignore[assignment]
    size = property(lambda self: 10**6)  # type: ignore[assignment]
    dtype = property(lambda self: np.dtype("int8"))  # type: ignore[assignment]
    flags = property(lambda self: None)  # type: ignore[assignment]

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError("a caller's class was asked")

    __getitem__ = __setitem__ = __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __invert__ = _refuse  # type: ignore
    __array__ = __array_ufunc__ = __array_function__ = __array_wrap__ = _refuse
    any = all = max = min = argmax = astype = reshape = view = copy = tobytes = _refuse  # type: ignore[assignment]


class Quantity(np.ndarray):
    """An array with a unit, which its results and comparisons carry on."""

    unit = "px"

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        raise TypeError("units do not fit")


KINDS: dict[str, Callable[[np.ndarray], Any]] = {
    "liar": lambda array: array.view(Liar),
    "quantity": lambda array: array.view(Quantity),
    "masked, without masked elements": np.ma.asarray,
    "masked, with a mask of False": lambda array: np.ma.array(array, mask=np.zeros(array.shape, bool)),
    "matrix": lambda array: array.view(np.matrix) if array.ndim == 2 else array,
}


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("operator", calls.ALL)
def test_subclasses_are_plain_arrays(operator: str, backend: str, kind: str) -> None:
    case = calls.ordinary(operator)
    arrays = case.cast("float32")
    function = getattr(detops, operator)
    expected = function(**arrays, **case.options, backend=backend)
    wrapped = {name: KINDS[kind](array) for name, array in arrays.items()}
    got = function(**wrapped, **case.options, backend=backend)
    for one, other in zip(*(r if isinstance(r, tuple) else (r,) for r in (expected, got)), strict=True):
        assert type(other) is np.ndarray
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("operator", calls.ALL)
def test_out_of_a_subclass(operator: str, kind: str) -> None:
    case = calls.ordinary(operator)
    expected = calls.call(case)
    plain = [np.zeros_like(result) for result in expected]
    outs = tuple(KINDS[kind](array) for array in plain)
    got = calls.call(case, out=outs if len(outs) > 1 else outs[0])
    assert all(one is other for one, other in zip(got, outs, strict=True))
    for one, other in zip(expected, outs, strict=True):
        np.testing.assert_array_equal(one, np.asarray(other))


@pytest.mark.parametrize("operator", calls.ALL)
def test_masked_elements(operator: str) -> None:
    case = calls.ordinary(operator)
    arrays = case.cast("float32")
    for name, array in arrays.items():
        mask = np.zeros(array.shape, bool)
        mask.flat[-1] = True
        for spoiled in (np.ma.array(array, mask=mask), [*array[:-1], np.ma.array(array[-1], mask=mask[-1])]):
            with pytest.raises(
                TypeError, match=rf"^{name}(\[\d+\])?: expected no masked elements, got some: fill them"
            ):
                getattr(detops, operator)(**{**arrays, name: spoiled}, **case.options)


@pytest.mark.parametrize("operator", calls.ALL)
def test_out_with_masked_elements(operator: str) -> None:
    case = calls.ordinary(operator)
    results = calls.call(case)
    outs = tuple(np.ma.array(result, mask=True) for result in results)
    with pytest.raises(ValueError, match=r"^out: expected an array without masked elements"):
        calls.call(case, out=outs if len(outs) > 1 else outs[0])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("pool", [detops.roi_align, detops.roi_pool])
def test_masked_batch_indices(pool: Any, backend: str) -> None:
    # The comparison of a masked index is masked, which is false to "any".
    features, boxes = np.ones((2, 1, 4, 4)), np.tile([0.0, 0, 2, 2], (3, 1))
    masked = np.ma.masked_equal([0, -1, 1], -1)
    with pytest.raises(TypeError, match=r"^batch_indices: expected no masked elements"):
        pool(features, boxes, 1, batch_indices=masked, backend=backend)
    rois = np.ma.concatenate([masked[:, np.newaxis], boxes], axis=1)
    with pytest.raises(TypeError, match=r"^rois: expected no masked elements"):
        pool(features, rois, 1, backend=backend)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_in_place_in_a_subclass(kind: str) -> None:
    data = KINDS[kind](np.zeros((3, 2)))
    result = detops.scatter_nd(data, np.array([[1]]), np.ones((1, 2)), out=data)
    assert result is data
    assert np.asarray(data).tolist() == [[0, 0], [1, 1], [0, 0]]
