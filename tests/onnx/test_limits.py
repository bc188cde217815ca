"""Nodes at the edges: results that are left out, many axes, huge numbers, results whose size depends on data."""

import math
import threading

import numpy as np
import onnx
import pytest
from onnx import helper

import detops
import detops.onnx
from tests.onnx.models import feeds, model, run_native, run_reference
from tests.onnx.test_cases import find

ENGINES = [run_reference, run_native]
HUGE = 2**63 - 1


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["cummax", "cummin"])
@pytest.mark.parametrize("domain", ["mmcv", "mmdeploy"])
@pytest.mark.parametrize("left_out", [0, 1])
def test_either_result_may_be_left_out(left_out: int, domain: str, name: str, engine) -> None:
    x = np.array([1, 3, 2], np.float32)
    proto = model(find(domain, name), [x], {"dim": 0})
    proto.graph.node[0].output[left_out] = ""
    del proto.graph.output[left_out]
    (got,) = engine(proto, {"input": x})
    np.testing.assert_array_equal(got, getattr(detops, name)(x)[1 - left_out])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("axes", [9, 12, 32, 64])
@pytest.mark.parametrize("named", [False, True])
def test_tensors_of_many_axes(axes: int, named: bool, engine) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 9, (*[1] * (axes - 3), 2, 3, 2)).astype(np.float32)
    got = engine(model(find("mmcv", "cummax"), [x], {"dim": axes - 2}, named=named), {"input": x})
    for result, wanted in zip(got, detops.cummax(x, -2), strict=True):
        np.testing.assert_array_equal(result, wanted)
    scale = np.ones(1, np.float32)
    proto = model(find("mmcv", "MMCVInstanceNormalization"), [x, scale, scale], {}, named=named)
    (got,) = engine(proto, {"input": x, "scale": scale, "B": scale})
    np.testing.assert_array_equal(got, detops.instance_norm(x, scale, scale))
    t = rng.random((*[1] * (axes - 2), 3, 4), np.float32)
    (got,) = engine(model(find("detops", "DecodeBbox"), [t, t], {}, named=named), {"box_predictions": t, "anchors": t})
    np.testing.assert_array_equal(got, detops.decode_bbox(t, t))


def test_a_wrong_shape_of_many_axes_is_said() -> None:
    x = np.zeros((*[1] * 61, 2, 3, 4), np.float32)
    with pytest.raises(
        Exception, match=r"mmcv::grid_sampler: input: expected shape \(N, C, H, W\) or .*, got \(1, 1, 1"
    ):
        run_native(model(find("mmcv", "grid_sampler"), [x, x], {}), {"input": x, "grid": x})


def convolution(kernel: int, **attributes: list[int] | int) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    operator = find("mmcv", "MMCVDeformConv2d")
    rng = np.random.default_rng(0)
    side = 5 if kernel == 1 else 4
    inputs = [
        rng.random((1, 1, 5, 5), np.float32),
        rng.random((1, 2 * kernel**2, side, side), np.float32),
        rng.random((1, 1, kernel, kernel), np.float32),
    ]
    given = {"stride": [1, 1], "padding": [0, 0], "dilation": [1, 1], "groups": 1, "deform_groups": 1} | attributes
    return model(operator, inputs, given), feeds(operator, inputs)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_huge_dilation_of_a_kernel_of_one_changes_nothing(engine) -> None:
    wanted = engine(*convolution(1))
    np.testing.assert_array_equal(engine(*convolution(1, dilation=[HUGE, HUGE])), wanted)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dilation", [HUGE, HUGE - 1, 2**62, 2**61, 2**32])
def test_a_huge_dilation_is_refused(dilation: int, engine) -> None:
    with pytest.raises(Exception, match="MMCVDeformConv2d: "):
        engine(*convolution(2, dilation=[dilation, 1]))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "attributes",
    [
        {"padding": [HUGE, HUGE]},
        {"padding": [HUGE, 0]},
        {"groups": HUGE},
        {"deform_groups": HUGE},
        {"stride": [HUGE, 1]},
    ],
    ids=str,
)
def test_other_huge_numbers_are_refused(attributes: dict, engine) -> None:
    with pytest.raises(Exception, match="MMCVDeformConv2d: "):
        engine(*convolution(2, **attributes))


def suppression(boxes: np.ndarray, scores: np.ndarray, threshold: float, offset: int = 0) -> onnx.ModelProto:
    """The node as MMCV's exporter writes it; the type of its result is known from nowhere else."""
    node = helper.make_node(
        "NonMaxSuppression", ["b", "s"], ["k"], domain="mmcv", iou_threshold=threshold, offset=offset
    )
    take = helper.make_node("Gather", ["s", "k"], ["y"])
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shape)
        for name, array, shape in (("b", boxes, ["N", 4]), ("s", scores, ["N"]))
    ]
    outputs = [
        helper.make_tensor_value_info("k", onnx.TensorProto.INT64, ["K"]),
        helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(scores.dtype), ["K"]),
    ]
    opsets = [helper.make_opsetid("", 11), helper.make_opsetid("mmcv", 1)]
    return helper.make_model(helper.make_graph([node, take], "g", inputs, outputs), opset_imports=opsets, ir_version=6)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("first", "second"), [("float32", "float32"), ("float16", "float32"), ("float32", "float64")])
@pytest.mark.parametrize("count", [0, 1, 2, 50, 3000])
def test_suppression_gives_as_many_as_are_kept(count: int, first: str, second: str, engine) -> None:
    rng = np.random.default_rng(count)
    corner = rng.uniform(0, 60, (count, 2))
    boxes = np.concatenate([corner, corner + rng.uniform(1, 30, (count, 2))], 1).astype(first)
    scores = rng.random(count).astype(second)
    for offset in (0, 1):
        kept, best = engine(suppression(boxes, scores, 0.5, offset), {"b": boxes, "s": scores})
        wanted = detops.nms(boxes, scores, 0.5, offset=offset)
        assert kept.dtype == np.int64
        np.testing.assert_array_equal(kept, wanted)
        np.testing.assert_array_equal(best, scores[wanted])


def test_one_session_suppresses_in_many_threads() -> None:
    rng = np.random.default_rng(0)
    sets = []
    for count in range(0, 400, 25):
        corner = rng.uniform(0, 60, (count, 2))
        boxes = np.concatenate([corner, corner + 20], 1).astype(np.float32)
        sets.append((boxes, rng.random(count, np.float32)))
    session = detops.onnx.session(suppression(*sets[0], 0.3))
    same: list[bool] = []

    def work() -> None:
        for boxes, scores in sets:
            kept, _ = session.run(None, {"b": boxes, "s": scores})
            same.append(np.array_equal(kept, detops.nms(boxes, scores, 0.3)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert same == [True] * (4 * len(sets))


@pytest.mark.parametrize(
    ("boxes", "scores", "attributes", "message"),
    [
        ((2, 5), (2,), {}, r"boxes: expected shape \(num_boxes, 4\), got \(2, 5\)"),
        ((1, 2, 4), (1, 1, 2), {}, r"boxes: expected shape \(num_boxes, 4\), got \(1, 2, 4\)"),
        ((2, 4), (3,), {}, r"scores: expected shape \(num_boxes,\) as in boxes, got \(3,\)"),
        ((2, 4), (2,), {"offset": 2}, "offset: expected 0 or 1, got 2"),
        ((2, 4), (2,), {"iou_threshold": 1.0000001}, r"iou_threshold: expected a number from 0 to 1, got 1.0000001"),
        ((2, 4), (2,), {"iou_threshold": None}, "attribute iou_threshold: expected a value, got none"),
    ],
)
def test_bad_nodes_of_suppression(boxes, scores, attributes, message) -> None:
    arrays = [np.zeros(boxes, np.float32), np.zeros(scores, np.float32)]
    given = {key: value for key, value in ({"iou_threshold": 0.5} | attributes).items() if value is not None}
    proto = model(find("mmcv", "NonMaxSuppression"), arrays, given, named=True)
    with pytest.raises(Exception, match=f"mmcv::NonMaxSuppression: {message}"):
        run_native(proto, {"boxes": arrays[0], "scores": arrays[1]})


SOFT = {"iou_threshold": 0.5, "sigma": 0.5, "min_score": 0.001, "method": 1, "offset": 0}


@pytest.mark.parametrize(
    ("boxes", "scores", "attributes", "message"),
    [
        ((2, 5), (2,), {}, r"boxes: expected shape \(num_boxes, 4\), got \(2, 5\)"),
        ((2, 4), (3,), {}, r"scores: expected shape \(num_boxes,\) as in boxes, got \(3,\)"),
        ((2, 4), (2,), {"offset": 2}, "offset: expected 0 or 1, got 2"),
        ((2, 4), (2,), {"sigma": 0.0}, "sigma: expected a finite number above 0, got 0"),
        ((2, 4), (2,), {"min_score": math.inf}, "min_score: expected a finite number, got inf"),
        ((2, 4), (2,), {"iou_threshold": 1.5}, "iou_threshold: expected a number from 0 to 1, got 1.5"),
        ((2, 4), (2,), {"method": 3}, "attribute method: got a value that the operator does not know"),
    ],
)
def test_bad_nodes_of_soft_suppression(boxes, scores, attributes, message) -> None:
    arrays = [np.zeros(boxes, np.float32), np.zeros(scores, np.float32)]
    proto = model(find("mmcv", "SoftNonMaxSuppression"), arrays, SOFT | attributes, named=True)
    with pytest.raises(Exception, match=f"mmcv::SoftNonMaxSuppression: {message}"):
        run_native(proto, {"boxes": arrays[0], "scores": arrays[1]})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"value": np.zeros((1, 6, 1))}, r"value: expected shape \(num_images, num_keys, num_heads, channels\), got"),
        ({"attention_weights": np.zeros((1, 2, 3, 1, 1))}, r"attention_weights: expected shape \(num_images, .*, got"),
        ({"sampling_locations": np.zeros((1, 2, 1, 1, 1, 3))}, "sampling_locations: expected shape of the attention's"),
        (
            {"value_spatial_shapes": np.zeros((2, 2), np.int64)},
            r"value_spatial_shapes: expected shape \(num_levels, 2\)",
        ),
        (
            {"value_level_start_index": np.zeros(2, np.int64)},
            r"value_level_start_index: expected shape \(num_levels,\)",
        ),
        (
            {"value_spatial_shapes": np.array([[2, 4]])},
            "value_spatial_shapes: expected maps within 6 keys, got 2 x 4 elements from 0 on in level 0",
        ),
        ({"value_spatial_shapes": np.array([[-1, -1]])}, "expected maps within 6 keys, got -1 x -1 elements"),
        (
            {"value_spatial_shapes": np.array([[2**62, 2**62]])},
            "expected maps within 6 keys, got 4611686018427387904 x",
        ),
        ({"value_level_start_index": np.array([-1])}, "expected maps within 6 keys, got 2 x 3 elements from -1 on"),
        ({"value_level_start_index": np.array([1])}, "expected maps within 6 keys, got 2 x 3 elements from 1 on"),
    ],
)
def test_bad_nodes_of_attention(changed, message) -> None:
    feed = {
        "value": np.zeros((1, 6, 1, 2)),
        "value_spatial_shapes": np.array([[2, 3]]),
        "value_level_start_index": np.array([0]),
        "sampling_locations": np.zeros((1, 2, 1, 1, 1, 2)),
        "attention_weights": np.zeros((1, 2, 1, 1, 1)),
    } | changed
    feed = {name: array.astype(np.float32) if array.dtype.kind == "f" else array for name, array in feed.items()}
    proto = model(find("mmdeploy", "MMCVMultiScaleDeformableAttention"), list(feed.values()), {}, named=True)
    with pytest.raises(Exception, match=f"mmdeploy::MMCVMultiScaleDeformableAttention: .*{message}"):
        run_native(proto, feed)
