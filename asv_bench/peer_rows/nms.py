"""nms and non_max_suppression against onnxruntime's NonMaxSuppression, batched_nms against OpenCV's."""

from collections.abc import Iterator

import numpy as np

import detops
from asv_bench.benchmarks.nms import boxes_at
from asv_bench.onnx_session import one_node
from asv_bench.peer import Row


def _onnxruntime(boxes, scores, limit, iou, score=None):
    return one_node(
        "NonMaxSuppression",
        {
            "boxes": boxes,
            "scores": scores,
            "max_output_boxes_per_class": np.array([limit]),
            "iou_threshold": np.array([iou], np.float32),
            "score_threshold": None if score is None else np.array([score], np.float32),
        },
        opset=11,
    )


def _opencv(boxes, scores, labels, iou):
    corner_and_size = np.concatenate([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], 1)

    def run():
        import cv2

        return cv2.dnn.NMSBoxesBatched(corner_and_size, scores, labels, -1.0, iou)

    return run


def rows() -> Iterator[Row]:
    """One set of boxes at three sizes and three densities; labels; 80 classes with many and with few candidates."""
    rng = np.random.default_rng(0)
    for count, target in ((1000, 6), (10_000, 15), (50_000, 30)):
        for spacing in (10, 30, 60):
            boxes, scores = boxes_at(rng, count, np.float32, spacing)
            yield Row(
                f"nms {count} boxes, {spacing} px apart",
                lambda boxes=boxes, scores=scores: detops.nms(boxes, scores, 0.5),
                {"onnxruntime": _onnxruntime(boxes[None], scores[None, None], count, 0.5)},
                target=target,
            )
    boxes, scores = boxes_at(rng, 10_000, np.float32, 3.0)
    labels = rng.integers(0, 80, 10_000).astype(np.int32)
    yield Row(
        "batched_nms 10000 boxes of 80 labels",
        lambda: detops.batched_nms(boxes, scores, labels, 0.5),
        {"opencv": _opencv(boxes, scores, labels, 0.5)},
    )
    boxes, _ = boxes_at(rng, 8400, np.float32, 7.0)
    for text, scores in (
        ("most candidates", rng.random((1, 80, 8400), np.float32)),
        ("few candidates", rng.beta(0.3, 12, (1, 80, 8400)).astype(np.float32)),
    ):
        yield Row(
            f"non_max_suppression 80 classes x 8400 boxes, {text}",
            lambda scores=scores: detops.non_max_suppression(boxes[None], scores, 100, 0.45, 0.25),
            {"onnxruntime": _onnxruntime(boxes[None], scores, 100, 0.45, 0.25)},
            target=3,
        )
