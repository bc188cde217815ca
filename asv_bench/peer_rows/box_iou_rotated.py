"""box_iou_rotated against powerboxes, where it is installed."""

from collections.abc import Iterator

import numpy as np

import detops
from asv_bench.benchmarks.box_iou_rotated import rotated_boxes_of
from asv_bench.peer import Row
from asv_bench.peer_rows.box_iou import by_powerboxes


def in_degrees(boxes: np.ndarray) -> np.ndarray:
    """Boxes as powerboxes takes them: angles in degrees, in float64."""
    return np.concatenate([boxes[:, :4], np.degrees(boxes[:, 4:])], axis=1).astype(np.float64)


def rows() -> Iterator[Row]:
    """A thousand boxes with a thousand."""
    rng = np.random.default_rng(0)
    a, b = (rotated_boxes_of(rng, 1000).astype(np.float32) for _ in range(2))
    names = ("rotated_iou_distance", "parallel_rotated_iou_distance")
    yield Row(
        "box_iou_rotated 1000 x 1000",
        lambda: detops.box_iou_rotated(a, b),
        {f"powerboxes {name}": by_powerboxes(name, in_degrees(a), in_degrees(b)) for name in names},
        target=5,
        against=f"powerboxes {names[1]}",
    )
