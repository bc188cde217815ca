"""decode_bbox and encode_bbox: errors, exactness, the coders of other libraries, compiled code."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import detops
from detops.operators.boxes import CORNER, NO_OFFSET, ONES, ZEROS, _form, _layout, _normalization
from tests.oracle import oracle
from tests.support.comparison import BACKENDS
from tests.support.json_cases import decoding, subcases

_rng = np.random.default_rng(11)


def anchors_of(count, dtype="float64"):
    """Boxes of some size."""
    low = _rng.uniform(0, 600, (count, 2))
    return np.concatenate([low, low + _rng.uniform(4, 200, (count, 2))], 1).astype(dtype)


Z = np.zeros((3, 4))


@pytest.mark.parametrize(("operator", "name"), [("decode_bbox", "box_predictions"), ("encode_bbox", "boxes")])
@pytest.mark.parametrize(
    ("arrays", "options", "error", "message"),
    [
        (
            (Z, Z.astype(bool)),
            {},
            TypeError,
            "anchors: expected dtype float16, float32, float64 or an integer one, got bool",
        ),
        ((Z[0, 0], Z), {}, ValueError, "{}: expected shape (..., 4), got ()"),
        (
            (np.zeros((3, 5)), np.zeros((3, 5))),
            {},
            ValueError,
            "{}: expected shape (..., 4) or (..., 4 * num_classes), got (3, 5)",
        ),
        (
            (np.zeros((3, 8)), np.zeros((3, 8))),
            {},
            ValueError,
            "anchors: expected shape (3, 4), or its last axes, got (3, 8)",
        ),
        ((Z, Z), {"axis": 0}, ValueError, "{}: expected shape with 4 coordinates on axis 0, got (3, 4)"),
        ((Z, Z[:2]), {}, ValueError, "anchors: expected shape (3, 4), or its last axes, got (2, 4)"),
        (
            (np.zeros((2, 3, 4)), np.zeros((2, 1, 4))),
            {},
            ValueError,
            "anchors: expected shape (2, 3, 4), or its last axes, got (2, 1, 4)",
        ),
        ((Z, Z[None]), {}, ValueError, "anchors: expected shape (3, 4), or its last axes, got (1, 3, 4)"),
        ((Z.T, Z[0]), {"axis": 0}, ValueError, "anchors: expected shape (4, 3), got (4,)"),
        ((Z, Z), {"axis": 2}, ValueError, "axis: expected an axis from -2 to 1, got 2"),
        (
            (np.zeros((4, 3, 4)),) * 2,
            {"axis": 1},
            ValueError,
            "{}: expected shape with 4 coordinates on axis 1, got (4, 3, 4)",
        ),
        (
            (Z, Z),
            {"scales": (1, 1, 0, 1)},
            ValueError,
            "scales: expected numbers other than 0, got (1.0, 1.0, 0.0, 1.0)",
        ),
        ((Z, Z), {"scales": (1, 1, 1)}, ValueError, "scales: expected 4 numbers, got 3"),
        ((Z, Z), {"scales": 1}, TypeError, "scales: expected 4 numbers, got 1"),
        ((Z, Z), {"means": (0, 0, math.inf, 0)}, ValueError, "means[2]: expected a finite number, got inf"),
        (
            (Z, Z),
            {"out": np.zeros((3, 4), "f")},
            ValueError,
            "out: expected shape (3, 4) and dtype float64, got (3, 4) and float32",
        ),
    ],
)
def test_errors(operator, name, arrays, options, error, message):
    with pytest.raises(error) as caught:
        getattr(detops, operator)(*arrays, **options)
    assert str(caught.value) == message.format(name)


def test_predictions_are_floats():
    with pytest.raises(TypeError, match=r"^box_predictions: expected dtype float16, float32 or float64, got int64$"):
        detops.decode_bbox(Z.astype(int), Z)


@pytest.mark.parametrize(
    ("clip", "error", "message"),
    [
        (math.nan, ValueError, "decode_clip: expected a finite number, got nan"),
        ("4", TypeError, "decode_clip: expected a real number, got '4'"),
    ],
)
def test_a_wrong_clip(clip, error, message):
    with pytest.raises(error) as caught:
        detops.decode_bbox(Z, Z, decode_clip=clip)
    assert str(caught.value) == message


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "case", [case for case in subcases("decode_variants_not_to_fuse") if case.operator == "DecodeBbox"], ids=str
)
def test_bug_reports(case, backend):
    got = detops.decode_bbox(*case.inputs.values(), **decoding(case), backend=backend)
    np.testing.assert_allclose(got, case.expected["boxes"], rtol=case.tolerance, atol=case.tolerance)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", subcases("encode_degenerate_boxes"), ids=str)
def test_bug_reports_of_encoding(case, backend):
    got, wanted = detops.encode_bbox(*case.inputs.values(), **case.attributes, backend=backend), case.expected["deltas"]
    assert got.dtype == wanted.dtype
    np.testing.assert_allclose(got, wanted, rtol=case.tolerance, atol=case.tolerance)


def _exp(x, backend):
    """The exponential as decode_bbox computes it: half a side of an anchor of length 2, or twice that of length 1."""
    large = x > 80
    t = np.zeros((x.size, 4), x.dtype)
    t[:, 2] = x
    anchors = np.where(large[:, None], 0.5, 1) * np.array([-1, -1, 1, 1])
    with np.errstate(over="ignore"):
        return detops.decode_bbox(t, anchors.astype(x.dtype), backend=backend)[:, 2] * np.where(large, 2, 1).astype(
            x.dtype
        )


def _ulps(got, wanted):
    """How far a result is from a more precise one, in units of its last place; 0 and inf must be equal."""
    rounded = wanted.astype(got.dtype)
    sure = np.isfinite(rounded) & (rounded > 0)
    np.testing.assert_array_equal(got[~sure], rounded[~sure])
    return np.abs(got[sure].astype(wanted.dtype) - wanted[sure]) / np.spacing(rounded[sure])


@pytest.mark.parametrize("shape", [(4,), (3, 4), (0, 4), (2, 0, 4), (2, 3, 4), (4, 4)])
def test_the_usual_layout_is_what_the_other_way_finds(shape):
    """What is answered at once for the last axis, the same axis counted from the front has to work out."""
    assert _layout("boxes", shape, shape, -1) == _layout("boxes", shape, shape, len(shape) - 1)


@pytest.mark.parametrize("backend", ["cython", "numba"])
def test_the_exponential_of_float32(backend):
    patterns = np.arange(0, 2**32, 4093, dtype=np.uint32).view(np.float32)
    x = np.concatenate([patterns[~np.isnan(patterns)], np.linspace(-105, 90, 500_000, dtype=np.float32)])
    with np.errstate(all="ignore"):
        assert _ulps(_exp(x, backend), np.exp(x.astype(np.float64))).max() < 1.1


@pytest.mark.parametrize("backend", ["cython", "numba"])
def test_the_exponential_of_float64(backend):
    x = np.concatenate([np.linspace(-746, 710.5, 20_000), _rng.standard_normal(20_000), _rng.normal(0, 1e-9, 5000)])
    with np.errstate(all="ignore"):
        if np.finfo(np.longdouble).nmant > 60:
            assert _ulps(_exp(x, backend), np.exp(x.astype(np.longdouble))).max() < 1.1
    wanted = np.array([math.exp(value) if value < 709.7 else math.inf for value in x])
    with np.errstate(over="ignore"):
        close = np.isclose(_exp(x, backend), wanted, rtol=4e-16, atol=5e-324)
    assert close[x < 709.7].all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_the_exponential_of_what_is_special(backend, dtype):
    x = np.array([math.nan, math.inf, -math.inf, 0, -0.0, 1e30, -1e30, 5e-324], dtype)
    np.testing.assert_array_equal(_exp(x, backend), [math.nan, math.inf, 0, 1, 1, math.inf, 0, 1])


@pytest.mark.parametrize("backend", ["cython", "numba"])
@pytest.mark.parametrize("operator", ["decode_bbox", "encode_bbox"])
@pytest.mark.parametrize("layout", ["rows", "planes", "classes"])
def test_a_box_does_not_depend_on_its_place(layout, operator, backend):
    # More than fits one block, and large enough to be written past the caches.
    count, dtype = 300_007, "float32"
    anchors = anchors_of(count, dtype)
    subject = _rng.normal(0, 0.5, (count, 4)).astype(dtype) if operator == "decode_bbox" else anchors_of(count, dtype)
    function = getattr(detops, operator)
    if layout == "planes":
        whole = function(subject.T.copy(), anchors.T.copy(), axis=0, backend=backend).T
    elif layout == "classes":
        whole = function(np.tile(subject, 2), anchors, backend=backend)
        assert np.array_equal(whole[:, :4], whole[:, 4:])
        whole = whole[:, :4]
    else:
        whole = function(subject, anchors, backend=backend)
    for first in (0, 1, 255, 256, count - 3):
        alone = function(subject[first : first + 3], anchors[first : first + 3], backend=backend)
        assert np.array_equal(alone, whole[first : first + 3])
    before = detops.get_num_threads()
    try:
        detops.set_num_threads(1)
        assert np.array_equal(function(subject, anchors, backend=backend), whole)
    finally:
        detops.set_num_threads(before)


_numbers = st.floats(-4, 4).filter(lambda value: value == 0 or abs(value) > 1e-3)


@pytest.mark.parametrize("backend", ["cython", "numba"])
@given(
    predictions=st.lists(st.tuples(*[_numbers] * 4), max_size=6),
    scales=st.tuples(*[st.floats(1, 10)] * 4),
    means=st.tuples(*[st.floats(-1, 1)] * 4),
    form=st.sampled_from(["corner", "center"]),
    offset=st.integers(0, 1),
)
def test_encoding_undoes_decoding(backend, predictions, scales, means, form, offset):
    t = np.array(predictions).reshape(-1, 4)
    anchors = anchors_of(len(t))
    options = {"scales": scales, "means": means, "anchor_form": form, "offset": offset, "backend": backend}
    boxes = detops.decode_bbox(t, anchors, **options)
    back = detops.encode_bbox(boxes, anchors, **options)
    # A size is e to the -5 of its anchor's at least, and keeps most of its digits beside coordinates of some thousand.
    np.testing.assert_allclose(back, t, rtol=0, atol=1e-8)


@pytest.mark.parametrize("backend", BACKENDS)
def test_float16_is_computed_in_float32(backend):
    t = _rng.normal(0, 0.5, (50, 4)).astype(np.float16)
    anchors = anchors_of(50).astype(np.float32)
    got = detops.decode_bbox(t, anchors, backend=backend)
    assert got.dtype == np.float16
    with np.errstate(over="ignore"):
        wanted = detops.decode_bbox(t.astype(np.float32), anchors, backend=backend).astype(np.float16)
    np.testing.assert_array_equal(got, wanted)
    # The widest anchor of half precision: its width is beyond it.
    wide = np.array([[-65504.0, 0, 65504, 8]], np.float16)
    np.testing.assert_array_equal(detops.decode_bbox(np.zeros((1, 4), np.float16), wide, backend=backend), wide)


def test_the_coder_of_torchvision():
    """``BoxCoder(weights).decode_single``, whose clip is log(1000 / 16)."""
    t, anchors, weights = _rng.normal(0, 2, (9, 4)), anchors_of(9), (10.0, 10.0, 5.0, 5.0)
    dx, dy, dw, dh = (t / weights).T
    width, height = (anchors[:, 2:] - anchors[:, :2]).T
    x, y = anchors[:, 0] + width / 2 + dx * width, anchors[:, 1] + height / 2 + dy * height
    limit = math.log(1000 / 16)
    w, h = np.exp(np.minimum(dw, limit)) * width, np.exp(np.minimum(dh, limit)) * height
    wanted = np.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], 1)
    np.testing.assert_allclose(detops.decode_bbox(t, anchors, scales=weights, decode_clip=limit), wanted)


def test_the_coder_of_mmdetection():
    """``DeltaXYWHBBoxCoder(target_means, target_stds)``, which bounds sizes from both sides."""
    t, anchors = _rng.normal(0, 2, (9, 4)), anchors_of(9)
    means, stds = np.array([0.1, 0, 0, -0.2]), np.array([0.1, 0.1, 0.2, 0.2])
    limit = abs(math.log(16 / 1000))
    quantities = t * stds + means
    quantities[:, 2:] = quantities[:, 2:].clip(-limit, limit)
    wanted = oracle("decode_bbox")(quantities, anchors)
    got = detops.decode_bbox(t, anchors, scales=1 / stds, means=means, decode_clip=limit, lower_clip=-limit)
    np.testing.assert_allclose(got, wanted)


def test_the_coder_of_maskrcnn_benchmark():
    """``BoxCoder``: the center is half a pixel further, and 1 is taken from the decoded right and bottom."""
    t, anchors, weights = _rng.normal(0, 2, (9, 4)), anchors_of(9), (10.0, 10.0, 5.0, 5.0)
    limit = math.log(1000 / 16)
    size = anchors[:, 2:] - anchors[:, :2] + 1
    center = (t / weights)[:, :2] * size + (anchors[:, :2] + 0.5 * size)
    reach = 0.5 * np.exp(np.minimum((t / weights)[:, 2:], limit)) * size
    wanted = np.concatenate([center - reach, center + reach - 1], 1)
    options = {"scales": weights, "offset": 1}
    np.testing.assert_allclose(detops.decode_bbox(t, anchors, decode_clip=limit, **options), wanted)
    np.testing.assert_allclose(detops.encode_bbox(detops.decode_bbox(t, anchors, **options), anchors, **options), t)


def test_the_coder_of_mmdetection_1():
    """``delta2bbox``, which takes half a pixel from each side."""
    t, anchors = _rng.normal(0, 1, (9, 4)), anchors_of(9)
    size = anchors[:, 2:] - anchors[:, :2] + 1
    center = (anchors[:, :2] + anchors[:, 2:]) * 0.5 + size * t[:, :2]
    size = size * np.exp(t[:, 2:])
    wanted = np.concatenate([center - size * 0.5 + 0.5, center + size * 0.5 - 0.5], 1)
    np.testing.assert_allclose(detops.decode_bbox(t, anchors, offset=1), wanted)


def test_the_coder_of_py_faster_rcnn():
    """``bbox_transform_inv`` takes nothing from the decoded box: its anchors end a pixel later."""
    t, anchors = _rng.normal(0, 1, (9, 4)), anchors_of(9)
    size = anchors[:, 2:] - anchors[:, :2] + 1
    center = t[:, :2] * size + (anchors[:, :2] + 0.5 * size)
    reach = 0.5 * np.exp(t[:, 2:]) * size
    wanted = np.concatenate([center - reach, center + reach], 1)
    np.testing.assert_allclose(detops.decode_bbox(t, anchors + np.array([0, 0, 1, 1])), wanted)


def test_the_coder_of_ssd():
    """``decode(loc, priors, variances)``: priors are centers and sizes."""
    t, priors, variances = _rng.normal(0, 1, (9, 4)), _rng.uniform(0.1, 0.9, (9, 4)), (0.1, 0.2)
    center = priors[:, :2] + t[:, :2] * variances[0] * priors[:, 2:]
    size = priors[:, 2:] * np.exp(t[:, 2:] * variances[1])
    wanted = np.concatenate([center - size / 2, center + size / 2], 1)
    options = {"scales": (10, 10, 5, 5), "anchor_form": "center"}
    np.testing.assert_allclose(detops.decode_bbox(t, priors, **options), wanted)
    np.testing.assert_allclose(detops.encode_bbox(wanted, priors, **options), t)


@pytest.mark.parametrize("backend", ["cython", "numba"])
def test_an_offset_is_added_to_widths(backend):
    """Added to an end it would be lost here, where float32 knows only every fourth number."""
    far = np.array([[0, 0, 0, 8]], np.float32) + np.float32(2**25)
    t = np.array([[0, 0, math.log(9), 0]], np.float32)
    wanted = far + np.float32([[-4, 0, 4, 0]])
    np.testing.assert_array_equal(detops.decode_bbox(t, far, offset=1, backend=backend), wanted)
    np.testing.assert_allclose(detops.encode_bbox(wanted, far, offset=1, backend=backend), t, rtol=1e-6)


@pytest.mark.parametrize("backend", ["cython", "numba"])
def test_no_offset_is_nothing_that_is_added(backend):
    """The side from 0 to -0 has the length -0, and adding 0 would turn it around."""
    anchors, boxes = np.array([[0.0, 0, -0.0, 4]]), np.array([[0.0, 0, 2, 2]])
    with np.errstate(all="ignore"):
        assert detops.encode_bbox(boxes, anchors, backend=backend)[0, 0] == -math.inf


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scales_that_are_powers_of_two_divide_to_the_bit(dtype):
    """They are multiplied by their inverses, which must be the same as to divide; other scales take the other way."""
    rng = np.random.default_rng(0)
    anchors = rng.uniform(0, 50, (1000, 4)).astype(dtype)
    deltas = rng.normal(size=(1000, 4)).astype(dtype)
    deltas[:3] = [[np.finfo(dtype).tiny] * 4, [0.0, -0.0, np.inf, np.nan], [1e-30, -1e30, 3.0, -0.0]]
    for scales in ((2, -0.25, 8, 1), (1, 1, 1, 1), (2**90, 1, 2**-3, 4), (3, 2, 10, 5)):
        divided = (deltas / np.array(scales, dtype)).astype(dtype)
        np.testing.assert_array_equal(
            detops.decode_bbox(deltas, anchors, scales=scales, decode_clip=4),
            detops.decode_bbox(divided, anchors, decode_clip=4),
        )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_usual_normalization_is_what_the_other_way_finds(dtype):
    """What is known of the defaults, equal numbers that are not the defaults have to be checked for."""
    usual = _normalization(ONES, ZEROS, np.dtype(dtype))
    assert usual == _normalization([1, 1, 1, 1], [0, 0, 0, 0], np.dtype(dtype))
    assert {type(number) for numbers in usual for number in numbers} == {float}


def test_the_usual_form_is_what_the_other_way_finds():
    usual = _form(CORNER, NO_OFFSET)
    assert usual == _form("".join(["cor", "ner"]), np.int64(0))
    assert [type(number) for number in usual] == [int, float]
