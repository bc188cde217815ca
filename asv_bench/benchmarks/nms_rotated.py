"""Non-maximum suppression of turned boxes."""

from .box_iou_rotated import rotated_boxes_of
from .common import Benchmark


class NmsRotated(Benchmark):
    """One set of boxes, on an image of 1024 pixels."""

    operator = "nms_rotated"
    sizes = {f"{count} boxes": (count, {"iou_threshold": 0.1}) for count in (10_000, 1_000, 30)}

    def arguments(self, rng, dtype, count, options):
        return (rotated_boxes_of(rng, count).astype(dtype), rng.uniform(0, 1, count).astype(dtype)), options
