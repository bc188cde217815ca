"""scatter_nd: errors, order, every dtype, in place, ONNX's own tests, and any arrays against the oracle."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import detops
from detops.operators import _checks
from tests.oracle import oracle
from tests.support import onnx_nodes
from tests.support.comparison import BACKENDS
from tests.support.json_cases import Subcase, subcases

REDUCTIONS = ("none", "add", "mul", "min", "max")
D = np.zeros((3, 4))
TUPLES = np.array([[0], [2]])
U = np.ones((2, 4))


@pytest.mark.parametrize(
    ("data", "indices", "updates", "options", "error", "message"),
    [
        (D, TUPLES.astype(float), U, {}, TypeError, "indices: expected an integer dtype, got float64"),
        (D, TUPLES > 0, U, {}, TypeError, "indices: expected an integer dtype, got bool"),
        (D, TUPLES, U.astype("f"), {}, TypeError, "updates: expected the dtype of data, float64, got float32"),
        (D.astype("S2"), TUPLES, U.astype("S3"), {}, TypeError, "updates: expected the dtype of data, |S2, got |S3"),
        (
            D.astype(complex),
            TUPLES,
            U.astype(complex),
            {"reduction": "add"},
            TypeError,
            "data: expected a real dtype or bool, got complex128",
        ),
        (
            D.astype(object),
            TUPLES,
            U.astype(object),
            {"reduction": "max"},
            TypeError,
            "data: expected a real dtype or bool, got object",
        ),
        (
            D.astype(object),
            TUPLES,
            U.astype(object),
            {"backend": "cuda"},
            TypeError,
            "data: expected a dtype of plain bytes on the GPU, got object",
        ),
        (D[0, 0], TUPLES, U, {}, ValueError, "data: expected at least 1 axis, got shape ()"),
        (D, TUPLES[0, 0], U, {}, ValueError, "indices: expected at least 1 axis, got shape ()"),
        (
            D,
            np.zeros((2, 3), int),
            U,
            {},
            ValueError,
            "indices: expected shape (..., k) with k from 0 to 2, got (2, 3)",
        ),
        (D, TUPLES, U[:1], {}, ValueError, "updates: expected shape (2, 4), got (1, 4)"),
        (D, TUPLES, U[:, :3], {}, ValueError, "updates: expected shape (2, 4), got (2, 3)"),
        (
            D,
            TUPLES,
            U,
            {"reduction": "sum"},
            ValueError,
            "reduction: expected one of 'none', 'add', 'mul', 'min', 'max', got 'sum'",
        ),
        (
            D,
            TUPLES,
            U,
            {"out": D.T},
            ValueError,
            "out: expected shape (3, 4) and dtype float64, got (4, 3) and float64",
        ),
    ],
)
def test_errors(data, indices, updates, options, error, message):
    with pytest.raises(error) as caught:
        detops.scatter_nd(data, indices, updates, **options)
    assert str(caught.value) == message


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bool", "U3", "O"])
@pytest.mark.parametrize(
    ("indices", "message"),
    [
        (np.array([[[-3, -4], [0, 4]]]), "(3, 4), got (0, 4) at (0, 1)"),
        (np.array([[[0, 0], [-4, 0]]]), "(3, 4), got (-4, 0) at (0, 1)"),
        (np.array([[[0, 0], [0, 9]], [[3, 0], [0, 0]]], np.int8), "(3, 4), got (0, 9) at (0, 1)"),
        (np.array([[np.iinfo(np.int64).min, 0]]), f"(3, 4), got ({-(2**63)}, 0) at (0,)"),
        # Read as int64 this would be -1.
        (np.array([[2**64 - 1, 0]], np.uint64), f"(3, 4), got ({2**64 - 1}, 0) at (0,)"),
        (np.array([2, 200], np.uint8), "(3, 4), got (2, 200) at ()"),
    ],
)
def test_an_index_out_of_range_is_named_and_nothing_is_written(indices, message, dtype, backend):
    if dtype == "O" and backend == "cuda":
        return
    data = np.zeros((3, 4)).astype(dtype)
    updates = np.ones(indices.shape[:-1]).astype(dtype)
    out = np.full_like(data, 1)
    with pytest.raises(IndexError) as caught:
        detops.scatter_nd(data, indices, updates, backend=backend, out=out)
    assert str(caught.value) == f"indices: expected indices into shape {message}"
    assert (out == np.full_like(data, 1)).all()
    with pytest.raises(IndexError):
        detops.scatter_nd(out, indices, updates, backend=backend, out=out)
    assert (out == np.full_like(data, 1)).all()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "case", subcases("scatternd_minmax_tuple_index", "scatternd_negative_and_out_of_range"), ids=str
)
def test_bug_reports(case: Subcase, backend: str) -> None:
    given = {name: array.copy() for name, array in case.inputs.items()}
    if case.raises:
        with pytest.raises(IndexError):
            detops.scatter_nd(*given.values(), **case.attributes, backend=backend)
        return
    got = detops.scatter_nd(*given.values(), **case.attributes, backend=backend)
    np.testing.assert_array_equal(got, case.expected["output"])
    for name, array in case.inputs.items():
        np.testing.assert_array_equal(given[name], array)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_node_tests_of_onnx(backend):
    cases = onnx_nodes.node_cases("ScatterND")
    assert len(cases) >= 7
    for case in cases:
        for inputs, (wanted,) in onnx_nodes.arrays(case):
            got = detops.scatter_nd(*inputs, **onnx_nodes.attributes(case), backend=backend)
            assert got.dtype == wanted.dtype
            np.testing.assert_array_equal(got, wanted, err_msg=case.name)


ELEMENTS = {
    "f": st.sampled_from([0.0, 1.0, -1.0, 2.5, np.inf, -np.inf, np.nan]),
    "i": st.integers(-100, 100),
    "u": st.integers(0, 200),
    "b": st.booleans(),
}


@st.composite
def calls(draw):
    """Arguments of a call that raises nothing."""
    dtype = draw(st.sampled_from(list(_checks.NUMBERS)))
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4))
    depth = draw(st.integers(0, len(shape)))
    lead = draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=5))
    width = draw(st.sampled_from(["int8", "int16", "int32", "int64"]))
    columns = [draw(hnp.arrays(width, lead, elements=st.integers(-n, n - 1))) for n in shape[:depth]]
    indices = np.stack(columns, -1) if columns else np.empty((*lead, 0), width)
    arrays = [draw(hnp.arrays(dtype, size, elements=ELEMENTS[dtype.kind])) for size in (shape, (*lead, *shape[depth:]))]
    return arrays[0], indices, arrays[1], draw(st.sampled_from(REDUCTIONS))


@pytest.mark.parametrize("backend", ["cython", "numba"])
@given(call=calls())
def test_any_arrays(backend, call):
    data, indices, updates, reduction = call
    with np.errstate(all="ignore"):
        wanted = oracle("scatter_nd")(data, indices, updates, reduction=reduction).astype(data.dtype)
    got = detops.scatter_nd(data, indices, updates, reduction=reduction, backend=backend)
    assert got.dtype == data.dtype
    exact = reduction in ("none", "min", "max") or data.dtype.kind != "f"
    tolerance = 0 if exact else {2: 1e-2, 4: 1e-5, 8: 1e-12}[data.dtype.itemsize]
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=0)


@pytest.mark.parametrize("backend", ["cython", "numba"])
@pytest.mark.parametrize("dtype", ["float32", "int16", "complex128", "U3"])
@pytest.mark.parametrize(("slots", "row"), [(50, ()), (70_001, ()), (900, (40,)), (3, (7, 9001))])
def test_the_last_update_wins_on_any_number_of_threads(slots, row, dtype, backend):
    rng = np.random.default_rng(17)
    indices = rng.integers(-slots, slots, (8 * slots if row else 200_000, 1))
    count = min(len(indices), 2_000_000 // max(1, int(np.prod(row))))
    indices = indices[:count]
    data, updates = (rng.integers(0, 999, (n, *row)).astype(dtype) for n in (slots, count))
    wanted = data.copy()
    wanted[indices[:, 0]] = updates
    before = detops.get_num_threads()
    try:
        for threads in (1, 2, 7):
            detops.set_num_threads(threads)
            np.testing.assert_array_equal(detops.scatter_nd(data, indices, updates, backend=backend), wanted)
    finally:
        detops.set_num_threads(before)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("row", [(), (3,), (40,)])
def test_a_sum_is_taken_in_order_on_every_backend(row, dtype):
    rng = np.random.default_rng(19)
    data = rng.standard_normal((4, *row)).astype(dtype)
    indices = rng.integers(0, 4, (60, 1))
    updates = (rng.standard_normal((60, *row)) * 10.0 ** rng.integers(-5, 6, (60, *row))).astype(dtype)
    wanted = data.copy()
    for at, update in zip(indices[:, 0], updates, strict=True):
        wanted[at] += update
    for backend in BACKENDS:
        got = detops.scatter_nd(data, indices, updates, reduction="add", backend=backend)
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "bool"])
def test_in_place(dtype, reduction, backend):
    rng = np.random.default_rng(23)
    data = rng.integers(0, 4, (5, 3)).astype(dtype)
    indices, updates = rng.integers(-5, 5, (9, 1)), rng.integers(0, 4, (9, 3)).astype(dtype)
    wanted = detops.scatter_nd(data, indices, updates, reduction=reduction, backend=backend)
    assert detops.scatter_nd(data, indices, updates, reduction=reduction, backend=backend, out=data) is data
    np.testing.assert_array_equal(data, wanted)


@pytest.mark.parametrize("backend", BACKENDS)
def test_out_may_overlap_any_input(backend):
    memory = np.arange(12.0)
    data, updates, out = memory[:6], memory[4:7], memory[2:8]
    indices = np.array([[0], [5], [0]])
    wanted = detops.scatter_nd(data.copy(), indices, updates.copy(), backend=backend)
    detops.scatter_nd(data, indices, updates, out=out, backend=backend)
    np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["float16", "complex64", "complex128", "M8[s]", "S1", "S5", "U2", "V3", ">f8", ">U2"])
def test_none_moves_the_bytes_of_any_dtype(dtype, backend):
    rng = np.random.default_rng(29)
    width = np.dtype(dtype).itemsize
    data, updates = (np.frombuffer(rng.integers(65, 70, n * width, np.uint8).tobytes(), f"V{width}") for n in (12, 8))
    if np.dtype(dtype).kind == "U":
        data, updates = (rng.integers(10, 99, n).astype(dtype) for n in (12, 8))
    data, updates = data.view(dtype).reshape(6, 2), updates.view(dtype).reshape(4, 2)
    wanted = data.copy()
    for at, update in zip((1, -1, 1, 0), updates, strict=True):
        wanted[at] = update
    got = detops.scatter_nd(data, np.array([[1], [-1], [1], [0]]), updates, backend=backend)
    assert got.dtype == data.dtype.newbyteorder("=")
    assert got.tolist() == wanted.tolist()


@pytest.mark.parametrize("backend", ["cython", "numba"])
def test_objects_and_strings_of_variable_width(backend):
    data = np.array([["a", None, 3], [4.5, (1, 2), "b"]], object)
    updates = np.array([{"c": 1}, "last"], object)
    got = detops.scatter_nd(data, np.array([[1, 1], [-1, -2]]), updates, backend=backend)
    assert got.tolist() == [["a", None, 3], [4.5, "last", "b"]]
    assert data[1, 1] == (1, 2)
    rows = detops.scatter_nd(data, np.array([[0]]), data[1:], backend=backend)
    assert rows.tolist() == [data[1].tolist()] * 2
    string = getattr(np.dtypes, "StringDType", None)
    if string is not None:
        words = np.array(["one", "two"], string())
        got = detops.scatter_nd(words, np.array([[1], [1]]), np.array(["a long word indeed", "three"], string()))
        assert got.tolist() == ["one", "three"]


def test_narrow_strings_go_into_wide_ones():
    got = detops.scatter_nd(np.array(["one", "two"]), np.array([[1]]), np.array(["b"]))
    assert got.tolist() == ["one", "b"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_bool_is_or_and(backend):
    data = np.array([False, True, False, True])
    indices = np.array([[0], [0], [1], [1], [2], [3]])
    updates = np.array([True, True, True, False, False, True])
    for reduction, wanted in (
        ("add", [True, True, False, True]),
        ("max", [True, True, False, True]),
        ("mul", [False, False, False, True]),
        ("min", [False, False, False, True]),
    ):
        got = detops.scatter_nd(data, indices, updates, reduction=reduction, backend=backend)
        assert got.dtype == bool
        assert got.tolist() == wanted
