"""Sampling at the points of a grid."""

from .common import Benchmark


class GridSample(Benchmark):
    """Random points of a deep map, and every pixel of an image."""

    operator = "grid_sample"
    sizes = {
        f"{name}, {mode}": (shape, points, mode)
        for name, shape, points in (("deep", (1, 64, 64, 64), (64, 64)), ("image", (1, 3, 270, 480), (270, 480)))
        for mode in ("linear", "nearest", "cubic")
    } | {"volume, linear": ((1, 4, 32, 32, 32), (32, 32, 32), "linear")}

    def arguments(self, rng, dtype, shape, points, mode):
        grid = rng.uniform(-1.1, 1.1, (shape[0], *points, len(points))).astype(dtype)
        return (rng.standard_normal(shape).astype(dtype), grid), {"mode": mode}
