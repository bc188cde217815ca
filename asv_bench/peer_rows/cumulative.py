"""cummax beside NumPy, whose running maximum finds no indices."""

from collections.abc import Iterator
from functools import partial

import numpy as np

import detops
from asv_bench.peer import Row


def rows() -> Iterator[Row]:
    """The maximum along rows and along columns."""
    rng = np.random.default_rng(0)
    for shape, axis, target in (((64, 100_000), 1, 2.5), ((100_000, 64), 0, 8.0)):
        x = rng.standard_normal(shape, np.float32)
        yield Row(
            f"cummax {shape} axis {axis}",
            partial(detops.cummax, x, axis),
            {"numpy": partial(np.maximum.accumulate, x, axis=axis)},
            target,
            against="numpy",
        )
