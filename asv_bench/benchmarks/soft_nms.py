"""Soft non-maximum suppression."""

from .common import Benchmark
from .nms import boxes_at


class SoftNms(Benchmark):
    """Boxes of a picture."""

    operator = "soft_nms"
    sizes = {"few": (100,), "many": (1000,)}

    def arguments(self, rng, dtype, count):
        return boxes_at(rng, count, dtype, 30), {"method": "gaussian"}
