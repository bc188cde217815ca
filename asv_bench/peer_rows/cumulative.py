"""cummax against NumPy's running maximum, which finds no indices."""

from collections.abc import Iterator

import numpy as np

import detops
from asv_bench.peer import Row


def rows() -> Iterator[Row]:
    """Along rows and along columns, of noise and of noise that rises."""
    noise = np.random.default_rng(0).random((64, 100_000), dtype=np.float32)
    rising = noise + np.arange(100_000, dtype=np.float32) / 10
    for text, x, axis, target in (
        ("rows", noise, 1, 2.5),
        ("columns", np.ascontiguousarray(noise.T), 0, 8),
        ("rows, noisy rise", rising, 1, None),
        ("columns, noisy rise", np.ascontiguousarray(rising.T), 0, None),
    ):
        yield Row(
            f"cummax {text} {x.shape}",
            lambda x=x, axis=axis: detops.cummax(x, axis),
            {"numpy": lambda x=x, axis=axis: np.maximum.accumulate(x, axis)},
            target=target,
            against="numpy",
        )
