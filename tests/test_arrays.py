"""Arrays of other classes: what a subclass says of itself reaches no check and no kernel."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import detops
from tests.support import calls
from tests.support.comparison import BACKENDS


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


_MAP = np.random.default_rng(0).normal(size=(3, 2, 6, 7))
_PER_IMAGE = [np.array([[0.0, 0, 4, 4], [1, 1, 5, 3]]), np.empty((0, 4)), np.array([[2.0, 1, 6, 5]])]
# The same boxes as lists, empty ones among them, as tuples, of mixed types, with rows that are arrays.
_FORMS: dict[str, Callable[[], Any]] = {
    "arrays": lambda: _PER_IMAGE,
    "a tuple": lambda: tuple(_PER_IMAGE),
    "lists": lambda: [boxes.tolist() for boxes in _PER_IMAGE],
    "lists of integers": lambda: [boxes.astype(int).tolist() for boxes in _PER_IMAGE],
    "mixed types": lambda: [boxes.astype(kind) for boxes, kind in zip(_PER_IMAGE, "ife", strict=True)],
    "lists of arrays": lambda: [list(boxes) for boxes in _PER_IMAGE],
    "swapped": lambda: [boxes.astype(">f8") for boxes in _PER_IMAGE],
    "subclasses": lambda: [boxes.view(Liar) for boxes in _PER_IMAGE],
}


@pytest.mark.parametrize("form", _FORMS)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("pool", [detops.roi_align, detops.roi_pool])
def test_boxes_of_each_image(pool: Any, dtype: str, backend: str, form: str) -> None:
    features = _MAP.astype(dtype)
    table = np.array([[0, *_PER_IMAGE[0][0]], [0, *_PER_IMAGE[0][1]], [2, *_PER_IMAGE[2][0]]])
    got = pool(features, _FORMS[form](), 2, backend=backend)
    np.testing.assert_array_equal(got, pool(features, table, 2, backend=backend))
    np.testing.assert_array_equal(got, pool(features, table[:, 1:], 2, batch_indices=[0, 0, 2], backend=backend))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("pool", [detops.roi_align, detops.roi_pool])
def test_no_rois(pool: Any, backend: str) -> None:
    for rois in ([], (), np.empty(0), [[], [], []], [np.empty((0, 4))] * 3, [np.empty(0), [], []]):
        assert pool(_MAP, rois, 2, backend=backend).shape == (0, 2, 2, 2)
    assert pool(_MAP, [], 2, batch_indices=[], backend=backend).shape == (0, 2, 2, 2)


@pytest.mark.parametrize("pool", [detops.roi_align, detops.roi_pool])
def test_masked_boxes_of_an_image(pool: Any) -> None:
    boxes = [*_PER_IMAGE[:2], np.ma.masked_equal(_PER_IMAGE[2], 1)]
    with pytest.raises(TypeError, match=r"^rois\[2\]: expected no masked elements"):
        pool(_MAP, boxes, 2)


@pytest.mark.parametrize("backend", BACKENDS)
def test_numbers_beyond_the_type_that_is_computed_in(backend: str) -> None:
    # No warning, which would be an error here.
    far, boxes = np.full((1, 4), 1e300), np.float32([[0, 0, 2, 2]])
    assert np.isnan(detops.encode_bbox(boxes, far, backend=backend)).any()
    assert detops.nms(boxes.astype(np.float16), [1e300], 0.5, backend=backend).tolist() == [0]
    features = np.ones((1, 1, 4, 4), np.float16)
    assert detops.instance_norm(features, [1e300], [0.0], backend=backend).shape == features.shape


@pytest.mark.parametrize("backend", BACKENDS)
def test_empty_lists_are_empty(backend: str) -> None:
    given = {"backend": backend}
    assert detops.nms([], [], 0.5, **given).tolist() == []
    assert detops.batched_nms([], [], [], 0.5, **given).tolist() == []
    assert detops.decode_bbox([], [], **given).shape == (0, 4)
    assert detops.encode_bbox([], [], **given).shape == (0, 4)
    assert detops.decode_bbox(np.empty((2, 0, 4), np.float32), [], **given).shape == (2, 0, 4)
    # No classes of one box, which is not an empty list of boxes.
    assert detops.decode_bbox(np.empty(0), np.zeros(4), **given).shape == (0,)
    assert detops.scatter_nd([], np.empty((0, 1), int), [], **given).tolist() == []
    assert detops.cummax([], **given).indices.tolist() == []


@pytest.mark.parametrize("backend", BACKENDS)
def test_integer_coordinates_are_float64(backend: str) -> None:
    # In float32 the second box would be the first one, and suppressed.
    boxes = [[2**24, 0, 2**24 + 1, 1], [2**24 + 1, 0, 2**24 + 2, 1]]
    for kind in ("int32", "int64", "uint64"):
        got = detops.nms(np.array(boxes, kind), np.float32([0.9, 0.8]), 0.1, backend=backend)
        assert got.tolist() == [0, 1]
    encoded = detops.encode_bbox(boxes, np.float32([[0, 0, 2, 2]] * 2), backend=backend)
    assert encoded.dtype == np.float64
    assert encoded[:, 0].tolist() == [2**23 - 0.25, 2**23 + 0.25]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_in_place_in_a_subclass(kind: str) -> None:
    data = KINDS[kind](np.zeros((3, 2)))
    result = detops.scatter_nd(data, np.array([[1]]), np.ones((1, 2)), out=data)
    assert result is data
    assert np.asarray(data).tolist() == [[0, 0], [1, 1], [0, 0]]
