"""Instance normalization."""

from .common import Benchmark


class InstanceNorm(Benchmark):
    """Large maps, and many small ones."""

    operator = "instance_norm"
    sizes = {"large maps": ((1, 64, 512, 512),), "small maps": ((8, 256, 64, 64),)}

    def arguments(self, rng, dtype, shape):
        x = rng.standard_normal(shape, dtype="float32").astype(dtype)
        return (x, rng.random(shape[1]).astype(dtype), rng.random(shape[1]).astype(dtype)), {}
