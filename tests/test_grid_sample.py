"""grid_sample: errors, points that are not finite, ONNX's own tests, bug reports, and any arrays against the oracle."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import detops
from tests.oracle import oracle
from tests.support import onnx_nodes
from tests.support.comparison import BACKENDS
from tests.support.json_cases import Subcase, settled, subcases

X = np.zeros((2, 3, 4, 5))
GRID = np.zeros((2, 6, 7, 2))
MODES = ("linear", "nearest", "cubic")
BORDERS = ("zeros", "border", "reflection")


@pytest.mark.parametrize(
    ("x", "grid", "options", "error", "message"),
    [
        (X.astype(int), GRID, {}, TypeError, "x: expected dtype float16, float32 or float64, got int64"),
        (X, GRID.astype(int), {}, TypeError, "grid: expected dtype float16, float32 or float64, got int64"),
        (X[0], GRID, {}, ValueError, "x: expected shape (N, C, H, W) or (N, C, D, H, W), got (3, 4, 5)"),
        (X, GRID[:1], {}, ValueError, "grid: expected shape (2, out_H, out_W, 2), got (1, 6, 7, 2)"),
        (X, GRID[0], {}, ValueError, "grid: expected shape (2, out_H, out_W, 2), got (6, 7, 2)"),
        (X, GRID[..., :1], {}, ValueError, "grid: expected shape (2, out_H, out_W, 2), got (2, 6, 7, 1)"),
        (X[:, :, None], GRID, {}, ValueError, "grid: expected shape (2, out_D, out_H, out_W, 3), got (2, 6, 7, 2)"),
        (
            X,
            GRID,
            {"mode": "area"},
            ValueError,
            "mode: expected one of 'linear', 'nearest', 'cubic', 'bilinear', 'bicubic', got 'area'",
        ),
        (
            X,
            GRID,
            {"padding_mode": "same"},
            ValueError,
            "padding_mode: expected one of 'zeros', 'border', 'reflection', got 'same'",
        ),
        (X, GRID, {"align_corners": "yes"}, TypeError, "align_corners: expected a bool, got 'yes'"),
        (
            X[:, :, :0],
            GRID,
            {"padding_mode": "border"},
            ValueError,
            "x: expected spatial axes of at least 1 for padding_mode 'border', got (2, 3, 0, 5)",
        ),
    ],
)
def test_errors(x, grid, options, error, message):
    with pytest.raises(error) as caught:
        detops.grid_sample(x, grid, **options)
    assert str(caught.value) == message


def _options(case: Subcase) -> dict:
    """Options of the public function from ONNX's attributes, or from those of MMCV's grid_sampler."""
    options = {**case.attributes, "align_corners": bool(case.attributes["align_corners"])}
    if case.operator == "grid_sampler":
        options["mode"] = MODES[options.pop("interpolation_mode")]
        options["padding_mode"] = BORDERS[options["padding_mode"]]
        options["reflect_first"] = True
    return options


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "case", subcases("gridsample_cubic_nearest_rules", "gridsample_nonfinite_and_huge_grid"), ids=str
)
def test_bug_reports(case, backend):
    (x, grid), (wanted,) = case.inputs.values(), case.expected.values()
    got = detops.grid_sample(x, grid, **_options(case), backend=backend)
    # test_coordinates_that_are_not_finite holds what we chose elsewhere.
    got, wanted = settled(case, got), settled(case, wanted)
    np.testing.assert_allclose(got, wanted, rtol=case.tolerance, atol=case.tolerance)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", onnx_nodes.node_cases("GridSample"), ids=lambda case: case.name)
def test_onnx_node_cases(case, backend):
    attributes = onnx_nodes.attributes(case)
    attributes["align_corners"] = bool(attributes.get("align_corners", 0))
    for inputs, (wanted,) in onnx_nodes.arrays(case):
        got = detops.grid_sample(*inputs, **attributes, backend=backend)
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


@st.composite
def calls(draw):
    """Maps with sizes that are powers of 2 and grids of few bits: positions are exact, so that halves are halves."""
    axes = draw(st.sampled_from((2, 2, 3)))
    mode = draw(st.sampled_from(MODES))
    size = st.sampled_from((1, 2, 4, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    images, channels = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    x = rng.integers(-9, 10, (images, channels, *(draw(size) for _ in range(axes)))).astype(float)
    reach = draw(st.sampled_from((1, 2, 50)))
    grid = rng.integers(-32 * reach, 32 * reach + 1, (images, *draw(st.tuples(*[st.integers(1, 3)] * axes)), axes)) / 32
    grid[rng.uniform(size=grid.shape) < 0.1] = draw(st.sampled_from((np.nan, 0.0, 1.0, -1.0)))
    options = {"mode": mode, "padding_mode": draw(st.sampled_from(BORDERS)), "align_corners": draw(st.booleans())}
    options["reflect_first"] = draw(st.booleans())
    # Where corners are aligned sizes less one are no powers of 2, and only float64 has halves to round.
    return x, grid, options, draw(st.sampled_from(("float32", "float64")))


@given(call=calls(), backend=st.sampled_from(("cython", "numba")))
def test_any_arrays(call, backend):
    x, grid, options, dtype = call
    wanted = oracle("grid_sample")(x, grid, **options)
    got = detops.grid_sample(x.astype(dtype), grid, **options, backend=backend)
    if options["mode"] == "nearest":
        np.testing.assert_array_equal(got, wanted)
    else:
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-3 if dtype == "float32" else 1e-11)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("padding_mode", BORDERS)
@pytest.mark.parametrize("align_corners", [False, True])
def test_coordinates_that_are_not_finite(mode, padding_mode, align_corners, backend):
    x = np.arange(1.0, 4.0).reshape(1, 1, 1, 3)
    grid = np.zeros((1, 1, 3, 2))
    grid[0, 0, :, 0] = np.nan, np.inf, -np.inf
    options = {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
    got = detops.grid_sample(x, grid, **options, backend=backend).ravel()
    wanted = {"zeros": [0, 0, 0], "border": [1, 3, 1], "reflection": [1, 1, 1]}[padding_mode]
    # Along y, where all is at hand, a cubic sums up weights.
    np.testing.assert_allclose(got, wanted, rtol=1e-15)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("padding_mode", BORDERS)
def test_huge_coordinates_stay_inside(mode, padding_mode):
    huge = [2.0**k for k in (20, 24, 31, 32, 53, 62, 63, 64, 127)]
    for dtype in ("float32", "float64"):
        row = np.array([*huge, *(-number for number in huge)], dtype)
        grid = np.stack(np.meshgrid(row, row), -1)[None]
        x = np.full((1, 1, 5, 7), 3, dtype)
        got = detops.grid_sample(x, grid, mode=mode, padding_mode=padding_mode)
        np.testing.assert_allclose(got, 0 if padding_mode == "zeros" else 3, rtol=1e-6)


def test_inside_tiles_and_the_border_agree():
    # Tiles that lie inside the map take a shorter way: the same bits as when a point outside is among them.
    rng = np.random.default_rng(5)
    x = rng.normal(size=(1, 2, 40, 50)).astype("f")
    grid = rng.uniform(-0.9, 0.9, (1, 16, 64, 2)).astype("f")
    alone = detops.grid_sample(x, grid)
    grid[0, ::2, 0] = 5
    mixed = detops.grid_sample(x, grid)
    mixed[0, :, ::2, 0] = alone[0, :, ::2, 0]
    assert mixed.tobytes() == alone.tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("axes", [2, 3])
@pytest.mark.parametrize("mode", MODES)
def test_many_channels_and_one_agree(mode, axes, dtype):
    # Blocks of many channels are sampled from a copy, and a single one from where it is: the same bits.
    rng = np.random.default_rng(3)
    x = rng.normal(size=(2, 17, 6, 5, 4)[: 2 + axes]).astype(dtype)
    x[0, 16, 2, 3], x[1, 0] = np.nan, -0.0
    # More points than a tile has, which are not a multiple of what is transposed at once.
    grid = rng.uniform(-1.4, 1.4, (*(2, 7, 45, 3)[: 1 + axes], axes)).astype(dtype)
    grid[0, 0, :9] = np.linspace(-1, 1, 9)[:, *[None] * (axes - 1)]
    for padding_mode, reflect_first in itertools.product(BORDERS, (False, True)):
        options = {"mode": mode, "padding_mode": padding_mode, "reflect_first": reflect_first}
        together = detops.grid_sample(x, grid, **options, backend="cython")
        for channel in range(17):
            alone = detops.grid_sample(x[:, channel : channel + 1], grid, **options, backend="cython")
            assert together[:, channel].tobytes() == alone[:, 0].tobytes(), (channel, options)
