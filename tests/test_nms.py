"""The four operators of non-maximum suppression, beyond the cases that all operators go through."""

import hashlib
import itertools
import re
from typing import Any
from unittest import mock

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx.backend.test.case.node import nonmaxsuppression

import detops
from detops._core.iou import core_margin
from detops._cython.cpu import instruction_sets
from detops.numba import scalar
from tests.oracle import nms as oracle
from tests.support.comparison import BACKENDS
from tests.support.json_cases import Subcase, subcases
from tests.support.processes import output
from tests.test_ptx import compile_all

B = np.array([[0.0, 0.0, 10.0, 10.0], [1.0, 0.0, 11.0, 10.0], [20.0, 0.0, 30.0, 10.0]])
S = np.array([0.8, 0.9, 0.7])
L = np.array([0, 0, 1])


def every_pair(boxes, scores, threshold, offset=0):
    """Greedy suppression in the type of the boxes, that compares every pair: what a grid must not change."""
    order = [i for i in np.lexsort((np.arange(len(scores)), -scores)) if not np.isnan(scores[i])]
    low, high, added = boxes[:, :2], boxes[:, 2:], boxes.dtype.type(offset)
    with np.errstate(all="ignore"):
        sides = high - low + added
        areas = sides[:, 0] * sides[:, 1]
        areas[~((sides > 0).all(1) & np.isfinite(areas))] = 0
        kept, compared, count = [], np.empty(len(scores), int), 0
        for i in order:
            if areas[i] > 0:
                rivals = compared[:count]
                shared = np.minimum(high[i], high[rivals]) - np.maximum(low[i], low[rivals]) + added
                shared = np.maximum(shared, 0).prod(1)
                if (shared / (areas[i] + areas[rivals] - shared) > boxes.dtype.type(threshold)).any():
                    continue
                compared[count] = i
                count += 1
            kept.append(i)
    return np.array(kept, np.int64)


# Arguments


ERRORS = [
    (lambda: detops.nms(B[:, :3], S, 0.5), ValueError, "boxes: expected shape (num_boxes, 4), got (3, 3)"),
    (lambda: detops.nms(B[0], S, 0.5), ValueError, "boxes: expected shape (num_boxes, 4), got (4,)"),
    (lambda: detops.nms(B, S[:2], 0.5), ValueError, "scores: expected shape (3,), got (2,)"),
    (lambda: detops.nms(B, S, -0.1), ValueError, "iou_threshold: expected a number from 0 to 1, got -0.1"),
    (lambda: detops.nms(B, S, 1.5), ValueError, "iou_threshold: expected a number from 0 to 1, got 1.5"),
    (lambda: detops.nms(B, S, np.nan), ValueError, "iou_threshold: expected a finite number, got nan"),
    (lambda: detops.nms(B, S, "0.5"), TypeError, "iou_threshold: expected a real number, got '0.5'"),
    (
        lambda: detops.nms(B, S, 0.5, score_threshold=np.nan),
        ValueError,
        "score_threshold: expected a number, got nan",
    ),
    (lambda: detops.nms(B, S, 0.5, offset=2), ValueError, "offset: expected at most 1, got 2"),
    (lambda: detops.nms(B, S, 0.5, offset=0.5), TypeError, "offset: expected an integer, got 0.5"),
    (
        lambda: detops.nms(B, S, 0.5, max_output_boxes=-1),
        ValueError,
        "max_output_boxes: expected at least 0, got -1",
    ),
    (
        lambda: detops.nms(B, S, 0.5, max_output_boxes=2.0),
        TypeError,
        "max_output_boxes: expected an integer, got 2.0",
    ),
    (lambda: detops.nms(B, S, 0.5, pre_nms_top_k=-1), ValueError, "pre_nms_top_k: expected at least 0, got -1"),
    (
        lambda: detops.non_max_suppression(B[None], S[None, None], pre_nms_top_k=2.0),
        TypeError,
        "pre_nms_top_k: expected an integer, got 2.0",
    ),
    (
        lambda: detops.non_max_suppression(B[None], S[None, None], max_output_boxes_total=-1),
        ValueError,
        "max_output_boxes_total: expected at least 0, got -1",
    ),
    (
        lambda: detops.non_max_suppression_padded(B[None], S[None, None], max_output_boxes_total="9"),
        TypeError,
        "max_output_boxes_total: expected an integer, got '9'",
    ),
    (
        lambda: detops.nms(B, S, 0.5, score_threshold=[0.5]),
        TypeError,
        "score_threshold: expected a real number, got [0.5]",
    ),
    (
        lambda: detops.non_max_suppression(B[None], S[None, None], score_threshold=(0.5, 0.5)),
        ValueError,
        "score_threshold: expected 1 numbers, got 2",
    ),
    (
        lambda: detops.non_max_suppression_padded(B[None], S[None, None], score_threshold=[np.nan]),
        ValueError,
        "score_threshold[0]: expected a number, got nan",
    ),
    (
        lambda: detops.non_max_suppression(B[None], S[None, None], score_threshold={0: 0.5}),
        TypeError,
        "score_threshold: expected a real number, got {0: 0.5}",
    ),
    (
        lambda: detops.batched_nms(B, S, L, 0.5, score_threshold=[0.5, None]),
        TypeError,
        "score_threshold[1]: expected a real number, got None",
    ),
    (
        lambda: detops.batched_nms(B, S, L - 1, 0.5, score_threshold=[0.5, 0.5]),
        ValueError,
        "labels: expected labels from 0 to 1, one for each score_threshold, got labels from -1 to 0",
    ),
    (
        lambda: detops.batched_nms(B, S, np.uint64(2**63) + L.astype(np.uint64), 0.5, score_threshold=[0.5]),
        ValueError,
        "labels: expected labels from 0 to 0, one for each score_threshold, "
        "got labels from 9223372036854775808 to 9223372036854775809",
    ),
    (
        lambda: detops.nms(B > 0, S, 0.5),
        TypeError,
        "boxes: expected dtype float16, float32, float64 or an integer one, got bool",
    ),
    (
        lambda: detops.nms(B, S.astype(np.complex64), 0.5),
        TypeError,
        "scores: expected dtype float16, float32 or float64, got complex64",
    ),
    (
        lambda: detops.batched_nms(B, S, [0, 1.5, np.nan], 0.5),
        ValueError,
        "labels: expected integers of 64 bits, got 1.5 in row 1",
    ),
    (
        lambda: detops.batched_nms(B, S, [0, 1, 2.0**63], 0.5),
        ValueError,
        "labels: expected integers of 64 bits, got 9.223372036854776e+18 in row 2",
    ),
    (
        lambda: detops.batched_nms(B, S, L > 0, 0.5),
        TypeError,
        "labels: expected dtype float16, float32, float64 or an integer one, got bool",
    ),
    (lambda: detops.batched_nms(B, S, L[:2], 0.5), ValueError, "labels: expected shape (3,), got (2,)"),
    (
        lambda: detops.nms(B, S, 0.5, out=np.empty(3, np.int64)),
        ValueError,
        "out: expected shape (2,) and dtype int64, got (3,) and int64",
    ),
    (
        lambda: detops.nms(B, S, 0.5, out=np.empty(2, np.int32)),
        ValueError,
        "out: expected shape (2,) and dtype int64, got (2,) and int32",
    ),
    (
        lambda: detops.non_max_suppression(B, S[None, None]),
        ValueError,
        "boxes: expected shape (num_batches, num_boxes, 4), got (3, 4)",
    ),
    (
        lambda: detops.non_max_suppression(B[None], S[None]),
        ValueError,
        "scores: expected shape (1, num_classes, 3), got (1, 3)",
    ),
    (
        lambda: detops.non_max_suppression(B[None], S[None, None], -1),
        ValueError,
        "max_output_boxes_per_class: expected at least 0, got -1",
    ),
    (
        lambda: detops.non_max_suppression(B[None], S[None, None], center_point_box=2),
        TypeError,
        "center_point_box: expected a bool, got 2",
    ),
    (
        lambda: detops.non_max_suppression_padded(B[None], S[None, None], score_threshold=None),
        TypeError,
        "score_threshold: expected a real number, got None",
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), ERRORS, ids=[message for *_, message in ERRORS])
def test_wrong_arguments(call, kind, message) -> None:
    with pytest.raises(kind, match=f"^{re.escape(message)}$"):
        call()


@pytest.mark.parametrize("backend", BACKENDS)
def test_scores_of_a_wider_type_keep_their_order(backend: str) -> None:
    scores = np.array([1.0, 1.0 + 2.0**-40, 1.0 - 2.0**-40])
    found = detops.nms(B.astype(np.float32)[[0, 2, 2]] + np.float32(1), scores, 0.5, backend=backend)
    assert found.tolist() == [1, 0]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_thresholds_are_rounded_to_the_type_of_the_data(backend: str, dtype: str) -> None:
    boxes = np.array([[0, 0, 10, 1], [0, 0, 3, 1]], dtype)
    # 3 / 10 is not above 0.3 in either type; float32's 0.3 is above float64's.
    assert len(detops.nms(boxes, np.array([2, 1], dtype), 0.3, backend=backend)) == 2
    scores = np.full(2, 0.3, dtype)
    above = {"float16": 2, "float32": 0, "float64": 0}[dtype]
    assert len(detops.nms(boxes, scores, 0.5, score_threshold=0.3, backend=backend)) == above
    assert len(detops.nms(boxes, scores, 0.5, score_threshold=1e300, backend=backend)) == 0
    assert len(detops.nms(boxes, scores, 0.5, score_threshold=-np.inf, backend=backend)) == 2


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("threshold", [0.1, 0.2, 0.3, 0.4, 0.6, 0.8])
def test_an_iou_that_is_the_threshold_in_float32(backend: str, threshold: float) -> None:
    """The page says how to get what torchvision on the CPU decides: float32's IoU against float64's threshold."""
    boxes = np.array([[0, 0, 10, 1], [0, 0, round(10 * threshold), 1]], np.float32)
    scores = np.array([2, 1], np.float32)
    ratio = boxes[1, 2] / boxes[0, 2]
    assert ratio == np.float32(threshold)
    assert float(ratio) > threshold
    assert detops.nms(boxes, scores, threshold, backend=backend).tolist() == [0, 1]
    below = np.nextafter(np.float32(threshold), np.float32(0))
    assert detops.nms(boxes, scores, below, backend=backend).tolist() == [0]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("side", [1e-24, 1e20])
def test_areas_that_float32_cannot_hold(backend: str, side: float) -> None:
    boxes, scores = side * np.array([[0.0, 0.0, 1.0, 1.0]] * 2), np.array([2.0, 1.0])
    assert detops.nms(boxes.astype(np.float32), scores.astype(np.float32), 0.5, backend=backend).tolist() == [0, 1]
    assert detops.nms(boxes, scores, 0.5, backend=backend).tolist() == [0]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("operator", ["non_max_suppression", "non_max_suppression_padded"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_thresholds_of_classes_are_rounded_as_one_is(backend: str, operator: str, dtype: str) -> None:
    def boxes_of(c: int, scores: np.ndarray, threshold: Any) -> list[int]:
        boxes = np.zeros((1, 2, 4), dtype)
        rows = getattr(detops, operator)(boxes, scores, 2, 0.5, threshold, backend=backend)
        return rows[rows[:, 1] == c, 2].tolist()

    scores = np.array([[[0.3, 0.0]] * 3], dtype)
    for thresholds in ([0.3, 1e300, -1e300], np.array([0.3, -np.inf, 1e-60]), (0, np.float32(0.3), np.inf)):
        for c, threshold in enumerate(thresholds):
            assert boxes_of(c, scores, thresholds) == boxes_of(0, scores[:, :1], threshold)


def test_scalars_of_numpy_are_numbers() -> None:
    found = detops.nms(B, S, np.float32(0.5), max_output_boxes=np.array(1), offset=np.int8(0))
    assert found.tolist() == [1]


# Other implementations


def call_of(case: Subcase) -> tuple[str, dict]:
    """The public function and the arguments that an operator of ONNX or MMCV means."""
    numbers = {name: value for name, value in case.inputs.items() if value.size == 1 and value.ndim < 2}
    arguments = {name: value for name, value in case.inputs.items() if name not in numbers}
    options = {**case.attributes, **{name: value.item() for name, value in numbers.items()}}
    padded = case.operator == "MMCVNonMaxSuppression"
    return "non_max_suppression_padded" if padded else "non_max_suppression", {**arguments, **options}


REPORTED = subcases(
    "nms_center_point_box",
    "nms_float16",
    "nms_iou_threshold_extremes",
    "nms_limit_beyond_int32",
    "nms_max_output_zero",
    "nms_pixel_rule_in_other_units",
    "nms_score_threshold",
    "nms_zero_area",
)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", REPORTED, ids=str)
def test_reported_cases(case: Subcase, backend: str) -> None:
    function, arguments = call_of(case)
    (expected,) = case.expected.values()
    found = getattr(detops, function)(**arguments, backend=backend)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def node_tests() -> list[dict]:
    """What ONNX's own tests of the operator hand to ``expect``."""
    found: list[dict] = []
    with mock.patch.object(nonmaxsuppression, "expect", lambda node, **rest: found.append({"node": node, **rest})):
        for name, export in vars(nonmaxsuppression.NonMaxSuppression).items():
            if name.startswith("export"):
                export.__func__()
    return found


NODES = node_tests()


def test_onnx_has_node_tests() -> None:
    assert len(NODES) >= 9


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", NODES, ids=lambda case: case["name"])
def test_onnx_node_tests(case: dict, backend: str) -> None:
    names = ["boxes", "scores", "max_output_boxes_per_class", "iou_threshold", "score_threshold"]
    assert list(case["node"].input) == names[: len(case["inputs"])]
    boxes, scores, *numbers = case["inputs"]
    options = {attribute.name: attribute.i for attribute in case["node"].attribute}
    numbers = [number.item() for number in numbers]
    found = detops.non_max_suppression(boxes, scores, *numbers, **options, backend=backend)
    np.testing.assert_array_equal(found, case["outputs"][0])


def onnx_model(center: bool):
    from onnx import TensorProto, helper

    names = ["boxes", "scores", "limit", "iou", "score"]
    node = helper.make_node("NonMaxSuppression", names, ["selected"], center_point_box=int(center))
    types = [TensorProto.FLOAT, TensorProto.FLOAT, TensorProto.INT64, TensorProto.FLOAT, TensorProto.FLOAT]
    shapes = [["b", "n", 4], ["b", "c", "n"], [1], [1], [1]]
    inputs = [helper.make_tensor_value_info(*each) for each in zip(names, types, shapes, strict=True)]
    outputs = [helper.make_tensor_value_info("selected", TensorProto.INT64, ["k", 3])]
    graph = helper.make_graph([node], "nms", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def ask(boxes, scores, limit, iou, score):
    """The inputs of onnx_model."""
    return {
        "boxes": boxes,
        "scores": scores,
        "limit": np.array([limit]),
        "iou": np.array([iou], np.float32),
        "score": np.array([score], np.float32),
    }


@given(
    seed=st.integers(0, 2**32), center=st.booleans(), limit=st.integers(1, 12), iou=st.sampled_from([0, 0.3, 0.5, 1])
)
def test_onnx_reference(seed: int, center: bool, limit: int, iou: float) -> None:
    from onnx.reference import ReferenceEvaluator

    rng = np.random.default_rng(seed)
    boxes = rng.integers(-8, 9, (2, 9, 4)).astype(np.float32)
    scores = (rng.integers(0, 8, (2, 2, 9)) / 8).astype(np.float32)
    (expected,) = ReferenceEvaluator(onnx_model(center)).run(None, ask(boxes, scores, limit, iou, 0.25))
    found = detops.non_max_suppression(boxes, scores, limit, iou, 0.25, center_point_box=center)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_onnxruntime_decides_alike(seed: int, center: bool) -> None:
    """Boxes with coordinates that have all their bits: IoUs are rounded as onnxruntime rounds them."""
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(onnx_model(center).SerializeToString(), providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(seed)
    boxes = np.concatenate([rng.uniform(0, 90, (2, 700, 2)), rng.uniform(1, 60, (2, 700, 2))], -1)
    if not center:
        boxes[..., 2:] += boxes[..., :2]
    boxes, scores = boxes.astype(np.float32), rng.integers(0, 300, (2, 3, 700)).astype(np.float32)
    for limit, iou, score in ((10**6, 0.5, -1), (10**6, 0.1, 20), (50, 0.9, 20), (200, 0, 0)):
        (expected,) = session.run(None, ask(boxes, scores, limit, iou, score))
        found = detops.non_max_suppression(boxes, scores, limit, iou, score, center_point_box=center)
        np.testing.assert_array_equal(found, expected)


# Every pair against the grid (of which there is none below 128 boxes)


ODD = [0.0, -0.0, 1.0, np.nan, np.inf, -np.inf, 1e-30, 1e20, -3e38, 1e-44]


@st.composite
def few_boxes(draw, dtype=np.float32):
    """Boxes of plain and of odd numbers, and scores."""
    count = draw(st.integers(0, 24))
    number = st.one_of(st.integers(-4, 4).map(float), st.sampled_from(ODD), st.floats(-9, 9, width=32))
    boxes = draw(st.lists(number, min_size=4 * count, max_size=4 * count))
    scores = draw(st.lists(st.one_of(st.sampled_from(ODD), st.floats(0, 1)), min_size=count, max_size=count))
    with np.errstate(over="ignore"):
        return np.array(boxes, dtype).reshape(count, 4), np.array(scores).astype(dtype)


THRESHOLDS = st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.5, 0.7, 1.0])


@given(few_boxes(), THRESHOLDS, st.sampled_from([0, 1]))
def test_every_pair_is_the_oracle(pair, threshold: float, offset: int) -> None:
    """The fast reference of the tests below says what the oracle says, in the type of the boxes."""
    boxes, scores = pair
    with np.errstate(all="ignore"):
        wanted = oracle.greedy(boxes, scores, boxes.dtype.type(threshold), offset=offset)
    assert every_pair(boxes, scores, threshold, offset).tolist() == wanted


@pytest.mark.parametrize("backend", ["cython", "numba"])
@given(few_boxes(), THRESHOLDS, st.sampled_from([0, 1]), st.lists(st.integers(0, 2), min_size=24, max_size=24))
def test_odd_numbers(backend: str, pair, threshold: float, offset: int, labels: list[int]) -> None:
    boxes, scores = pair
    found = detops.nms(boxes, scores, threshold, offset=offset, backend=backend)
    np.testing.assert_array_equal(found, every_pair(boxes, scores, threshold, offset))
    labels = np.array(labels[: len(scores)], int)
    with np.errstate(all="ignore"):
        wanted = oracle.greedy(boxes, scores, boxes.dtype.type(threshold), offset=offset, labels=labels)
    assert detops.batched_nms(boxes, scores, labels, threshold, offset=offset, backend=backend).tolist() == wanted


def _uniform(rng, count):
    low = rng.uniform(0, 4 * np.sqrt(count), (count, 2))
    return np.concatenate([low, low + rng.uniform(0, 12, (count, 2))], 1)


def _halves(rng, count):
    low = rng.integers(0, 2 * np.sqrt(count), (count, 2)) / 2
    return np.concatenate([low, low + rng.integers(0, 9, (count, 2)) / 2], 1)


def _one_place(rng, count):
    return np.array([0, 0, 10, 10]) + rng.uniform(-1, 1, (count, 4))


def _nested(rng, count):
    reach = 10.0 ** rng.uniform(-4, 4, (count, 1))
    return np.concatenate([-reach, -reach, reach, reach], 1) + rng.uniform(-1e-3, 1e-3, (count, 4))


def _strip(rng, count):
    low = np.stack([rng.uniform(0, 8 * count, count), rng.uniform(0, 1, count)], 1)
    return np.concatenate([low, low + rng.uniform(1, 20, (count, 2))], 1)


def _needles(rng, count):
    low = rng.uniform(-20, 20, (count, 2))
    sides = np.where(rng.random((count, 1)) < 0.5, [[0.01, 300.0]], [[300.0, 0.01]])
    return np.concatenate([low, low + sides * rng.uniform(1, 2, (count, 2))], 1)


def _far(rng, count):
    # Neighboring float32 numbers are 2 apart here.
    return _uniform(rng, count) * 4 + 3e7


def _pixels(rng, count):
    # Corners of whole pixels, some of one pixel and some of none; from 2**24 on float32 knows only every second number.
    low = rng.integers(0, 4 + 3 * np.sqrt(count), (count, 2)) + rng.choice([2**24 - 20, 2**24, 2**26])
    return np.concatenate([low, low + rng.integers(-2, 9, (count, 2))], 1).astype(np.float64)


def _slices(rng, count):
    # A box, then the end of it that has about the threshold's part of its area: the least that can suppress.
    boxes = _uniform(rng, count)
    part = rng.choice([0.05, 0.3, 0.5, 0.9], count // 2) * rng.uniform(0.9, 1.1, count // 2)
    whole, cut = boxes[: 2 * (count // 2) : 2], boxes[1::2]
    cut[:] = whole
    axis, rows = rng.integers(0, 2, count // 2), np.arange(count // 2)
    ends = np.where(rng.random(count // 2) < 0.5, whole[rows, axis], whole[rows, axis + 2])
    low, high = whole[rows, axis], whole[rows, axis + 2]
    cut[rows, axis] = np.where(ends == low, low, high - part * (high - low))
    cut[rows, axis + 2] = np.where(ends == low, low + part * (high - low), high)
    return boxes


def _tiny(rng, count):
    # Areas so small that float32 loses their digits, or all of them.
    return _slices(rng, count) * 2.0 ** -rng.integers(70, 78)


def _huge(rng, count):
    return _uniform(rng, count) * 1e17


def _giant_among_small(rng, count):
    boxes = _uniform(rng, count)
    boxes[:: count // 7] = [-1e4, -1e4, 1e4, 1e4]
    boxes[1] = [-1e30, -1e-6, 1e30, 1e-6]
    return boxes


def _outliers(rng, count):
    boxes = _uniform(rng, count)
    boxes[: count // 8] *= 10.0 ** rng.uniform(-30, 18, (count // 8, 1))
    boxes[count // 8 : count // 6] = rng.choice(ODD, (count // 6 - count // 8, 4))
    return boxes


def _turned(rng, count):
    boxes = _uniform(rng, count)
    return np.where(rng.random((count, 1)) < 0.8, boxes, boxes[:, [2, 3, 0, 1]])


def _around_zero(rng, count):
    return _uniform(rng, count) - 2 * np.sqrt(count)


PLACES = [
    _uniform,
    _halves,
    _one_place,
    _nested,
    _strip,
    _needles,
    _slices,
    _far,
    _pixels,
    _tiny,
    _huge,
    _giant_among_small,
    _outliers,
    _turned,
    _around_zero,
]


def leading(scores, count):
    """The `count` boxes of highest score, in order of index."""
    return np.sort(np.lexsort((np.arange(len(scores)), -scores))[:count])


def scene(place, seed, count, dtype):
    rng = np.random.default_rng([seed, count, PLACES.index(place)])
    scores = rng.random(count) if seed % 2 else rng.integers(-3, 12, count) / 4
    with np.errstate(over="ignore"):
        return place(rng, count).astype(dtype), scores.astype(dtype)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__.strip("_"))
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_grid_changes_nothing(place, dtype: str) -> None:
    for seed, count in ((0, 127), (1, 128), (2, 200), (3, 700)):
        boxes, scores = scene(place, seed, count, dtype)
        for threshold in (0, 0.05, 0.3, 0.5, 0.9):
            wanted = every_pair(boxes, scores, threshold)
            found = detops.nms(boxes, scores, threshold)
            np.testing.assert_array_equal(found, wanted, err_msg=f"{seed} {count} {threshold}")
            few = detops.nms(boxes, scores, threshold, max_output_boxes=7)
            np.testing.assert_array_equal(few, wanted[:7], err_msg=f"{seed} {count} {threshold}")
            first = leading(scores, 2 * count // 3)
            wanted = first[every_pair(boxes[first], scores[first], threshold)]
            found = detops.nms(boxes, scores, threshold, pre_nms_top_k=len(first))
            np.testing.assert_array_equal(found, wanted, err_msg=f"{seed} {count} {threshold}, the first")
            wanted = every_pair(boxes, scores, threshold, 1)
            found = detops.nms(boxes, scores, threshold, offset=1)
            np.testing.assert_array_equal(found, wanted, err_msg=f"{seed} {count} {threshold}, offset")


@given(
    st.integers(0, 2**32),
    st.integers(120, 300),
    st.sampled_from(PLACES),
    st.floats(0, 1),
    st.sampled_from(["float32", "float64"]),
    st.sampled_from([0, 1]),
)
def test_the_grid_changes_nothing_anywhere(seed, count, place, threshold, dtype, offset) -> None:
    boxes, scores = scene(place, seed, count, dtype)
    found = detops.nms(boxes, scores, threshold, offset=offset)
    np.testing.assert_array_equal(found, every_pair(boxes, scores, threshold, offset))


def of_heads(boxes, scores, threshold, above, top_k, limit, total):
    """What non_max_suppression selects of one batch, with all that detector heads add."""
    boxes = np.sort(boxes.reshape(-1, 2, 2), axis=1).reshape(-1, 4)  # either diagonal is a box
    rows = []
    for c, of_class in enumerate(scores):
        passing = np.flatnonzero(of_class > above[c])
        first = passing[leading(of_class[passing], top_k)]
        rows += [(0, c, box) for box in first[every_pair(boxes[first], of_class[first], threshold)][:limit]]
    best = leading(np.array([scores[c, box] for _, c, box in rows]), total)
    return np.array(rows, np.int64).reshape(-1, 3)[best]


@pytest.mark.parametrize("backend", ["cython", "numba"])
@pytest.mark.parametrize("place", [_halves, _uniform, _nested, _slices], ids=lambda place: place.__name__.strip("_"))
def test_what_heads_add_where_there_is_a_grid(place, backend: str) -> None:
    boxes, _ = scene(place, 0, 300, "float32")
    scores = np.stack([scene(place, seed, 300, "float32")[1] for seed in range(3)])
    limits = ((300, 300, 900), (50, 300, 900), (128, 300, 40), (150, 20, 900), (1, 20, 2))
    above = ([-np.inf, -np.inf, -np.inf], [0.5, -np.inf, 0.25])
    for (top_k, limit, total), least, threshold in itertools.product(limits, above, (0.05, 0.3, 0.5, 0.9)):
        wanted = of_heads(boxes, scores, threshold, least, top_k, limit, total)
        more = {"pre_nms_top_k": top_k, "max_output_boxes_total": total, "backend": backend}
        found = detops.non_max_suppression(boxes[None], scores[None], limit, threshold, least, **more)
        np.testing.assert_array_equal(found, wanted, err_msg=f"{top_k} {limit} {total} {least} {threshold}")


@numba.njit(error_model="numpy")
def _missed(boxes, threshold):
    """Pairs of which one suppresses the other, but lies within the margin that is cut off; and how many suppress."""
    missed = suppressing = 0
    for i in range(boxes.shape[0]):
        a, b = boxes[i], boxes[i ^ 1]
        if scalar.intersection_over_union(a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]) > threshold:
            suppressing += 1
            margin = core_margin(threshold, scalar.box_area(a[0], a[1], a[2], a[3]))
            for side in range(2):
                cut = margin * (a[side + 2] - a[side])
                missed += a[side] + cut > b[side + 2] or a[side + 2] - cut < b[side]
    return missed, suppressing


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("place", [_slices, _tiny, _far], ids=lambda place: place.__name__.strip("_"))
def test_what_suppresses_reaches_beyond_the_margin(place, dtype: str) -> None:
    """On this rests that boxes are put only into the cells of their middle."""
    suppressing = 0
    for seed in range(60):
        boxes, _ = scene(place, seed, 2000, dtype)
        for threshold in (0.05, 0.3, 0.5, 0.9):
            missed, found = _missed(boxes, np.dtype(dtype).type(threshold))
            assert missed == 0, (seed, threshold)
            suppressing += found
    assert suppressing > 100


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__.strip("_"))
def test_numba_decides_alike(place) -> None:
    boxes, scores = scene(place, 1, 700, "float32")
    labels = np.arange(700) % 5
    for threshold in (0, 0.3, 0.5, 0.9):
        found = [detops.nms(boxes, scores, threshold, backend=backend) for backend in ("cython", "numba")]
        np.testing.assert_array_equal(*found)
        found = [
            detops.batched_nms(boxes, scores, labels, threshold, backend=backend) for backend in ("cython", "numba")
        ]
        np.testing.assert_array_equal(*found)


def digest() -> str:
    """A hash of what is kept of all scenes, for comparing builds."""
    found = hashlib.sha256()
    for place in PLACES:
        for dtype in ("float32", "float64"):
            boxes, scores = scene(place, 1, 1200, dtype)
            for threshold in (0, 0.3, 0.5, 0.9):
                found.update(detops.nms(boxes, scores, threshold).tobytes())
            for center in (False, True):
                both = (boxes.reshape(3, 400, 4), scores.reshape(3, 1, 400))
                found.update(detops.non_max_suppression(*both, 300, 0.45, 0.1, center_point_box=center).tobytes())
    return found.hexdigest()


def test_instruction_sets_decide_alike() -> None:
    program = "from tests.test_nms import digest; print(digest())"
    found = {isa: output(program, DETOPS_ISA=isa) for isa in instruction_sets()}
    assert set(found.values()) == {digest()}


# Order


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("kind", ["levels", "one outlier", "wide range", "equal", "signs"])
def test_order_of_scores(dtype: str, kind: str) -> None:
    """Boxes that never overlap come out in order of score, then of index, however scores are spread."""
    count = 5000
    rng = np.random.default_rng(3)
    scores = {
        "levels": rng.integers(0, 7, count) / 8,
        "one outlier": np.append(rng.random(count - 1), -60000),
        "wide range": rng.choice([-1, 1], count) * 10.0 ** rng.uniform(-7, 4, count),
        "equal": np.ones(count),
        "signs": rng.choice([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf], count),
    }[kind].astype(dtype)
    boxes = np.tile(np.arange(4, dtype=dtype), (count, 1)) * 0
    wanted = np.argsort(-scores.astype(np.float64), kind="stable")
    np.testing.assert_array_equal(detops.nms(boxes, scores, 0.5), wanted)
    np.testing.assert_array_equal(detops.nms(boxes, scores, 0.5, max_output_boxes=9), wanted[:9])
    np.testing.assert_array_equal(detops.nms(boxes, scores, 0.5, backend="numba"), wanted)
    found = detops.batched_nms(boxes, scores, rng.integers(0, 9, count), 0.5)
    np.testing.assert_array_equal(found, wanted)


# detops.numba, and the GPU


def test_intersection_over_union() -> None:
    @numba.njit
    def compiled(a, b):
        return scalar.intersection_over_union(a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3])

    boxes, _ = scene(_outliers, 1, 120, "float64")
    for a, b in zip(boxes[:60], boxes[60:], strict=True):
        with np.errstate(all="ignore"):
            assert compiled(a, b) == oracle.iou(a, b) == scalar.intersection_over_union(*a, *b)


def test_no_fused_arithmetic_on_the_gpu() -> None:
    """A fused multiply-add rounds once where the CPU rounds twice, and would decide otherwise."""
    for real, suffix in (("float32", "f32"), ("float64", "f64")):
        table, whole = ["array", real, 2, "C"], ["array", "int64", 1, "C"]
        kernels = {
            "load_boxes": [table, whole, "int64", real, table],
            "compare_within_chunks": [table, whole, whole, real, real, ["array", "uint32", 2, "C"]],
            "drop_later": ["int64", table, whole, whole, real, real, ["array", "uint8", 1, "C"]],
        }
        texts = compile_all([["detops._cuda.nms", name, types] for name, types in kernels.items()])
        for text in texts:
            assert f"mul.rn.{suffix}" in text
            assert re.findall(rf"\b(?:fma|mad)\S*{suffix}|\bmul\.{suffix}", text) == []
