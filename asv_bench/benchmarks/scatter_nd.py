"""Updates at index tuples."""

import numpy as np

from .common import Benchmark


class ScatterNd(Benchmark):
    """Scalars, rows, and pairs of indices."""

    operator = "scatter_nd"
    dtypes = ("float16", "float32", "float64", "int32")
    sizes = {
        "scalars": ((500_000,), 1, 500_000, "none"),
        "scalars added": ((500_000,), 1, 500_000, "add"),
        "pairs": ((700, 700), 2, 500_000, "none"),
        "rows": ((20_000, 256), 1, 10_000, "none"),
        "rows added": ((20_000, 256), 1, 10_000, "add"),
    }

    def arguments(self, rng, dtype, shape, depth, count, reduction):
        data = rng.integers(0, 100, shape).astype(dtype)
        indices = np.stack([rng.integers(0, length, count) for length in shape[:depth]], 1)
        updates = rng.integers(0, 100, (count, *shape[depth:])).astype(dtype)
        return (data, indices, updates), {"reduction": reduction}
