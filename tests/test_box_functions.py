"""Functions of boxes that NumPy computes: against their definitions, and against what exported models compute."""

from __future__ import annotations

import math
from typing import Any, get_args, get_type_hints

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from onnx import numpy_helper

import detops
from detops.operators.box_convert import COLUMNS
from detops.operators.decode_distance import ORDERS
from detops.operators.decode_yolo import FORMS
from tests.oracle import box_functions as oracle

from .graph.models import DATA

RNG = np.random.default_rng(0)
DTYPES = ["float16", "float32", "float64", "int16", "uint8", ">f4"]
UPRIGHT = ("xyxy", "xywh", "cxcywh")
TURNED = ("cxcywha", "xyxyxyxy")


def some_boxes(dtype: str, *lead: int) -> np.ndarray:
    """Boxes, some of which have no area, in every second row of an array."""
    both = np.floor(RNG.uniform(0, 60, (*lead, 2)))
    boxes = np.concatenate([both, both + np.floor(RNG.uniform(-2, 60, (*lead, 2)))], axis=-1)
    wide = np.zeros((2 * boxes.shape[0], *boxes.shape[1:]), dtype)
    wide[::2] = np.abs(boxes)
    return wide[::2]


def slack(dtype: np.dtype, values: np.ndarray) -> float:
    return 4 * float(np.finfo(dtype).eps) * float(np.abs(values).max(initial=1))


def result_dtype(dtype: Any) -> np.dtype:
    kind = np.dtype(dtype)
    return kind.newbyteorder("=") if kind.kind == "f" else np.dtype(np.float64)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lead", [(7,), (2, 3), (0,)])
def test_area_and_clip(dtype: str, lead: tuple[int, ...]) -> None:
    boxes = some_boxes(dtype, *lead)
    rows = boxes.astype(np.float64).reshape(-1, 4)
    areas = detops.box_area(boxes)
    assert (areas.shape, areas.dtype) == (lead, result_dtype(dtype))
    wanted = np.array([oracle.area(row) for row in rows])
    assert_allclose(areas.ravel(), wanted, rtol=2 * np.finfo(areas.dtype).eps)
    clipped = detops.clip_boxes(boxes, (30, 50))
    assert (clipped.shape, clipped.dtype) == (boxes.shape, np.dtype(dtype).newbyteorder("="))
    assert_array_equal(clipped.reshape(-1, 4), np.array([oracle.clipped(row, 30, 50) for row in rows]).reshape(-1, 4))


def test_clip_takes_sizes_beyond_the_dtype() -> None:
    assert_array_equal(detops.clip_boxes(np.array([[0, 1, 255, 255]], np.uint8), 1000), [[0, 1, 255, 255]])
    assert_array_equal(detops.clip_boxes(np.array([[-5, 1, np.inf, 7]], np.float16), 100_000), [[0, 1, np.inf, 7]])
    assert_array_equal(detops.clip_boxes([[math.nan, -1.0, 9.0, 9.0]], (5, 4)), [[math.nan, 0, 4, 5]])


def test_a_nan_in_a_box() -> None:
    boxes = [[0.0, 0, math.nan, 5], [0, 0, 5, 5]]
    assert_array_equal(detops.box_area(boxes), [math.nan, 25])
    assert_array_equal(detops.remove_small_boxes(boxes, -10), [1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_small_boxes(dtype: str) -> None:
    boxes = np.array([[0, 0, 10, 10], [1, 1, 4, 9], [0, 0, 3, 3], [0, 0, 2, 9]], dtype)
    kept = detops.remove_small_boxes(boxes, 3)
    assert kept.dtype == np.int64
    assert_array_equal(kept, [0, 1, 2])
    assert detops.remove_small_boxes([], 3).shape == (0,)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "float32", "int64"])
def test_boxes_of_masks(dtype: str) -> None:
    masks = np.zeros((4, 5, 9), dtype)
    masks[0, 1:3, 2:8] = 1
    masks[1, 4, 8] = masks[1, 0, 3] = 1
    masks[3] = 1
    boxes = detops.masks_to_boxes(masks)
    assert boxes.dtype == np.float32
    assert_array_equal(boxes, [[2, 1, 7, 2], [3, 0, 8, 4], [0, 0, 0, 0], [0, 0, 8, 4]])
    assert detops.masks_to_boxes([]).shape == (0, 4)
    assert_array_equal(detops.masks_to_boxes(np.zeros((2, 0, 3), bool)), np.zeros((2, 4)))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int16"])
@pytest.mark.parametrize("target", UPRIGHT)
@pytest.mark.parametrize("source", UPRIGHT)
def test_upright_formats(source: str, target: str, dtype: str) -> None:
    boxes = some_boxes(dtype, 2, 5)
    rows = boxes.astype(np.float64).reshape(-1, 4)
    wanted = np.array([oracle.FROM_CORNERS[target](oracle.TO_CORNERS[source](row)) for row in rows])
    result = detops.box_convert(boxes, source, target)
    assert (result.shape, result.dtype) == (boxes.shape, result_dtype(dtype))
    assert_allclose(result.reshape(-1, 4), wanted, rtol=0, atol=slack(result.dtype, wanted))
    assert not np.shares_memory(result, boxes)


@pytest.mark.parametrize("clockwise", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_turned_formats(dtype: str, clockwise: bool) -> None:
    boxes = np.concatenate([RNG.uniform(1, 50, (40, 4)), RNG.uniform(-3, 3, (40, 1))], axis=1).astype(dtype)
    wanted = np.array([oracle.turned_corners(row, clockwise) for row in boxes.astype(np.float64)])
    corners = detops.box_convert(boxes, "cxcywha", "xyxyxyxy", clockwise=clockwise)
    assert corners.dtype == dtype
    assert_allclose(corners, wanted, rtol=0, atol=slack(corners.dtype, wanted))
    back = detops.box_convert(corners, "xyxyxyxy", "cxcywha", clockwise=clockwise)
    assert_allclose(back, boxes, rtol=0, atol=32 * slack(corners.dtype, wanted))
    around = detops.box_convert(boxes, "cxcywha", "xyxy", clockwise=clockwise)
    pairs = wanted.reshape(-1, 4, 2)
    assert_allclose(around, np.hstack([pairs.min(1), pairs.max(1)]), rtol=0, atol=slack(corners.dtype, wanted))
    for target in ("xywh", "cxcywh"):
        converted = detops.box_convert(boxes, "cxcywha", target, clockwise=clockwise)
        assert_allclose(
            converted, detops.box_convert(around, "xyxy", target), rtol=0, atol=slack(corners.dtype, wanted)
        )


def test_turned_boxes_are_those_of_the_overlaps() -> None:
    """A box, and the one that its corners say, overlap wholly; turned the other way, they don't."""
    boxes = np.array([[10.0, 20, 8, 3, 0.7]])
    for clockwise in (True, False):
        corners = detops.box_convert(boxes, "cxcywha", "xyxyxyxy", clockwise=clockwise)
        same = detops.box_convert(corners, "xyxyxyxy", "cxcywha")
        assert (detops.box_iou_rotated(boxes, same)[0, 0] > 0.999) == clockwise


@pytest.mark.parametrize("source", UPRIGHT)
def test_an_upright_box_is_a_turned_one(source: str) -> None:
    boxes = some_boxes("float64", 5)
    turned = detops.box_convert(boxes, source, "cxcywha")
    assert_array_equal(turned[:, 4], 0)
    assert_allclose(turned[:, :4], detops.box_convert(boxes, source, "cxcywh"))
    corners = detops.box_convert(boxes, source, "xyxyxyxy")
    assert_allclose(corners, detops.box_convert(boxes, source, "xyxy")[:, [0, 1, 2, 1, 2, 3, 0, 3]])


def test_empty_boxes_keep_their_columns() -> None:
    for source in (*UPRIGHT, *TURNED):
        for target, columns in (("xyxy", 4), ("cxcywha", 5), ("xyxyxyxy", 8)):
            assert detops.box_convert([], source, target).shape == (0, columns)


@pytest.mark.parametrize("bins", [1, 2, 16])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_distances(dtype: str, bins: int) -> None:
    distances = RNG.normal(size=(2, 5, 4 * bins)).astype(dtype)
    points, strides = RNG.integers(0, 99, (5, 2)), np.array([8, 8, 16, 16, 32])
    boxes = detops.decode_distance(distances, points, strides=strides, bins=bins)
    assert (boxes.dtype, boxes.shape) == (dtype, (2, 5, 4))
    for image in range(2):
        for at in range(5):
            logits = distances[image, at].astype(np.float64).reshape(4, bins)
            sides = logits[:, 0] if bins == 1 else [oracle.mean_of(side) for side in logits]
            wanted = oracle.from_distances(sides, *points[at], strides[at])
            assert_allclose(boxes[image, at], wanted, rtol=0, atol=8 * slack(boxes.dtype, np.array(wanted)))
    turned = detops.decode_distance(np.moveaxis(distances, -1, 1), points.T, strides=strides, bins=bins, axis=1)
    assert_array_equal(turned, np.moveaxis(boxes, -1, 1))


def test_order_and_forms_of_distances() -> None:
    assert_array_equal(detops.decode_distance([[1.0, 2, 3, 4]], [[10, 20]], order="tblr"), [[7, 19, 14, 22]])
    assert_array_equal(detops.decode_distance([1.0, 2, 3, 4], [10, 20], strides=2), [8, 16, 16, 28])
    assert detops.decode_distance([], []).shape == (0, 4)
    assert_array_equal(detops.decode_distance([[1e4, 0.0] * 4], [[0, 0]], bins=2), [[0, 0, 0, 0]])
    assert np.isnan(detops.decode_distance([[math.nan, 1.0, 1, 1]], [[0, 0]])[0, 0])


LEVELS = {"yolov3": 2 * 8, "yolov5": 2 * 8, "yolox": 8, "yolov8": 4 * 3 + 3}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("form", LEVELS)
def test_yolo(form: str, dtype: str) -> None:
    maps = [RNG.normal(size=(2, LEVELS[form], *cells)).astype(dtype) for cells in ((2, 3), (1, 2))]
    anchors = [[[8, 9], [20, 10]], [[30, 40], [50, 20]]] if form in ("yolov3", "yolov5") else None
    boxes, scores = detops.decode_yolo(maps, (8, 16), form=form, anchors=anchors, bins=3)
    for image in range(2):
        wanted = [
            pair
            for at, stride in enumerate((8, 16))
            for pair in oracle.yolo_level(maps[at][image], stride, form, anchors and anchors[at], 3)
        ]
        for result, each in zip((boxes, scores), zip(*wanted, strict=True), strict=True):
            assert result.dtype == dtype
            assert_allclose(result[image], each, rtol=0, atol=4 * slack(result.dtype, np.array(each)))


@pytest.mark.parametrize("form", LEVELS)
def test_yolo_of_what_went_through_the_sigmoid(form: str) -> None:
    level = RNG.normal(size=(1, LEVELS[form] if form[-1] in "x8" else 8, 2, 2))
    anchors = [[[8, 9]]] if form in ("yolov3", "yolov5") else None
    done = level.copy()
    gone = {"yolov3": [0, 1, 4, 5, 6, 7], "yolov5": [*range(8)], "yolox": [4, 5, 6, 7], "yolov8": [12, 13, 14]}[form]
    done[:, gone] = 1 / (1 + np.exp(-level[:, gone]))
    wanted = detops.decode_yolo([level], [8], form=form, anchors=anchors, bins=3)
    for ours, theirs in zip(
        detops.decode_yolo([done], [8], form=form, anchors=anchors, bins=3, activated=True), wanted, strict=True
    ):
        assert_allclose(ours, theirs)


def test_large_logits_give_no_warning() -> None:
    level = np.array([0.0, 0, -1000, 0, -1000, 1000, -1000], np.float32).reshape(1, 7, 1, 1)
    boxes, scores = detops.decode_yolo([level], [8], form="yolox")
    assert_array_equal(boxes, [[[0, -4, 0, 4]]])
    assert_array_equal(scores, [[[0, 0]]])


def exported(name: str) -> tuple[list[np.ndarray], np.ndarray, onnx.ModelProto]:
    """Run an exported model; return what its last convolutions give, and its output."""
    model = onnx.load(DATA / "exports" / f"{name}.ts.onnx")
    heads = [node.output[0] for node in model.graph.node if node.op_type == "Conv" and "/d/" not in node.name]
    model.graph.output.extend(onnx.helper.make_tensor_value_info(head, 1, None) for head in heads)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    random = np.random.default_rng(0)
    feeds = {name: random.normal(size=(1, 8, size, size)).astype(np.float32) for name, size in (("a", 8), ("c", 4))}
    output, *maps = session.run(None, feeds)
    return maps, output, model


def anchors_of(model: onnx.ModelProto) -> np.ndarray:
    """Find the anchors among the constants: of shape (1, 3, 1, 1, 2), or spread over the cells."""
    values = [numpy_helper.to_array(tensor) for tensor in model.graph.initializer]
    values += [numpy_helper.to_array(node.attribute[0].t) for node in model.graph.node if node.op_type == "Constant"]
    found = [
        value[0, :, 0, 0]
        for value in values
        if value.ndim == 5 and value.shape[1] == 3 and np.ptp(value[0, 0, :, :, 0]) == 0
    ]
    assert len(found) == 2
    return np.array(found)


@pytest.mark.parametrize("name", ["yolov3", "yolov5"])
def test_yolo_with_anchors_as_exported(name: str) -> None:
    maps, output, model = exported(f"form_{name}")
    boxes, scores = detops.decode_yolo(maps, (8, 16), form=name, anchors=anchors_of(model))
    assert_allclose(boxes, detops.box_convert(output[..., :4], "cxcywh", "xyxy"), rtol=1e-5, atol=1e-3)
    assert_allclose(scores, output[..., 4:5] * output[..., 5:], rtol=1e-5, atol=1e-6)


def test_yolov8_as_exported() -> None:
    maps, output, _ = exported("form_yolov8")
    levels = [np.concatenate([maps[2 * at], maps[2 * at + 1]], axis=1) for at in (0, 1)]
    boxes, scores = detops.decode_yolo(levels, (8, 16), form="yolov8")
    assert_allclose(boxes, detops.box_convert(output[:, :4].swapaxes(1, 2), "cxcywh", "xyxy"), rtol=1e-5, atol=1e-3)
    assert_allclose(scores, output[:, 4:].swapaxes(1, 2), rtol=1e-5, atol=1e-6)


def test_yolox_as_exported() -> None:
    maps, output, _ = exported("form_yolox")
    levels = [np.concatenate(maps[3 * at : 3 * at + 3], axis=1) for at in (0, 1)]
    boxes, scores = detops.decode_yolo(levels, (8, 16), form="yolox")
    assert_allclose(boxes, detops.box_convert(output[..., :4], "cxcywh", "xyxy"), rtol=1e-5, atol=1e-3)
    assert_allclose(scores, output[..., 4:5] * output[..., 5:], rtol=1e-5, atol=1e-6)


class OnGpu:
    """What looks like an array on a GPU."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": (1, 4), "typestr": "<f4", "data": (0, False), "version": 3}


LEVEL, BOX = np.zeros((1, 8, 2, 2), np.float32), np.zeros((1, 4), np.float32)
REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "area of a GPU's boxes": (lambda: detops.box_area(OnGpu()), TypeError, "boxes: expected an array in host memory"),
    "area of bools": (lambda: detops.box_area(np.zeros((1, 4), bool)), TypeError, "boxes: expected dtype float16"),
    "area of five numbers": (
        lambda: detops.box_area(np.zeros((1, 5))),
        ValueError,
        r"boxes: expected shape \(\.\.\., 4\)",
    ),
    "area of a number": (lambda: detops.box_area(1.0), ValueError, "boxes: expected shape"),
    "clip to floats": (lambda: detops.clip_boxes(BOX, (1.5, 2)), TypeError, "size: expected an integer"),
    "clip to less than nothing": (lambda: detops.clip_boxes(BOX, (-1, 2)), ValueError, "size: expected at least 0"),
    "clip to three sizes": (lambda: detops.clip_boxes(BOX, (1, 2, 3)), ValueError, "size: expected an int or"),
    "clip text": (lambda: detops.clip_boxes(["a"], 5), TypeError, "boxes: expected dtype"),
    "small in three axes": (lambda: detops.remove_small_boxes(BOX[None], 1), ValueError, "num_boxes"),
    "small of NaN": (lambda: detops.remove_small_boxes(BOX, math.nan), ValueError, "min_size: expected a finite"),
    "masks of two axes": (lambda: detops.masks_to_boxes(np.zeros((2, 2))), ValueError, "masks: expected shape"),
    "masks of text": (lambda: detops.masks_to_boxes([[["a"]]]), TypeError, "masks: expected a real dtype"),
    "an unknown format": (lambda: detops.box_convert(BOX, "xyxy", "yxyx"), ValueError, "out_fmt: expected one of"),
    "a format that isn't text": (lambda: detops.box_convert(BOX, 1, "xyxy"), ValueError, "in_fmt: expected one of"),
    "four numbers with an angle": (lambda: detops.box_convert(BOX, "cxcywha", "xyxy"), ValueError, "5"),
    "clockwise or not": (lambda: detops.box_convert(BOX, "xyxy", "xywh", clockwise=2), TypeError, "clockwise"),
    "integers as distances": (lambda: detops.decode_distance([[1, 2, 3, 4]], [[0, 0]]), TypeError, "distances"),
    "three distances": (
        lambda: detops.decode_distance(np.zeros((2, 3)), [[0, 0]]),
        ValueError,
        "distances: expected 4",
    ),
    "points of three": (lambda: detops.decode_distance(BOX, [[0, 0, 0]]), ValueError, "points: expected 2"),
    "more points": (lambda: detops.decode_distance(BOX, np.zeros((2, 2))), ValueError, "points: expected leading"),
    "more strides": (
        lambda: detops.decode_distance(BOX, [[0, 0]], strides=[1, 2]),
        ValueError,
        "strides: expected a shape",
    ),
    "no bins": (lambda: detops.decode_distance(BOX, [[0, 0]], bins=0), ValueError, "bins: expected at least 1"),
    "an unknown order": (lambda: detops.decode_distance(BOX, [[0, 0]], order="rtlb"), ValueError, "order: expected"),
    "no such axis": (lambda: detops.decode_distance(BOX, [[0, 0]], axis=2), ValueError, "axis: expected an axis"),
    "an axis that points lack": (
        lambda: detops.decode_distance(np.zeros((4, 2, 2)), np.zeros((2, 2)), axis=0),
        ValueError,
        "points: expected 2 elements along",
    ),
    "no maps": (lambda: detops.decode_yolo([], [], form="yolox"), ValueError, "maps: expected a sequence"),
    "maps of other batches": (
        lambda: detops.decode_yolo([LEVEL, LEVEL.repeat(2, 0)], [8, 16], form="yolox"),
        ValueError,
        r"maps\[1\]: expected shape \(1,",
    ),
    "maps of three axes": (lambda: detops.decode_yolo([LEVEL[0]], [8], form="yolox"), ValueError, r"maps\[0\]"),
    "maps of integers": (lambda: detops.decode_yolo([LEVEL.astype(int)], [8], form="yolox"), TypeError, r"maps\[0\]"),
    "one stride too many": (
        lambda: detops.decode_yolo([LEVEL], [8, 16], form="yolox"),
        ValueError,
        "strides: expected 1",
    ),
    "a stride of 0": (lambda: detops.decode_yolo([LEVEL], [0], form="yolox"), ValueError, r"strides\[0\]: expected"),
    "an unknown form": (lambda: detops.decode_yolo([LEVEL], [8], form="yolov1"), ValueError, "form: expected one of"),
    "no anchors": (lambda: detops.decode_yolo([LEVEL], [8], form="yolov5"), ValueError, "anchors: expected shape"),
    "anchors of nobody": (
        lambda: detops.decode_yolo([LEVEL], [8], form="yolox", anchors=[[[1, 2]]]),
        ValueError,
        "anchors: expected none",
    ),
    "anchors of two levels": (
        lambda: detops.decode_yolo([LEVEL], [8], form="yolov5", anchors=[[[1, 2]]] * 2),
        ValueError,
        "anchors: expected shape",
    ),
    "channels of three anchors": (
        lambda: detops.decode_yolo([LEVEL], [8], form="yolov5", anchors=[[[1, 2]] * 3]),
        ValueError,
        r"maps\[0\]: expected 3 \* \(5 \+ num_classes\) channels, got 8",
    ),
    "no class": (lambda: detops.decode_yolo([LEVEL[:, :5]], [8], form="yolox"), ValueError, "5 [+] num_classes"),
    "bins that take all": (
        lambda: detops.decode_yolo([LEVEL], [8], form="yolov8", bins=2),
        ValueError,
        "8 [+] num_classes",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_arguments(name: str) -> None:
    call, kind, message = REFUSED[name]
    with pytest.raises(kind, match=message) as error:
        call()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("function", "name", "words"),
    [
        (detops.box_convert, "in_fmt", COLUMNS),
        (detops.box_convert, "out_fmt", COLUMNS),
        (detops.decode_distance, "order", ORDERS),
        (detops.decode_yolo, "form", FORMS),
    ],
)
def test_words_are_types(function, name, words):
    """A type checker refuses a word that the function does."""
    assert set(get_args(get_type_hints(function)[name])) == set(words)
