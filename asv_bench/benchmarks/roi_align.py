"""RoIAlign."""

import numpy as np

from .common import Benchmark


class RoiAlign(Benchmark):
    """Proposals of 24 to 480 pixels on a map with a stride of 4 or 16."""

    operator = "roi_align"
    sizes = {
        "1000 rois, fixed grid": ((1, 256, 200, 272), 1000, 1 / 4, 2, "avg"),
        "1000 rois, adaptive grid": ((1, 256, 200, 272), 1000, 1 / 4, 0, "avg"),
        "10 rois": ((1, 256, 200, 272), 10, 1 / 4, 2, "avg"),
        "max": ((1, 256, 50, 68), 300, 1 / 16, 2, "max"),
    }

    def arguments(self, rng, dtype, shape, count, scale, ratio, mode):
        height, width = shape[2] / scale, shape[3] / scale
        reach = np.exp(rng.uniform(np.log(12), np.log(240), (count, 2)))
        center = rng.uniform(0, 1, (count, 2)) * [width, height]
        rois = np.concatenate([np.zeros((count, 1)), center - reach, center + reach], 1).astype(np.float32)
        features = rng.standard_normal(shape).astype(dtype)
        return (features, rois, 7), {"spatial_scale": scale, "sampling_ratio": ratio, "mode": mode}
