"""Running extremes."""

from .common import Benchmark


class Cummax(Benchmark):
    """Along rows, and along columns."""

    operator = "cummax"
    dtypes = ("float16", "float32", "float64", "int32", "uint8")
    sizes = {"rows": ((64, 100_000), 1), "columns": ((100_000, 64), 0), "small": ((4, 100), 1)}

    def arguments(self, rng, dtype, shape, axis):
        return ((rng.standard_normal(shape) * 50).clip(0, 120).astype(dtype), axis), {}


class Cummin(Cummax):
    """The minimum."""

    operator = "cummin"
