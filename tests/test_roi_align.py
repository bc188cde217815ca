"""roi_align: errors, bug reports, ONNX's tests, any arrays against the oracle, and what it costs."""

import numpy as np
import onnx
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from onnx.reference import ReferenceEvaluator

import detops
from tests.oracle import oracle
from tests.support import onnx_nodes
from tests.support.comparison import BACKENDS
from tests.support.json_cases import Subcase, subcases
from tests.support.processes import output

CPU = ("cython", "numba")
MODES = ("avg", "max", "corner_max")
X = np.arange(24.0).reshape(1, 2, 3, 4)
ROIS = np.array([[0.0, 0, 0, 3, 2], [0.0, 1, 1, 2, 2]])
AT = np.array([0, 0])


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((X.astype(int), ROIS, 2), {}, TypeError, "features: expected dtype float16, float32 or float64, got int64"),
        (
            (X, ROIS > 0, 2),
            {},
            TypeError,
            "rois: expected dtype float16, float32, float64 or an integer one, got bool",
        ),
        ((X[0], ROIS, 2), {}, ValueError, "features: expected shape (batch, channels, height, width), got (2, 3, 4)"),
        (
            (X, ROIS[:, 1:], 2),
            {},
            ValueError,
            "rois: expected shape (num_rois, 5), got (2, 4); rois of 4 columns need batch_indices, or come as a list "
            "of boxes for each image",
        ),
        ((X, [ROIS[:, 1:]] * 2, 2), {}, ValueError, "rois: expected boxes for each of 1 images, got 2 arrays"),
        ((X, [ROIS], 2), {}, ValueError, "rois[0]: expected shape (num_rois, 4), got (2, 5)"),
        (
            (X, [ROIS > 0], 2),
            {},
            TypeError,
            "rois[0]: expected dtype float16, float32, float64 or an integer one, got bool",
        ),
        (
            (X, [ROIS[:, 1:]], 2),
            {"batch_indices": AT},
            TypeError,
            "batch_indices: expected None beside a list of boxes for each image, got another value",
        ),
        ((X, ROIS[0], 2), {}, ValueError, "rois: expected shape (num_rois, 5), got (5,)"),
        ((X, ROIS, 2), {"batch_indices": AT}, ValueError, "rois: expected shape (num_rois, 4), got (2, 5)"),
        (
            (X, ROIS[:, 1:], 2),
            {"batch_indices": AT[:1]},
            ValueError,
            "batch_indices: expected shape (2,), got (1,)",
        ),
        (
            (X, ROIS[:, 1:], 2),
            {"batch_indices": AT > 0},
            TypeError,
            "batch_indices: expected dtype float16, float32, float64 or an integer one, got bool",
        ),
        (
            (X, ROIS[:, 1:], 2),
            {"batch_indices": AT - 0.5},
            ValueError,
            "batch_indices: expected whole batch indices in [0, 1), got -0.5 in row 0",
        ),
        ((X, ROIS, 0), {}, ValueError, "output_size: expected at least 1, got 0"),
        ((X, ROIS, 2.5), {}, TypeError, "output_size: expected an integer, got 2.5"),
        ((X, ROIS, (1, 2, 3)), {}, ValueError, "output_size: expected an int or (height, width), got (1, 2, 3)"),
        ((X, ROIS, 2), {"spatial_scale": 0}, ValueError, "spatial_scale: expected a number above 0, got 0.0"),
        ((X, ROIS, 2), {"spatial_scale": np.inf}, ValueError, "spatial_scale: expected a finite number, got inf"),
        ((X, ROIS, 2), {"aligned": 2}, TypeError, "aligned: expected a bool, got 2"),
        (
            (X, ROIS, 2),
            {"mode": "mean"},
            ValueError,
            "mode: expected one of 'avg', 'max', 'corner_max', got 'mean'",
        ),
        (
            (X, ROIS, 2),
            {"out": np.empty((2, 2, 2, 3))},
            ValueError,
            "out: expected shape (2, 2, 2, 2) and dtype float64, got (2, 2, 2, 3) and float64",
        ),
    ],
)
def test_errors(arguments, options, error, message):
    with pytest.raises(error) as caught:
        detops.roi_align(*arguments, **options)
    assert str(caught.value) == message


@pytest.mark.parametrize("operator", [detops.roi_align, detops.roi_pool])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("index", [99, 1, -1, 0.5, np.nan, np.inf])
def test_a_batch_index_out_of_range_is_named(index, backend, operator):
    rois = ROIS.copy()
    rois[1, 0] = index
    out = np.full((2, 2, 2, 2), 7.0)
    with pytest.raises(ValueError, match=r"^rois: expected whole batch indices in \[0, 1\), got .* in row 1$"):
        operator(X, rois, 2, backend=backend, out=out)
    assert (out == 7).all()
    if index == int(np.nan_to_num(index, posinf=0.5)):
        with pytest.raises(ValueError, match=r"^batch_indices: expected whole .*, got -?\d+ in row 1$"):
            operator(X, rois[:, 1:], 2, batch_indices=np.array([0, int(index)]), backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("roi", "options"),
    [
        ([0, 0, 1e9, 1e9], {}),
        ([0, 0, 1e30, 2], {}),
        ([-1e30, 0, 0, 2], {}),
        ([0, 0, 4097, 4096], {}),
        ([0, 0, 3, 2], {"sampling_ratio": 2049}),
        ([0, 0, 3, 2], {"sampling_ratio": 2**70}),
        ([0, 0, 3, 2], {"sampling_ratio": 2**31, "aligned": False}),
    ],
)
def test_an_absurd_grid_is_an_error(roi, options, backend):
    rois = np.array([ROIS[0], [0, *roi]])
    row = 0 if "sampling_ratio" in options else 1
    message = rf"^rois: expected at most {2**24} points to sample in a roi, got more in row {row}$"
    out = np.full((2, 2, 2, 2), 7.0)
    with pytest.raises(ValueError, match=message):
        detops.roi_align(X, rois, 2, backend=backend, out=out, **options)
    assert (out == 7).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_absurd_grid_of_no_channels(backend):
    rois = np.array([[0.0, 0, 0, 4, 4]])
    with pytest.raises(ValueError, match=r"^rois: expected at most \d+ points .* in row 0$"):
        # The number of points is 0 in 64 bits.
        detops.roi_align(X[:, :0], rois, (2**59, 1), backend=backend, sampling_ratio=32)


def test_the_largest_grid_is_no_error():
    assert detops.roi_align(X, [[0.0, 0, 0, 4096, 4096]], 2).shape == (1, 2, 2, 2)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 3e38, -3e38])
def test_a_roi_at_no_finite_place_is_nan_and_the_others_stay_right(bad, mode, backend):
    features = X.astype(np.float32)
    rois = np.repeat(ROIS[:1].astype(np.float32), 5, 0)
    options = {"sampling_ratio": 2, "mode": mode, "spatial_scale": 2, "backend": backend}
    wanted = detops.roi_align(features, rois[:1], 2, **options)[0]
    for column in range(1, 5):
        rois[column, column] = bad
    got = detops.roi_align(features, rois, 2, **options)
    np.testing.assert_array_equal(got[0], wanted)
    assert np.isnan(got[1:]).all()


def align(case: Subcase, backend: str) -> np.ndarray:
    options = dict(case.attributes)
    size = options.pop("output_height"), options.pop("output_width")
    mode = options.pop("mode")
    if case.operator == "RoiAlign":
        mode = {"avg": "avg", "max": "corner_max"}[mode]
        options["aligned"] = options.pop("coordinate_transformation_mode") == "half_pixel"
    features, rois, *rest = case.inputs.values()
    indices = rest[0] if rest else None
    return detops.roi_align(features, rois, size, mode=mode, batch_indices=indices, backend=backend, **options)


FILES = [
    f"roialign_{name}"
    for name in (
        "aligned_half_pixel",
        "batch_index_range",
        "float16",
        "max_mode",
        "sampling_ratio_negative",
    )
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "case",
    [case for case in subcases(*FILES, "roialign_empty_rois") if case.operator != "MaxRoiPool"],
    ids=str,
)
def test_bug_reports(case: Subcase, backend: str) -> None:
    if case.raises:
        with pytest.raises(ValueError, match="batch indices"):
            align(case, backend)
        return
    got, (wanted,) = align(case, backend), case.expected.values()
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_allclose(got, wanted, rtol=case.tolerance, atol=case.tolerance)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_node_tests_of_onnx(backend):
    cases = onnx_nodes.node_cases("RoiAlign")
    assert len(cases) >= 3
    for case in cases:
        options = onnx_nodes.attributes(case)
        size = options.pop("output_height"), options.pop("output_width")
        options["mode"] = {"avg": "avg", "max": "corner_max"}[options.get("mode", "avg")]
        options["aligned"] = options.pop("coordinate_transformation_mode", "half_pixel") == "half_pixel"
        for (features, rois, indices), (wanted,) in onnx_nodes.arrays(case):
            got = detops.roi_align(features, rois, size, batch_indices=indices, backend=backend, **options)
            np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-3, err_msg=case.name)


# Eighths, so that every type places bins and samples alike where a roi is divided by a power of two.
EIGHTHS = st.integers(-40, 120).map(lambda n: n / 8)


@st.composite
def calls(draw):
    """Arguments of a call that raises nothing."""
    shape = draw(st.tuples(st.integers(1, 3), st.integers(0, 40), st.integers(1, 9), st.integers(1, 9)))
    seed = draw(st.integers(0, 2**32 - 1))
    features = np.random.default_rng(seed).integers(-64, 65, shape) / 8
    count = draw(st.integers(0, 12))
    boxes = draw(hnp.arrays(float, (count, 4), elements=EIGHTHS))
    indices = draw(hnp.arrays("int64", (count,), elements=st.integers(0, shape[0] - 1)))
    return (
        features,
        boxes,
        draw(st.tuples(st.sampled_from([1, 2, 4]), st.sampled_from([1, 2, 4]))),
        {
            "sampling_ratio": draw(st.sampled_from([0, 0, -1, 1, 2, 4])),
            "spatial_scale": draw(st.sampled_from([0.5, 1.0])),
            "aligned": draw(st.booleans()),
            "mode": draw(st.sampled_from(MODES)),
            "batch_indices": indices,
        },
    )


@pytest.mark.parametrize("backend", CPU)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@given(call=calls())
def test_any_arrays(backend, dtype, call):
    features, boxes, size, options = call
    got = detops.roi_align(features.astype(dtype), boxes.astype(dtype), size, **options, backend=backend)
    wanted = oracle("roi_align")(features, boxes, size, **options)
    tolerance = {"float32": 1e-5, "float64": 1e-12}[dtype]
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=10 * tolerance)


def onnx_reference(features, boxes, indices, **attributes):
    """RoiAlign of ONNX's own evaluator."""
    inputs = {"features": features, "boxes": boxes, "indices": indices}
    values = [
        onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in inputs.items()
    ]
    node = onnx.helper.make_node("RoiAlign", list(inputs), ["pooled"], **attributes)
    graph = onnx.helper.make_graph([node], "pooling", values, [onnx.ValueInfoProto(name="pooled")])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 16)])
    return ReferenceEvaluator(model).run(None, inputs)[0]


@given(call=calls())
def test_any_arrays_against_onnx(call):
    features, boxes, (height, width), options = call
    assume(boxes.size and features.size)
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:]) + 1
    boxes, indices = np.concatenate([low, high], 1), options.pop("batch_indices")
    mode, aligned = options.pop("mode"), options.pop("aligned")
    wanted = onnx_reference(
        features,
        boxes,
        indices,
        mode="avg" if mode == "avg" else "max",
        coordinate_transformation_mode="half_pixel" if aligned else "output_half_pixel",
        output_height=height,
        output_width=width,
        **options,
    )
    got = detops.roi_align(
        features,
        boxes,
        (height, width),
        batch_indices=indices,
        aligned=aligned,
        mode="avg" if mode == "avg" else "corner_max",
        **options,
    )
    np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("channels", [1, 3, 16, 37])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_many_rois_give_what_each_gives_alone(dtype, channels, mode):
    # Alone a roi is pooled from the map, among many from a copy of it; with 256 bins and more, in several tiles.
    rng = np.random.default_rng(5)
    features = rng.standard_normal((2, channels, 23, 31)).astype(dtype)
    corners = rng.uniform(-5, 30, (60, 2, 2))
    corners[:50].sort(1)
    rois = np.concatenate([rng.integers(0, 2, (60, 1)), corners.reshape(60, 4)], 1).astype(dtype)
    for ratio, size in ((0, 3), (2, (20, 17)), (3, (1, 300))):
        options = {"sampling_ratio": ratio, "mode": mode, "output_size": size}
        together = detops.roi_align(features, rois, **options)
        apart = [detops.roi_align(features, roi[None], **options)[0] for roi in rois]
        np.testing.assert_array_equal(together, apart)


@pytest.mark.parametrize("backend", CPU)
@pytest.mark.parametrize("mode", MODES)
def test_rois_far_away_take_no_more_room_than_others(mode, backend):
    # At a distance of 1e8 float32 places samples 8 apart: on one element of the map, over and over, or beside it.
    rng = np.random.default_rng(6)
    features = rng.standard_normal((1, 17, 40, 40)).astype(np.float32)
    far = np.float32(10) ** rng.uniform(2, 9, (200, 4)).astype(np.float32)
    rois = np.concatenate([np.zeros((200, 1)), -far[:, :2], far[:, 2:]], 1).astype(np.float32)
    rois[:100, 3:] = rng.uniform(0, 40, (100, 2))
    got = detops.roi_align(features, rois, 64, sampling_ratio=3, mode=mode, backend=backend)
    assert np.isfinite(got).all()
    assert np.abs(got).max() <= np.abs(features).max() * (1 + 1e-5)


PEAK = """
import resource
import numpy as np
import detops
rng = np.random.default_rng(0)
features = np.ones((1, 64, 512, 512), np.float32)
corners = np.sort(rng.uniform(0, 512, (400, 2, 2)), 1).reshape(400, 4)
rois = np.concatenate([np.zeros((400, 1)), corners], 1).astype(np.float32)
detops.roi_align(features[:, :, :8, :8].copy(), rois, 7)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
detops.roi_align(features, rois, 7)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / features.nbytes)
"""


def test_extra_memory_is_one_copy_of_the_map_and_little_more():
    pytest.importorskip("resource", reason="the peak of memory is known on Unix alone")
    for threads in ("2", "16"):
        assert float(output(PEAK, DETOPS_NUM_THREADS=threads)) < 1.2
