"""Multi-scale deformable attention."""

import numpy as np

from .common import Benchmark


class MultiScaleDeformAttn(Benchmark):
    """Heads of 32 channels, four levels, four points."""

    operator = "multi_scale_deform_attn"
    sizes = {"decoder": (300, 64), "encoder": (2000, 32)}

    def arguments(self, rng, dtype, queries, side):
        shapes = np.array([[side >> level, side >> level] for level in range(4)])
        sizes = shapes.prod(axis=1)
        around = (1, queries, 8, 4, 4)
        value = rng.standard_normal((1, sizes.sum(), 8, 32)).astype(dtype)
        locations, weights = rng.uniform(-0.1, 1.1, (*around, 2)), rng.uniform(size=around)
        return (value, shapes, sizes.cumsum() - sizes, locations.astype(dtype), weights.astype(dtype)), {}
