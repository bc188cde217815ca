"""Nodes that are compositions, against naive readings of what the plugins of TensorRT and MMCV compute."""

import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

import detops
import detops.onnx
from detops.onnx._compositions import COMPOSITIONS
from tests.onnx.models import run_reference
from tests.oracle.box_iou import box_iou
from tests.oracle.roi_align import roi_align

OPSETS = (11, 13, 18, 21)


def model_of(
    domain: str, name: str, feeds: dict[str, np.ndarray], attributes: dict[str, Any], outputs: str, opset: int = 13
) -> onnx.ModelProto:
    """A model of one node, with all dimensions open; each result is f (float32) or i (int32)."""
    results = [f"result{i}" for i in range(len(outputs))]
    node = helper.make_node(name, list(feeds), results, domain=domain, **attributes)
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), [None] * array.ndim)
        for name, array in feeds.items()
    ]
    kinds = {"f": onnx.TensorProto.FLOAT, "i": onnx.TensorProto.INT32}
    values = [
        helper.make_tensor_value_info(name, kinds[kind], None) for name, kind in zip(results, outputs, strict=True)
    ]
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(domain or "unused", 1)]
    return helper.make_model(helper.make_graph([node], "g", inputs, values), opset_imports=opsets, ir_version=8)


def computed(
    domain: str, name: str, feeds: dict[str, np.ndarray], attributes: dict[str, Any], outputs: str, **more: Any
) -> list[np.ndarray]:
    """The results in ONNX Runtime, which are those of ONNX's evaluator."""
    proto = model_of(domain, name, feeds, attributes, outputs, **more)
    results = detops.onnx.session(proto).run(None, feeds)
    for result, other in zip(results, run_reference(proto, feeds), strict=True):
        assert result.dtype == other.dtype
        np.testing.assert_allclose(result, other, rtol=1e-5, atol=1e-6)
    return results


def detections(
    boxes: np.ndarray,
    scores: np.ndarray,
    limit: int,
    iou_threshold: float,
    takes_part: Any,
    background: int = -1,
    top_k: int = -1,
    agnostic: bool = False,
) -> list[list[tuple[np.ndarray, np.float32, int, int]]]:
    """For each batch (box, score, class, index) by falling score; boxes (B, N, 1 or C, 4), scores (B, N, C)."""
    found: list[list[tuple[np.ndarray, np.float32, int, int]]] = []
    for of_batch, of_boxes in zip(boxes, scores, strict=True):
        count, classes = of_boxes.shape
        kept = []
        for group in [range(classes)] if agnostic else [[label] for label in range(classes)]:
            pairs = [(c, n) for c, n in itertools.product(group, range(count)) if c != background]
            pairs = [pair for pair in pairs if takes_part(of_boxes[pair[::-1]])]
            pairs = sorted(pairs, key=lambda pair: -of_boxes[pair[::-1]])[: top_k if top_k > 0 else None]
            chosen: list[tuple[int, int]] = []
            for c, n in pairs:
                own = min(c, of_batch.shape[1] - 1)
                others = [of_batch[m, min(d, of_batch.shape[1] - 1)] for d, m in chosen]
                if all(overlap(of_batch[n, own], other) <= iou_threshold for other in others):
                    chosen.append((c, n))
            kept += chosen
        rows = []
        for c, n in sorted(kept, key=lambda pair: -of_boxes[pair[::-1]])[:limit]:
            own = min(c, of_batch.shape[1] - 1)
            rows.append((of_batch[n, own], of_boxes[n, c], c, own * count + n))
        found.append(rows)
    return found


def overlap(a: np.ndarray, b: np.ndarray) -> float:
    """The IoU of two boxes (x1, y1, x2, y2), in float64."""
    return float(box_iou(a[None].astype(float), b[None].astype(float))[0, 0])


def scene(batches: int, count: int, classes: int, own_boxes: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Boxes in a crowd and scores without ties."""
    rng = np.random.default_rng(seed)
    corner = rng.uniform(0, 20, (batches, count, own_boxes, 2))
    boxes = np.concatenate([corner, corner + rng.uniform(4, 12, corner.shape)], axis=-1).astype(np.float32)
    scores = rng.permutation(batches * count * classes).reshape(batches, count, classes) + 1
    return {"boxes": boxes, "scores": (scores / scores.size).astype(np.float32) if scores.size else scores.astype("f")}


def padded(rows: Sequence[Any], limit: int, filler: Any) -> np.ndarray:
    """As many rows as asked for."""
    return np.array([*rows, *[filler] * (limit - len(rows))])


@pytest.mark.parametrize(
    ("sizes", "attributes", "opset"),
    [
        ((2, 30, 3, 1), {}, 11),
        ((2, 30, 3, 3), {}, 13),
        ((1, 30, 3, 1), {"background_label_id": 0, "topk": 5}, 18),
        ((1, 30, 1, 1), {"keep_topk": 100, "score_threshold": -1.0}, 21),
        ((1, 6, 2, 2), {"clip_boxes": 1, "score_threshold": 0.9}, 13),
        ((2, 0, 3, 1), {}, 13),
    ],
)
def test_trt_batched_nms(sizes: tuple[int, ...], attributes: dict[str, Any], opset: int) -> None:
    feeds = scene(*sizes)
    given = {
        "num_classes": sizes[2],
        "background_label_id": -1,
        "iou_threshold": 0.5,
        "score_threshold": 0.1,
        "topk": 20,
        "keep_topk": 8,
        "is_normalized": 0,
        "clip_boxes": 0,
        "return_index": 1,
    } | attributes
    dets, labels, indices = computed("mmdeploy", "TRTBatchedNMS", feeds, given, "fii", opset=opset)
    limit = given["keep_topk"]
    assert dets.shape == (sizes[0], limit, 5)
    wanted = detections(
        feeds["boxes"],
        feeds["scores"],
        limit,
        0.5,
        lambda score: score > given["score_threshold"],
        given["background_label_id"],
        given["topk"],
    )
    for b, rows in enumerate(wanted):
        boxes = [np.clip(box, 0, 1) if given["clip_boxes"] else box for box, *_ in rows]
        found = [np.append(box, score) for box, (_, score, *_) in zip(boxes, rows, strict=True)]
        np.testing.assert_array_equal(dets[b], padded(found, limit, np.zeros(5)))
        np.testing.assert_array_equal(labels[b], padded([row[2] for row in rows], limit, -1))
        np.testing.assert_array_equal(indices[b], padded([row[3] for row in rows], limit, -1))


def test_trt_batched_nms_of_scores_that_are_nan() -> None:
    feeds = scene(1, 10, 2, 1)
    feeds["scores"][0, ::2] = np.nan
    given = {"iou_threshold": 0.9, "score_threshold": -1.0, "keep_topk": 20}
    dets, labels = computed("mmdeploy", "TRTBatchedNMS", feeds, given, "fi")
    assert not np.isnan(dets).any()
    assert (labels >= 0).sum() == 10


@pytest.mark.parametrize("domain", ["TRT", ""])
@pytest.mark.parametrize("axes", [3, 4])
@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"score_activation": 1},
        {"box_coding": 1},
        {"class_agnostic": 1, "background_class": 1},
        {"score_threshold": 2.0},
    ],
)
def test_efficient_nms(domain: str, axes: int, attributes: dict[str, Any]) -> None:
    feeds = scene(2, 20, 3, 1 if axes == 3 else 3)
    boxes, scores = feeds["boxes"], feeds["scores"]
    if axes == 3:
        feeds["boxes"] = boxes[:, :, 0]
    if "box_coding" in attributes:
        corner, size = boxes[..., :2] + boxes[..., 2:], boxes[..., 2:] - boxes[..., :2]
        feeds["boxes"] = np.concatenate([corner / 2, size], axis=-1)[:, :, 0 if axes == 3 else slice(None)]
    if "score_activation" in attributes:
        scores = (1 / (1 + np.exp(-scores.astype(float)))).astype(np.float32)
    given = {"max_output_boxes": 7, "iou_threshold": 0.45, "score_threshold": 0.25, "background_class": -1} | attributes
    given |= {"plugin_version": "1"}
    count, found, best, labels = computed(domain, "EfficientNMS_TRT", feeds, given, "iffi")
    wanted = detections(
        boxes,
        scores,
        7,
        0.45,
        lambda score: score >= given["score_threshold"],
        given["background_class"],
        agnostic="class_agnostic" in attributes,
    )
    assert count.tolist() == [[len(rows)] for rows in wanted]
    for b, rows in enumerate(wanted):
        np.testing.assert_allclose(found[b], padded([row[0] for row in rows], 7, np.zeros(4)), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(best[b], padded([row[1] for row in rows], 7, 0), rtol=1e-6)
        np.testing.assert_array_equal(labels[b], padded([row[2] for row in rows], 7, 0))


def test_an_iou_equal_to_the_threshold_of_efficient_nms_suppresses() -> None:
    boxes = np.array([[[0, 0, 2, 2], [0, 0, 2, 1]]], np.float32)
    scores = np.array([[[0.9], [0.8]]], np.float32)
    given = {"max_output_boxes": 2, "iou_threshold": 0.5, "score_threshold": 0.1}
    count, *_ = computed("TRT", "EfficientNMS_TRT", {"boxes": boxes, "scores": scores}, given, "iffi")
    assert count.tolist() == [[1]]


@pytest.mark.parametrize("name", ["BatchedNMS_TRT", "BatchedNMSDynamic_TRT"])
def test_batched_nms_of_tensorrt(name: str) -> None:
    feeds = scene(2, 20, 3, 1)
    given = {
        "shareLocation": 1,
        "numClasses": 3,
        "backgroundLabelId": 2,
        "topK": 9,
        "keepTopK": 6,
        "scoreThreshold": 0.3,
        "iouThreshold": 0.4,
        "isNormalized": 0,
        "clipBoxes": 0,
    }
    count, found, best, labels = computed("TRT", name, feeds, given, "ifff")
    wanted = detections(feeds["boxes"], feeds["scores"], 6, 0.4, lambda score: score > np.float32(0.3), 2, 9)
    assert count.tolist() == [[len(rows)] for rows in wanted]
    for b, rows in enumerate(wanted):
        np.testing.assert_array_equal(found[b], padded([row[0] for row in rows], 6, np.zeros(4)))
        np.testing.assert_array_equal(best[b], padded([row[1] for row in rows], 6, 0))
        np.testing.assert_array_equal(labels[b], padded([row[2] for row in rows], 6, -1))


@pytest.mark.parametrize("opset", OPSETS)
def test_gather_topk(opset: int) -> None:
    x = np.arange(60, dtype=np.float32).reshape(2, 5, 6)
    inds = np.array([[4, 0], [1, 1]])
    for values in (x, x[:, :, 0], x.reshape(2, 5, 2, 3)):
        (got,) = computed("mmdeploy", "GatherTopk", {"x": values, "inds": inds}, {}, "f", opset=opset)
        np.testing.assert_array_equal(got, values[np.arange(2)[:, None], inds])


@pytest.mark.parametrize("opset", OPSETS)
def test_grid_priors(opset: int) -> None:
    anchors = np.array([[-4, -4, 4, 4], [-8, -2, 8, 2.5]], np.float32)
    feeds = {"base_anchors": anchors, "zero_h": np.zeros(3, np.int64), "zero_w": np.zeros(2, np.int64)}
    (got,) = computed("mmdeploy", "GridPriorsTRT", feeds, {"stride_h": 8, "stride_w": 16}, "f", opset=opset)
    wanted = [
        anchor + np.array([x * 16, y * 8, x * 16, y * 8])
        for y, x, anchor in itertools.product(range(3), range(2), anchors)
    ]
    np.testing.assert_array_equal(got, np.array(wanted, np.float32))


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("mask", [None, (1, 3, 4), (3, 4)])
def test_attention(opset: int, mask: tuple[int, ...] | None) -> None:
    rng = np.random.default_rng(0)
    feeds = {
        name: rng.normal(size=(2, length, 5)).astype(np.float32) for name, length in (("q", 3), ("k", 4), ("v", 4))
    }
    logits = feeds["q"].astype(float) @ feeds["k"].transpose(0, 2, 1).astype(float) / math.sqrt(5)
    if mask is not None:
        feeds["mask"] = rng.normal(size=mask).astype(np.float32)
        logits += feeds["mask"]
    weights = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    output, attention = computed("mmdeploy", "ScaledDotProductAttentionTRT", feeds, {}, "ff", opset=opset)
    np.testing.assert_allclose(attention, weights, rtol=1e-5)
    np.testing.assert_allclose(output, weights @ feeds["v"].astype(float), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("mode", range(4))
def test_corner_pool(opset: int, mode: int) -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype(np.float32)
    (got,) = computed("mmcv", "MMCVCornerPool", {"input": x}, {"mode": mode}, "f", opset=opset)
    wanted = {
        0: np.maximum.accumulate(x[:, :, ::-1], axis=2)[:, :, ::-1],
        1: np.maximum.accumulate(x, axis=2),
        2: np.maximum.accumulate(x[..., ::-1], axis=3)[..., ::-1],
        3: np.maximum.accumulate(x, axis=3),
    }
    np.testing.assert_array_equal(got, wanted[mode])


def cubic(distance: float) -> float:
    """Keys' kernel with a = -0.75."""
    a, t = -0.75, abs(distance)
    if t <= 1:
        return ((a + 2) * t - (a + 3)) * t * t + 1
    return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a if t < 2 else 0


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("align_corners", [0, 1])
def test_bicubic(opset: int, align_corners: int) -> None:
    x = np.random.default_rng(0).normal(size=(1, 2, 5, 4)).astype(np.float32)
    proto = model_of(
        "mmdeploy",
        "TRTBicubicInterpolate",
        {"input": x},
        {"scale_factor": [2.0, 1.7], "align_corners": align_corners},
        "f",
        opset,
    )
    (got,) = detops.onnx.session(proto).run(None, {"input": x})
    assert got.shape == (1, 2, 10, 6)

    def weights(length: int, longer: int) -> np.ndarray:
        found = np.zeros((longer, length))
        for i in range(longer):
            at = i * (length - 1) / (longer - 1) if align_corners else (i + 0.5) * length / longer - 0.5
            for tap in range(math.floor(at) - 1, math.floor(at) + 3):
                found[i, min(max(tap, 0), length - 1)] += cubic(at - tap)
        return found

    wanted = weights(5, 10) @ x.astype(float) @ weights(4, 6).T
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("attributes", [{}, {"pool_mode": 0}, {"roi_scale_factor": 1.5}, {"aligned": 0}])
def test_multi_level_roi_align(opset: int, attributes: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    strides = [4.0, 8.0, 16.0]
    features = {f"feature_{k}": rng.normal(size=(2, 3, 64 >> k, 64 >> k)).astype(np.float32) for k in range(3)}
    side = np.array([3, 55.9, 56.1, 111, 113, 200, 500, 0], np.float32)
    corner = rng.uniform(0, 100, (8, 2))
    rois = np.concatenate([rng.integers(0, 2, (8, 1)), corner, corner + side[:, None]], axis=1).astype(np.float32)
    given = {
        "output_height": 3,
        "output_width": 2,
        "sampling_ratio": 2,
        "roi_scale_factor": 0.0,
        "finest_scale": 56,
        "featmap_strides": strides,
        "aligned": 1,
    } | attributes
    (got,) = computed("mmdeploy", "MMCVMultiLevelRoiAlign", {"rois": rois, **features}, given, "f", opset=opset)
    levels = [0, 0, 0, 0, 1, 1, 2, 0]
    for result, roi, level in zip(got, rois, levels, strict=True):
        box = roi.astype(float)
        if factor := given["roi_scale_factor"]:
            center, reach = (box[3:] + box[1:3]) / 2, ((box[3:] - box[1:3] + 1) * factor - 1) / 2
            box[1:] = np.concatenate([center - reach, center + reach])
        (wanted,) = roi_align(
            features[f"feature_{level}"].astype(float),
            box[None],
            (3, 2),
            spatial_scale=1 / strides[level],
            sampling_ratio=2,
            aligned=bool(given["aligned"]),
            mode="max" if given.get("pool_mode") == 0 else "avg",
        )
        np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-4)
    (empty,) = computed("mmdeploy", "MMCVMultiLevelRoiAlign", {"rois": rois[:0], **features}, given, "f", opset=opset)
    assert empty.shape == (0, 3, 3, 2)


def two_nodes() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A model whose values have names as the expansion would give, with a node in branches and one after them."""
    feeds = {"x": np.arange(12, dtype=np.float32).reshape(1, 4, 3), "inds": np.array([[3, 1]])}
    proto = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 13, "mmdeploy": 1]>
        g (float[1, 4, 3] x, int64[1, 2] inds) => (float[1, 2, 3] y) {
            yes = Constant <value = bool {1}> ()
            "expanded0/z" = If (yes) <
                then_branch = one () => (float[1, 2, 3] a) { a = mmdeploy.GatherTopk (x, inds) },
                else_branch = two () => (float[1, 2, 3] b) { b = mmdeploy.GatherTopk (x, inds) }>
            order = Constant <value = int64[1, 2] {1, 0}> ()
            y = mmdeploy.GatherTopk ("expanded0/z", order)
        }""".replace('"expanded0/z"', "expanded0")
    )
    return proto, feeds


def test_nodes_in_bodies_and_names_that_are_taken() -> None:
    proto, feeds = two_nodes()
    before = proto.SerializeToString(deterministic=True)
    expanded = detops.onnx.expand(proto)
    assert proto.SerializeToString(deterministic=True) == before
    onnx.checker.check_model(expanded)
    (got,) = onnxruntime.InferenceSession(expanded.SerializeToString()).run(None, feeds)
    np.testing.assert_array_equal(got, feeds["x"][:, [1, 3]])


def test_a_node_in_a_function_of_the_model() -> None:
    proto = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 13, "own": 1]>
        g (float[1, 4, 3] x, int64[1, 2] inds) => (float[1, 2, 3] y) { y = own.pick (x, inds) }
        <domain: "own", opset_import: ["": 13, "mmdeploy": 1]>
        pick (x, inds) => (y) { y = mmdeploy.GatherTopk (x, inds) }"""
    )
    _, feeds = two_nodes()
    (got,) = detops.onnx.session(proto).run(None, feeds)
    np.testing.assert_array_equal(got, feeds["x"][:, [3, 1]])


def test_a_function_of_the_model_stays_what_it_is() -> None:
    proto = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 13, "mmdeploy": 1]>
        g (float[N] x, float[N] z) => (float[N] y) { y = mmdeploy.GatherTopk (x, z) }
        <domain: "mmdeploy", opset_import: ["": 13]> GatherTopk (a, b) => (c) { c = Add (a, b) }"""
    )
    assert detops.onnx.expand(proto) == proto


def test_a_session_takes_files_and_bytes(tmp_path: Path) -> None:
    proto, feeds = two_nodes()
    onnx.save(proto, tmp_path / "model.onnx")
    for given in (str(tmp_path / "model.onnx"), tmp_path / "model.onnx", proto.SerializeToString()):
        (got,) = detops.onnx.session(given).run(None, feeds)
        np.testing.assert_array_equal(got, feeds["x"][:, [1, 3]])


def test_a_file_with_weights_beside_it(tmp_path: Path) -> None:
    proto, feeds = two_nodes()
    x = onnx.numpy_helper.from_array(feeds.pop("x"), "x")
    proto.graph.initializer.append(x)
    del proto.graph.input[0]
    path = tmp_path / "model.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="weights", size_threshold=0)
    (got,) = detops.onnx.session(path).run(None, feeds)
    np.testing.assert_array_equal(got, onnx.numpy_helper.to_array(x)[:, [1, 3]])


def test_the_runtime_speaks_of_other_nodes() -> None:
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 13, "mmdeploy": 1]> g (float[N] x) => (float[N] y) { y = mmdeploy.Odd (x) }'
    )
    with pytest.raises(Exception, match="mmdeploy:Odd"):
        detops.onnx.session(proto)
    with pytest.raises(Exception, match=r"nowhere\.onnx"):
        detops.onnx.session("nowhere.onnx")


@pytest.mark.parametrize(
    ("name", "attributes", "said"),
    [
        ("MMCVCornerPool", {"mode": 4}, r"mmcv::MMCVCornerPool: attribute mode: expected 0 \(top\)"),
        ("MMCVCornerPool", {}, "mmcv::MMCVCornerPool: attribute mode: expected a value, got none"),
        ("MMCVCornerPool", {"mode": 1.0}, "mmcv::MMCVCornerPool: attribute mode: expected an integer"),
    ],
)
def test_wrong_attributes(name: str, attributes: dict[str, Any], said: str) -> None:
    proto = model_of("mmcv", name, {"input": np.zeros((1, 1, 2, 2), np.float32)}, attributes, "f")
    with pytest.raises(ValueError, match=said):
        detops.onnx.expand(proto)


@pytest.mark.parametrize(
    ("domain", "name", "limit"),
    [
        ("mmdeploy", "TRTBatchedNMS", "keep_topk"),
        ("TRT", "BatchedNMS_TRT", "keepTopK"),
        ("TRT", "EfficientNMS_TRT", "max_output_boxes"),
    ],
)
def test_nothing_to_keep(domain: str, name: str, limit: str) -> None:
    thresholds = {"iou_threshold": 0.5, "score_threshold": 0.5, "iouThreshold": 0.5, "scoreThreshold": 0.5}
    proto = model_of(domain, name, scene(1, 2, 1, 1), {limit: 0, **thresholds}, "f")
    with pytest.raises(ValueError, match=f"{name}: attribute {limit}: expected at least 1, got 0"):
        detops.onnx.expand(proto)


def test_wrong_numbers_of_inputs_and_old_operator_sets() -> None:
    x = np.zeros((1, 1, 2, 2), np.float32)
    with pytest.raises(ValueError, match=r"MMCVCornerPool: expected 1 inputs, got \['a', 'b'\]"):
        detops.onnx.expand(model_of("mmcv", "MMCVCornerPool", {"a": x, "b": x}, {"mode": 0}, "f"))
    with pytest.raises(ValueError, match="operator set 11 or later, got 10"):
        detops.onnx.expand(model_of("mmcv", "MMCVCornerPool", {"a": x}, {"mode": 0}, "f", 10))
    given: dict[str, Any] = {"output_height": 1, "output_width": 1, "sampling_ratio": 0, "finest_scale": 56}
    given["featmap_strides"] = [4.0, 8.0]
    proto = model_of("mmdeploy", "MMCVMultiLevelRoiAlign", {"rois": x, "a": x}, given, "f")
    with pytest.raises(ValueError, match="expected a map of features for each of 2 levels, got 1"):
        detops.onnx.expand(proto)


def test_each_composition_is_tested_and_in_the_docstring() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    for composition in COMPOSITIONS:
        assert f'"{composition.name}"' in text
        assert composition.name in detops.onnx.expand.__doc__
