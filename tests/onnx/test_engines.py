"""Each operator in each domain: ONNX's evaluator and ONNX Runtime against the public function and each other."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import detops
from detops.onnx._reference import run
from detops.onnx._table import NodeType
from tests.onnx.models import feeds, model, run_native, run_reference
from tests.onnx.nodes import NATIVE, nodes, typed

FLOATS = ("float16", "float32", "float64")
COMBINATIONS = [
    pytest.param(operator, dtype, id=f"{operator.title}-{dtype}")
    for operator, dtype in itertools.product(NATIVE, FLOATS)
    if dtype in operator.dtypes
]


def types_of(operator: NodeType, first: str, differ: bool) -> list[tuple[str, ...]]:
    """The combinations of types that begin with one: those that have no other floats, or those that have."""
    floats = [
        [dtype for each, dtype in zip(operator.inputs, types, strict=True) if each.dtype == "T"]
        for types in operator.combinations
    ]
    found = zip(operator.combinations, floats, strict=True)
    return [types for types, own in found if own[0] == first and (len(set(own)) > 1) == differ]


def same(got: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    """Both engines call the same compiled kernels, so they agree in every bit."""
    assert len(got) == len(wanted)
    for result, expected in zip(got, wanted, strict=True):
        assert result.dtype == expected.dtype
        assert result.shape == expected.shape
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(("operator", "dtype"), COMBINATIONS)
def test_engines_agree(operator: NodeType, dtype: str) -> None:
    @settings(max_examples=30)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        (types,) = types_of(operator, dtype, differ=False)
        inputs, attributes = typed(operator, data.draw(nodes(operator)), types)
        proto = model(operator, inputs, attributes, named=data.draw(st.booleans()))
        with np.errstate(all="ignore"):
            wanted = run_reference(proto, feeds(operator, inputs))
        same(run_native(proto, feeds(operator, inputs)), wanted)
        assert [result.ndim for result in wanted] == [rank or inputs[0].ndim for rank in operator.ranks]

    check()


@pytest.mark.parametrize(("operator", "dtype"), [each for each in COMBINATIONS if types_of(*each.values, differ=True)])
def test_engines_agree_on_mixed_types(operator: NodeType, dtype: str) -> None:
    @settings(max_examples=20)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        types = data.draw(st.sampled_from(types_of(operator, dtype, differ=True)))
        inputs, attributes = typed(operator, data.draw(nodes(operator)), types)
        proto = model(operator, inputs, attributes, named=data.draw(st.booleans()))
        with np.errstate(all="ignore"):
            wanted = run_reference(proto, feeds(operator, inputs))
        same(run_native(proto, feeds(operator, inputs)), wanted)

    check()


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"])
@pytest.mark.parametrize(
    "operator", [each for each in NATIVE if each.family == "cumulative"], ids=lambda each: each.name
)
def test_cumulative_takes_all_numbers(operator: NodeType, dtype: str) -> None:
    x = np.array([[3, 1, 1], [0, 2, 1]]).astype(dtype)
    wanted = getattr(detops, operator.name)(x, 1)
    same(run_native(model(operator, [x], {"dim": 1}), {"input": x}), list(wanted))


def find(title: str) -> NodeType:
    (operator,) = (operator for operator in NATIVE if operator.title == title)
    return operator


def test_roi_align_is_the_public_function() -> None:
    rng = np.random.default_rng(0)
    x = rng.random((2, 3, 8, 9), np.float32)
    rois = np.array([[0, 1, 1, 6, 7], [1, 0, 2, 8.5, 5]], np.float32)
    operator = find("mmcv::MMCVRoiAlign")
    for mode, aligned in itertools.product(("avg", "max"), (0, 1)):
        attributes = {"output_height": 2, "output_width": 3, "spatial_scale": 0.5, "mode": mode, "aligned": aligned}
        wanted = detops.roi_align(x, rois, (2, 3), spatial_scale=0.5, aligned=bool(aligned), mode=mode)
        proto = model(operator, [x, rois], attributes)
        for engine in (run_reference, run_native):
            same(engine(proto, {"input": x, "rois": rois}), [wanted])


def test_onnx_maximum_is_of_corners() -> None:
    rng = np.random.default_rng(0)
    x = rng.random((1, 2, 8, 9), np.float32)
    rois = np.array([[1, 1, 6, 7]], np.float32)
    arguments = {"X": x, "rois": rois, "batch_indices": np.zeros(1, np.int64)}
    (operator,) = (each for each in detops.onnx._table.OPERATORS if each.name == "RoiAlign" and 22 in each.versions)
    attributes = {"mode": "max", "output_height": 2, "output_width": 2}
    (got,) = run(operator, list(arguments.values()), attributes)
    wanted = detops.roi_align(x, rois, 2, mode="corner_max", batch_indices=np.zeros(1, np.int64))
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("form", ["corner", "center"])
@pytest.mark.parametrize("offset", [0, 1])
def test_decode_bbox_is_the_public_function(form: str, offset: int) -> None:
    rng = np.random.default_rng(0)
    t, anchors = rng.random((5, 8), np.float32), rng.random((5, 4), np.float32)
    attributes = {
        "decode_clip": 0.5,
        "lower_clip": 0.25,
        "scales": [10.0, 10.0, 5.0, 5.0],
        "means": [0.0, 0.5, 0.0, 0.0],
        "anchor_form": form,
        "offset": offset,
    }
    wanted = detops.decode_bbox(t, anchors, **attributes)
    proto = model(find("detops::DecodeBboxV2"), [t, anchors], attributes)
    for engine in (run_reference, run_native):
        same(engine(proto, {"box_predictions": t, "anchors": anchors}), [wanted])


@pytest.mark.parametrize(("name", "clip"), [("DecodeBbox", 0.0), ("DecodeBboxV2", None)])
def test_a_clip_of_0_is_no_bound_in_version_2_alone(name: str, clip: float | None) -> None:
    t = np.array([[0, 0, 1, -1]], np.float32)
    anchors = np.array([[0, 0, 2, 2]], np.float32)
    proto = model(find(f"detops::{name}"), [t, anchors], {"decode_clip": 0.0})
    for engine in (run_reference, run_native):
        got = engine(proto, {"box_predictions": t, "anchors": anchors})
        same(got, [detops.decode_bbox(t, anchors, decode_clip=clip)])


def test_padded_suppression_is_the_public_function() -> None:
    rng = np.random.default_rng(0)
    boxes = np.concatenate([rng.random((2, 20, 2)), 1 + rng.random((2, 20, 2))], 2).astype(np.float32)
    scores = rng.random((2, 3, 20), np.float32)
    wanted = detops.non_max_suppression_padded(boxes, scores, 4, 0.75, 0.25, offset=1)
    attributes = {"max_output_boxes_per_class": 4, "iou_threshold": 0.75, "score_threshold": 0.25, "offset": 1}
    proto = model(find("detops::NonMaxSuppression"), [boxes, scores], attributes)
    for engine in (run_reference, run_native):
        same(engine(proto, {"boxes": boxes, "scores": scores}), [wanted])


@pytest.mark.parametrize("domain", ["mmcv", "mmdeploy", "detops"])
def test_an_offset_is_added_to_widths(domain: str) -> None:
    """Added to an end it would be lost here, where float32 knows only every second number, as an area of 0."""
    boxes = np.array([[0, 0, 0, 0], [0, 0, 0, 0], [8, 0, 8, 0]], np.float32) + np.float32(2**24)
    scores = np.array([0.9, 0.8, 0.7], np.float32)
    inputs, wanted = [boxes, scores], np.array([0, 2])
    if domain != "mmcv":
        inputs, wanted = [boxes[None], scores[None, None]], np.array([[0, 0, 0], [0, 0, 2], [-1, -1, -1]], np.int32)
    proto = model(find(f"{domain}::NonMaxSuppression"), inputs, {"iou_threshold": 0.5, "offset": 1})
    for engine in (run_reference, run_native):
        same(engine(proto, {"boxes": inputs[0], "scores": inputs[1]}), [wanted])
