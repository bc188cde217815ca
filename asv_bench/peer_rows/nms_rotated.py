"""nms_rotated against powerboxes and OpenCV, where they are installed."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import detops
from asv_bench.benchmarks.box_iou_rotated import rotated_boxes_of
from asv_bench.peer import Row
from asv_bench.peer_rows.box_iou_rotated import in_degrees

THRESHOLD = 0.1


def by_powerboxes(name: str, boxes: np.ndarray, scores: np.ndarray) -> Callable[[], Any]:
    """A function of powerboxes."""
    given = in_degrees(boxes), scores.astype(np.float64)

    def call() -> Any:
        import powerboxes

        return getattr(powerboxes, name)(*given, THRESHOLD, 0.0)

    return call


def by_opencv(boxes: np.ndarray, scores: np.ndarray) -> Callable[[], Any]:
    """OpenCV's function, which takes lists."""
    given = [((x, y), (w, h), angle) for x, y, w, h, angle in in_degrees(boxes).tolist()]

    def call() -> Any:
        import cv2

        return cv2.dnn.NMSBoxesRotated(given, scores.tolist(), 0.0, THRESHOLD)

    return call


def rows() -> Iterator[Row]:
    """Boxes on an image of 1024 pixels."""
    rng = np.random.default_rng(0)
    for count, target in ((1_000, 10), (10_000, 50)):
        boxes = rotated_boxes_of(rng, count).astype(np.float32)
        scores = rng.uniform(0, 1, count).astype(np.float32)
        names = ("rotated_nms", "rtree_rotated_nms")
        peers = {f"powerboxes {name}": by_powerboxes(name, boxes, scores) for name in names}
        yield Row(
            f"nms_rotated of {count}",
            lambda boxes=boxes, scores=scores: detops.nms_rotated(boxes, scores, THRESHOLD),
            {**peers, "opencv": by_opencv(boxes, scores)},
            target=target,
            against="powerboxes rotated_nms",
        )
