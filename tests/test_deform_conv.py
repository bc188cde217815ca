"""deform_conv2d: errors, ONNX's own tests, bug reports, ordinary convolution, memory, and any arrays."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import detops
from tests.oracle import oracle
from tests.support import onnx_nodes
from tests.support.comparison import BACKENDS
from tests.support.json_cases import subcases
from tests.support.processes import output

X = np.zeros((2, 4, 5, 6))
OFFSET = np.zeros((2, 8, 4, 5))
WEIGHT = np.zeros((3, 4, 2, 2))


@pytest.mark.parametrize(
    ("arrays", "options", "error", "message"),
    [
        ({"x": X.astype(int)}, {}, TypeError, "x: expected dtype float16, float32 or float64, got int64"),
        ({"mask": X > 0}, {}, TypeError, "mask: expected dtype float16, float32 or float64, got bool"),
        ({"x": X[0]}, {}, ValueError, "x: expected shape (N, C, H, W), got (4, 5, 6)"),
        ({}, {"groups": 3}, ValueError, "x: the number of channels: expected a multiple of groups, 3, got 4"),
        (
            {},
            {"offset_groups": 3},
            ValueError,
            "x: the number of channels: expected a multiple of offset_groups, 3, got 4",
        ),
        (
            {"weight": WEIGHT[:, :3]},
            {},
            ValueError,
            "weight: expected shape (O, 4, kernel_H, kernel_W), got (3, 3, 2, 2)",
        ),
        (
            {"weight": WEIGHT[:, :2]},
            {"groups": 2},
            ValueError,
            "weight: the number of outputs: expected a multiple of groups, 2, got 3",
        ),
        (
            {"weight": WEIGHT[:, :2]},
            {"groups": 1},
            ValueError,
            "weight: expected shape (O, 4, kernel_H, kernel_W), got (3, 2, 2, 2)",
        ),
        (
            {"weight": WEIGHT[:, :2]},
            {},
            ValueError,
            "weight: the number of outputs: expected a multiple of groups, 2, got 3",
        ),
        (
            {"offset": OFFSET.repeat(2, axis=1)},
            {"offset_groups": 1},
            ValueError,
            "offset: expected shape (2, 8, 4, 5), got (2, 16, 4, 5)",
        ),
        (
            {"offset": OFFSET.repeat(3, axis=1)},
            {},
            ValueError,
            "x: the number of channels: expected a multiple of offset_groups, 3, got 4",
        ),
        (
            {"weight": WEIGHT[0]},
            {},
            ValueError,
            "weight: expected shape (O, C / groups, kernel_H, kernel_W), got (4, 2, 2)",
        ),
        (
            {"weight": WEIGHT[:, :, :0]},
            {},
            ValueError,
            "weight: expected a kernel of at least 1 x 1, got shape (3, 4, 0, 2)",
        ),
        ({}, {"dilation": (1, 6)}, ValueError, "x: expected a padded W of at least the kernel's 7, got 6"),
        ({"offset": OFFSET[:, :4]}, {}, ValueError, "offset: expected shape (2, 8, 4, 5), got (2, 4, 4, 5)"),
        ({}, {"stride": 2}, ValueError, "offset: expected shape (2, 8, 2, 3), got (2, 8, 4, 5)"),
        ({"mask": OFFSET}, {}, ValueError, "mask: expected shape (2, 4, 4, 5), got (2, 8, 4, 5)"),
        ({"bias": np.zeros(4)}, {}, ValueError, "bias: expected shape (3,), got (4,)"),
        ({}, {"stride": 0}, ValueError, "stride: expected at least 1, got 0"),
        ({}, {"padding": -1}, ValueError, "padding: expected at least 0, got -1"),
        (
            {},
            {"padding": 2**62},
            ValueError,
            f"padding: expected a padded H of at most {2**60}, got {2**63 + 5}",
        ),
        ({}, {"padding": (1, 2, 3)}, ValueError, "padding: expected an int, 2 or 4 ints, got (1, 2, 3)"),
        ({}, {"im2col_step": 0}, ValueError, "im2col_step: expected at least 1, got 0"),
        ({}, {"groups": 1.0}, TypeError, "groups: expected an integer, got 1.0"),
    ],
)
def test_errors(arrays, options, error, message):
    with pytest.raises(error) as caught:
        detops.deform_conv2d(**{"x": X, "offset": OFFSET, "weight": WEIGHT, **arrays}, **options)
    assert str(caught.value) == message


def _from_onnx(inputs, attributes):
    """Positional and keyword arguments of the public function from those of ONNX's DeformConv."""
    x, weight, offset, bias, mask = [*inputs, None, None][:5]
    options = {
        "stride": attributes.get("strides", 1),
        "padding": attributes.get("pads", 0),
        "dilation": attributes.get("dilations", 1),
        "groups": attributes.get("group", 1),
        "offset_groups": attributes.get("offset_group", 1),
    }
    return (x, offset, weight, bias), {"mask": mask, **options}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "case", subcases("deform_border_and_huge_offsets", "deform_optional_inputs_zero_offset"), ids=str
)
def test_bug_reports(case, backend):
    inputs = [case.inputs.get(name) for name in ("X", "W", "offset", "B", "mask")]
    arrays, options = _from_onnx(inputs, case.attributes)
    got = detops.deform_conv2d(*arrays, **options, backend=backend)
    np.testing.assert_allclose(got, case.expected["Y"], rtol=case.tolerance, atol=case.tolerance)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", onnx_nodes.node_cases("DeformConv"), ids=lambda case: case.name)
def test_onnx_node_cases(case, backend):
    names = case.model.graph.node[0].input
    for given_inputs, (wanted,) in onnx_nodes.arrays(case):
        left = iter(given_inputs)
        inputs = [next(left) if name else None for name in names]
        arrays, options = _from_onnx(inputs, onnx_nodes.attributes(case))
        got = detops.deform_conv2d(*arrays, **options, backend=backend)
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("backend", BACKENDS)
def test_without_offsets_it_is_a_convolution(backend):
    rng = np.random.default_rng(2)
    x, weight = rng.normal(size=(3, 6, 7)), rng.normal(size=(2, 3, 3, 2))
    got = detops.deform_conv2d(x[None], np.zeros((1, 12, 4, 6)), weight, backend=backend)[0]
    for plane, kernels in zip(got, weight, strict=True):
        windows = np.lib.stride_tricks.sliding_window_view(x, kernels.shape[1:], axis=(1, 2))
        wanted = np.einsum("chwij,cij->hw", windows, kernels)
        np.testing.assert_allclose(plane, wanted, rtol=1e-12, atol=1e-12)


def _random(rng, images, channels, outputs, kernel, size, dtype="float32", groups=1, offset_groups=1):
    taps = kernel[0] * kernel[1] * offset_groups
    arrays = {
        "x": rng.normal(size=(images, channels, *size)),
        "offset": rng.normal(0, 2, (images, 2 * taps, *size)),
        "weight": rng.normal(size=(outputs, channels // groups, *kernel)),
        "bias": rng.normal(size=outputs),
        "mask": rng.uniform(size=(images, taps, *size)),
    }
    padding = (kernel[0] // 2, kernel[1] // 2, (kernel[0] - 1) // 2, (kernel[1] - 1) // 2)
    options = {"padding": padding, "groups": groups, "offset_groups": offset_groups}
    return {name: array.astype(dtype) for name, array in arrays.items()}, options


@st.composite
def calls(draw):
    """Any groups, kernels and sizes, with offsets of ordinary and of odd kinds."""
    small = st.integers(1, 3)
    groups, offset_groups = draw(small), draw(small)
    channels = np.lcm(groups, offset_groups) * draw(small)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    arrays, options = _random(
        rng,
        draw(st.integers(1, 2)),
        channels,
        groups * draw(small),
        (draw(small), draw(small)),
        (draw(st.integers(1, 5)), draw(st.integers(1, 5))),
        "float64",
        groups,
        offset_groups,
    )
    odd = draw(st.sampled_from((0.0, np.nan, np.inf, -np.inf, 1e30, -1e30, 2.0**31, -1.0, 0.5)))
    arrays["offset"][rng.uniform(size=arrays["offset"].shape) < 0.2] = odd
    for name in ("bias", "mask"):
        if draw(st.booleans()):
            del arrays[name]
    return arrays, options


@given(call=calls(), backend=st.sampled_from(("cython", "numba")), step=st.sampled_from((None, 1, 2, 5)))
def test_any_arrays(call, backend, step):
    arrays, options = call
    wanted = oracle("deform_conv2d")(**arrays, **options)
    got = detops.deform_conv2d(**arrays, **options, im2col_step=step, backend=backend)
    np.testing.assert_allclose(got, wanted, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_long_sum(backend, dtype):
    # Longer than any vector or block, and of a length that none divides.
    arrays, options = _random(np.random.default_rng(4), 1, 409, 2, (1, 1), (1, 2), dtype)
    wanted = oracle("deform_conv2d")(**arrays, **options)
    got = detops.deform_conv2d(**arrays, **options, backend=backend)
    np.testing.assert_allclose(got, wanted, rtol=2e-3 if dtype == "float16" else 1e-5, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_steps_and_threads_change_no_bit(dtype):
    arrays, options = _random(np.random.default_rng(6), 5, 12, 40, (3, 3), (11, 13), dtype, 2, 3)
    before = detops.get_num_threads()
    found = set()
    try:
        for threads in (1, 2, 3, 8):
            detops.set_num_threads(threads)
            for step in (None, 1, 2, 3, 5, 50):
                found.add(detops.deform_conv2d(**arrays, **options, im2col_step=step).tobytes())
    finally:
        detops.set_num_threads(before)
    assert len(found) == 1


PEAK = """
import sys
import numpy as np
import detops

def peak():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) << 10

detops.set_num_threads(2)
x = np.ones((24, 32, 128, 128), np.float32)
offset, weight = np.zeros((24, 2, 128, 128), np.float32), np.ones((1, 32, 1, 1), np.float32)
out = np.zeros((24, 1, 128, 128), np.float32)
detops.deform_conv2d(x[:1], offset[:1], weight, im2col_step=1)
before = peak()
detops.deform_conv2d(x, offset, weight, im2col_step=int(sys.argv[1]), out=out)
print(peak() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the peak of memory where Linux tells it")
def test_the_step_bounds_memory():
    image = 4 * 32 * 128 * 128
    slack = 4 * image
    used = {step: int(output(PEAK, str(step))) for step in (1, 24)}
    assert used[1] < slack
    # All images at a time: the measurement sees what it is meant to see.
    assert 23 * image - slack < used[24] < 24 * image + slack
