"""Overlaps of boxes."""

from .boxes import anchors_of
from .common import Benchmark


class BoxIou(Benchmark):
    """Each box with each."""

    operator = "box_iou"
    sizes = {f"{mode} {count}": (count, {"mode": mode}) for mode in ("iou", "giou", "ciou") for count in (1_000, 30)}

    def arguments(self, rng, dtype, count, options):
        return tuple(anchors_of(rng, count).astype(dtype) for _ in range(2)), options


class AlignedBoxIou(BoxIou):
    """Pairs."""

    sizes = {"iou 1000000": (1_000_000, {"aligned": True})}
