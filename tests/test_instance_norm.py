"""instance_norm: errors, data that lose their digits, ONNX's own tests, threads, any array against the oracle."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import detops
from detops._cuda import instance_norm as kernels
from detops._cuda.device import launch
from tests.oracle import oracle
from tests.support import onnx_nodes
from tests.support.comparison import BACKENDS
from tests.support.json_cases import Subcase, subcases

X = np.zeros((2, 3, 4))


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((X.astype(int),), {}, TypeError, "x: expected dtype float16, float32 or float64, got int64"),
        ((X, np.ones(3, int)), {}, TypeError, "scale: expected dtype float16, float32 or float64, got int64"),
        ((X[0],), {}, ValueError, "x: expected shape (num_images, num_channels, d1, ...), got (3, 4)"),
        ((X, np.ones(2)), {}, ValueError, "scale: expected shape (3,), got (2,)"),
        ((X, None, np.ones((3, 1))), {}, ValueError, "bias: expected shape (3,), got (3, 1)"),
        ((X,), {"epsilon": 0}, ValueError, "epsilon: expected a number above 0, got 0.0"),
        ((X,), {"epsilon": None}, TypeError, "epsilon: expected a real number, got None"),
        ((X,), {"out": X[0]}, ValueError, "out: expected shape (2, 3, 4) and dtype float64, got (3, 4) and float64"),
    ],
)
def test_errors(arguments, options, error, message):
    with pytest.raises(error) as caught:
        detops.instance_norm(*arguments, **options)
    assert str(caught.value) == message


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "case", subcases("instancenorm_float16_overflow", "instancenorm_single_element_and_ranks"), ids=str
)
def test_bug_reports(case: Subcase, backend: str) -> None:
    got = detops.instance_norm(*case.inputs.values(), **case.attributes, backend=backend)
    wanted = case.expected["output"]
    assert got.dtype == wanted.dtype
    np.testing.assert_allclose(got, wanted, rtol=case.tolerance, atol=case.tolerance)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_node_tests_of_onnx(backend):
    cases = onnx_nodes.node_cases("InstanceNormalization")
    assert len(cases) >= 2
    for case in cases:
        for inputs, (wanted,) in onnx_nodes.arrays(case):
            got = detops.instance_norm(*inputs, **onnx_nodes.attributes(case), backend=backend)
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5, err_msg=case.name)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("float64", 1e-8)])
@pytest.mark.parametrize("origin", [0, 1e6, -3e6])
def test_a_mean_far_from_the_deviation(origin, dtype, tolerance, backend):
    rng = np.random.default_rng(41)
    # Steps that float32 holds beside the origin, so that the data are what they seem.
    x = (origin + rng.integers(-8, 9, (2, 3, 65, 67)) / 4).astype(dtype)
    wanted = oracle("instance_norm")(x)
    np.testing.assert_allclose(detops.instance_norm(x, backend=backend), wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_outlier_in_front_of_a_far_mean(backend):
    x = (1e6 + np.random.default_rng(43).integers(-8, 9, (1, 1, 5000)) / 4).astype(np.float32)
    x[0, 0, 0] = 0
    wanted = oracle("instance_norm")(x)
    np.testing.assert_allclose(detops.instance_norm(x, backend=backend), wanted, rtol=1e-5, atol=1e-7)


def test_many_small_spreads_beside_a_large_one_on_the_gpu():
    blocks, one = 2000, np.ones(1, np.float32)
    spreads = np.ones((1, blocks), np.float32)
    spreads[0, 0] = 2**25  # float32 has no digit for one more
    parts = np.zeros((1, 3), np.float32)
    size = blocks * kernels.BLOCK
    arguments = (size, np.zeros((1, blocks, 2), np.float32), spreads, one, np.float32(1e-5), parts)
    launch(kernels.parts_of_instances, 1, *arguments)
    np.testing.assert_allclose(parts, [[0, 0, 1 / np.sqrt(spreads.sum(dtype=float) / size + 1e-5)]], rtol=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("size", [1, 2, 1023, 1025])
def test_equal_elements_give_the_bias_exactly(size, dtype, backend):
    x = np.broadcast_to(np.array([0.1, 1e4, -3.3]).astype(dtype).reshape(1, 3, 1), (2, 3, size))
    bias = np.array([0.3, -7.0, 1e-3]).astype(dtype)
    got = detops.instance_norm(x, np.array([3.0, 1e3, -2.0]).astype(dtype), bias, backend=backend)
    np.testing.assert_array_equal(got, np.broadcast_to(bias.reshape(1, 3, 1), got.shape))


@pytest.mark.parametrize("backend", ["cython", "numba"])
@given(
    x=hnp.arrays(
        st.sampled_from(["float16", "float32", "float64"]),
        hnp.array_shapes(min_dims=3, max_dims=5, min_side=0, max_side=5),
        elements=st.floats(-100, 100, width=16),
    ),
    epsilon=st.floats(1e-3, 1),
    with_scale=st.booleans(),
    with_bias=st.booleans(),
)
def test_any_array(backend, x, epsilon, with_scale, with_bias):
    channels = x.shape[1]
    scale = np.linspace(-2, 2, channels) if with_scale else None
    bias = np.linspace(3, -1, channels).astype(np.float32) if with_bias else None
    got = detops.instance_norm(x, scale, bias, epsilon=epsilon, backend=backend)
    wanted = oracle("instance_norm")(x, scale, bias, epsilon=epsilon)
    assert got.dtype == x.dtype
    tolerance = {2: 4e-3, 4: 1e-5, 8: 1e-10}[x.dtype.itemsize]
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("backend", ["cython", "numba"])
@pytest.mark.parametrize("shape", [(3, 5, 300, 301), (700, 3, 9), (1, 1, 1200, 1100)])
def test_any_number_of_threads(shape, backend):
    x = np.random.default_rng(47).normal(3, 2, shape).astype(np.float32)
    before = detops.get_num_threads()
    try:
        detops.set_num_threads(1)
        wanted = detops.instance_norm(x, backend=backend)
        for threads in (2, 5):
            detops.set_num_threads(threads)
            np.testing.assert_array_equal(detops.instance_norm(x, backend=backend), wanted)
    finally:
        detops.set_num_threads(before)
    flat = x[-1, -1].astype(np.float64).ravel()
    np.testing.assert_allclose(
        wanted[-1, -1].ravel(), (flat - flat.mean()) / np.sqrt(flat.var() + 1e-5), rtol=1e-5, atol=1e-6
    )
