"""Non-maximum suppression."""

import numpy as np

from .common import Benchmark


def boxes_at(rng, count, dtype, spacing=30.0):
    """Boxes of 10 to 100 pixels a side, one in each spacing x spacing pixels, and their scores."""
    low = rng.uniform(0, spacing * count**0.5, (count, 2))
    boxes = np.concatenate([low, low + rng.uniform(10, 100, (count, 2))], axis=1)
    return boxes.astype(dtype), rng.random(count).astype(dtype)


class Nms(Benchmark):
    """All boxes against each other, at one density."""

    operator = "nms"
    sizes = {"small": (100,), "1000": (1000,), "10000": (10_000,), "50000": (50_000,)}

    def arguments(self, rng, dtype, count):
        return (*boxes_at(rng, count, dtype), 0.5), {}


class BatchedNms(Benchmark):
    """As many labels as COCO has."""

    operator = "batched_nms"
    sizes = {"1000": (1000,), "50000": (50_000,)}

    def arguments(self, rng, dtype, count):
        return (*boxes_at(rng, count, dtype, 3.0), rng.integers(0, 80, count), 0.5), {}


class NonMaxSuppression(Benchmark):
    """The boxes of a one-stage detector: few of its scores are high."""

    operator = "non_max_suppression"
    sizes = {"small": (4, 100), "coco": (80, 8400)}

    def arguments(self, rng, dtype, classes, count):
        boxes, _ = boxes_at(rng, count, dtype, 7.0)
        scores = rng.beta(0.3, 12, (1, classes, count)).astype(dtype)
        return (boxes[None], scores, 100, 0.45, 0.25), {}


class NonMaxSuppressionPadded(NonMaxSuppression):
    """The same as MMCV has it."""

    operator = "non_max_suppression_padded"
