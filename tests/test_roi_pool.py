"""roi_pool: errors, bug reports, and any arrays against the oracle. test_roi_align.py has what both share."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import detops
from tests.oracle import oracle
from tests.support.comparison import BACKENDS
from tests.support.json_cases import Subcase, subcases

CPU = ("cython", "numba")
X = np.arange(24.0).reshape(1, 2, 3, 4)
ROIS = np.array([[0.0, 0, 0, 3, 2], [0.0, 1, 1, 2, 2]])


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (
            (X.astype("c8"), ROIS, 2),
            {},
            TypeError,
            "features: expected dtype float16, float32 or float64, got complex64",
        ),
        ((X[0], ROIS, 2), {}, ValueError, "features: expected shape (batch, channels, height, width), got (2, 3, 4)"),
        ((X, ROIS[:, 2:], 2), {}, ValueError, "rois: expected shape (num_rois, 5), got (2, 3)"),
        ((X, ROIS, (0, 2)), {}, ValueError, "output_size: expected at least 1, got 0"),
        ((X, ROIS, 2), {"spatial_scale": -1}, ValueError, "spatial_scale: expected a number above 0, got -1.0"),
        (
            (X, ROIS, 2),
            {"out": np.empty((2, 2, 2, 2), "f")},
            ValueError,
            "out: expected shape (2, 2, 2, 2) and dtype float64, got (2, 2, 2, 2) and float32",
        ),
    ],
)
def test_errors(arguments, options, error, message):
    with pytest.raises(error) as caught:
        detops.roi_pool(*arguments, **options)
    assert str(caught.value) == message


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "case",
    [
        case
        for case in subcases("roipool_three_definitions", "roialign_empty_rois")
        if case.operator in ("MaxRoiPool", "roi_pool")
    ],
    ids=str,
)
def test_bug_reports(case: Subcase, backend: str) -> None:
    options = {"spatial_scale": case.attributes["spatial_scale"], "backend": backend}
    arguments = (*case.inputs.values(), case.attributes["pooled_shape"])
    if case.raises:
        with pytest.raises(ValueError, match="batch indices"):
            detops.roi_pool(*arguments, **options)
        return
    np.testing.assert_array_equal(detops.roi_pool(*arguments, **options), case.expected["Y"])


def test_mmcv_means_something_else():
    (case,) = (case for case in subcases("roipool_three_definitions") if case.operator == "MMCVRoIPool")
    got = detops.roi_pool(*case.inputs.values(), case.attributes["pooled_shape"], spatial_scale=0.5)
    assert (got != case.expected["Y"]).any()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 3e38, -3e38])
def test_a_roi_at_no_finite_place_is_nan_and_the_others_stay_right(bad, backend):
    rois = np.repeat(ROIS[:1].astype(np.float32), 5, 0)
    for column in range(1, 5):
        rois[column, column] = bad
    got = detops.roi_pool(X.astype(np.float32), rois, 2, spatial_scale=2, backend=backend)
    np.testing.assert_array_equal(got[0], detops.roi_pool(X, ROIS[:1], 2, spatial_scale=2)[0])
    assert np.isnan(got[1:]).all()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_coordinates_beyond_any_index(dtype, backend):
    rois = np.array([[0, -1e30, -1e30, 1e30, 1e30], [0, 1e30, 0, 1e30, 2], [0, 1e30, 1e30, -1e30, -1e30]], dtype)
    got = detops.roi_pool(X.astype(dtype), rois, 1, backend=backend)
    np.testing.assert_array_equal(got[:, 1, 0, 0], [23, 0, 0])


COORDINATES = st.one_of(st.integers(-24, 60).map(lambda n: n / 4), st.sampled_from([1000.5, -2000.0]))


@st.composite
def calls(draw):
    """Arguments of a call that raises nothing."""
    shape = draw(st.tuples(st.integers(1, 3), st.integers(0, 40), st.integers(0, 9), st.integers(0, 9)))
    features = np.random.default_rng(draw(st.integers(0, 2**32 - 1))).standard_normal(shape)
    if draw(st.booleans()):
        features[features > 1.5] = np.nan
    count = draw(st.integers(0, 12))
    boxes = draw(hnp.arrays(float, (count, 4), elements=COORDINATES))
    indices = draw(hnp.arrays("uint8", (count,), elements=st.integers(0, shape[0] - 1)))
    options = {"spatial_scale": draw(st.sampled_from([0.5, 1.0])), "batch_indices": indices}
    return features, boxes, draw(st.tuples(st.integers(1, 13), st.integers(1, 13))), options


@pytest.mark.parametrize("backend", CPU)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@given(call=calls())
def test_any_arrays(backend, dtype, call):
    features, boxes, size, options = call
    features = features.astype(dtype)
    got = detops.roi_pool(features, boxes, size, **options, backend=backend)
    np.testing.assert_array_equal(got, oracle("roi_pool")(features, boxes, size, **options))


@pytest.mark.parametrize("channels", [1, 3, 16, 37])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_many_rois_give_what_each_gives_alone(dtype, channels):
    # Alone a roi is pooled from the map, among many from a copy of it; with 256 bins and more, in several tiles.
    rng = np.random.default_rng(5)
    features = rng.standard_normal((2, channels, 23, 31)).astype(dtype)
    corners = rng.uniform(-5, 30, (60, 2, 2))
    rois = np.concatenate([rng.integers(0, 2, (60, 1)), np.sort(corners, 1).reshape(60, 4)], 1).astype(dtype)
    for size in (3, (20, 17), (1, 300)):
        apart = [detops.roi_pool(features, roi[None], size)[0] for roi in rois]
        np.testing.assert_array_equal(detops.roi_pool(features, rois, size), apart)
