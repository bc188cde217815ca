"""What type checkers make of calls. mypy reads this file, and refuses each comment below that hides no error.

Nothing runs it.
"""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import detops

boxes = np.zeros((3, 4), np.float32)
scores = np.zeros(3, np.float32)
features = np.zeros((1, 2, 8, 8), np.float32)
rois = np.zeros((3, 5), np.float32)

assert_type(detops.nms(boxes, scores, 0.5), NDArray[np.int64])
assert_type(detops.nms_rotated(np.zeros((3, 5)), scores, 0.1), NDArray[np.int64])
assert_type(detops.non_max_suppression_padded(boxes[None], scores[None, None]), NDArray[np.int32])
assert_type(detops.box_iou(boxes, [[0, 0, 1, 1]], mode="giou"), NDArray[np.floating[Any]])
assert_type(detops.roi_align(features, rois, (7, 7), mode="max"), NDArray[np.floating[Any]])
assert_type(detops.cummax(scores).indices, NDArray[np.int64])
dets, kept = detops.soft_nms(boxes, scores, method="gaussian")
assert_type(kept, NDArray[np.int64])
with detops.use_backend("numba"):
    detops.decode_bbox(boxes, boxes, anchor_form="center")
assert_type(detops.box_area(boxes), NDArray[np.floating[Any]])
assert_type(detops.remove_small_boxes(boxes, 2), NDArray[np.int64])
detops.box_convert(boxes, "cxcywh", "xyxy")
kept = detops.numba.nms(boxes, scores, 0.5)
session = detops.onnx.session("model.onnx")

detops.box_iou(boxes, boxes, mode="ciouu")  # type: ignore[arg-type]
detops.box_iou_rotated(boxes, boxes, mode="giou")  # type: ignore[arg-type]
detops.decode_bbox(boxes, boxes, anchor_form="middle")  # type: ignore[arg-type]
detops.grid_sample(features, features, mode="lanczos")  # type: ignore[arg-type]
detops.grid_sample(features, features, padding_mode="wrap")  # type: ignore[arg-type]
detops.roi_align(features, rois, 7, mode="mean")  # type: ignore[arg-type]
detops.scatter_nd(boxes, [[0]], boxes[:1], reduction="sum")  # type: ignore[arg-type]
detops.soft_nms(boxes, scores, method="softest")  # type: ignore[arg-type]
detops.box_convert(boxes, "cxcywh", "xyxy_")  # type: ignore[arg-type]
detops.decode_distance(boxes, boxes[:, :2], order="lrtb")  # type: ignore[arg-type]
detops.decode_yolo([features], [8], form="yolo")  # type: ignore[arg-type]
detops.nms(boxes, scores, 0.5, backend="gpu")  # type: ignore[arg-type]
detops.use_backend("torch")  # type: ignore[arg-type]
detops.nms(boxes, scores, "0.5")  # type: ignore[arg-type]
detops.nms(boxes, scores, 0.5, None)  # type: ignore[call-arg]
