"""Overlaps of turned boxes."""

import numpy as np

from .common import Benchmark


def rotated_boxes_of(rng, count):
    """Boxes of ordinary size on an image of 1024 pixels, turned in any direction."""
    sizes = rng.uniform(8, 120, (count, 2))
    return np.concatenate([rng.uniform(0, 1024, (count, 2)), sizes, rng.uniform(-np.pi, np.pi, (count, 1))], axis=1)


class BoxIouRotated(Benchmark):
    """Each box with each."""

    operator = "box_iou_rotated"
    sizes = {f"iou {count}": (count, {}) for count in (1_000, 30)}

    def arguments(self, rng, dtype, count, options):
        return tuple(rotated_boxes_of(rng, count).astype(dtype) for _ in range(2)), options


class AlignedBoxIouRotated(BoxIouRotated):
    """Pairs."""

    sizes = {"iou 200000": (200_000, {"aligned": True})}
