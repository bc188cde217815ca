"""RoIPool."""

import numpy as np

from .common import Benchmark


class RoiPool(Benchmark):
    """Proposals of 24 to 480 pixels on the map of a VGG network."""

    operator = "roi_pool"
    sizes = {"300 rois": (300,), "10 rois": (10,)}

    def arguments(self, rng, dtype, count):
        reach = np.exp(rng.uniform(np.log(12), np.log(240), (count, 2)))
        center = rng.uniform(0, 1, (count, 2)) * [800, 608]
        rois = np.concatenate([np.zeros((count, 1)), center - reach, center + reach], 1).astype(np.float32)
        return (rng.standard_normal((1, 512, 38, 50)).astype(dtype), rois, 7), {"spatial_scale": 1 / 16}
