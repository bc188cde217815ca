"""soft_nms against ensemble-boxes."""

from collections.abc import Iterator

import numpy as np

import detops
from asv_bench.benchmarks.nms import boxes_at
from asv_bench.peer import Row


def rows() -> Iterator[Row]:
    """One set of a thousand boxes, with linear and gaussian weights."""
    rng = np.random.default_rng(0)
    boxes, scores = boxes_at(rng, 1000, np.float32, 30)
    # The peer takes boxes in 0..1.
    boxes = boxes / boxes.max()
    labels = np.zeros(1000, int)
    for number, method in ((1, "linear"), (2, "gaussian")):

        def theirs(number: int = number) -> object:
            import ensemble_boxes

            return ensemble_boxes.soft_nms(
                [boxes], [scores], [labels], method=number, iou_thr=0.3, sigma=0.5, thresh=0.001
            )

        yield Row(
            f"soft_nms 1000 boxes, {method}",
            lambda method=method: detops.soft_nms(boxes, scores, method=method),
            {"ensemble-boxes": theirs},
            5,
            "ensemble-boxes",
        )
