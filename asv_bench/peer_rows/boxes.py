"""decode_bbox beside the formula in NumPy."""

from collections.abc import Iterator
from functools import partial

import numpy as np

import detops
from asv_bench.peer import Row


def formula(predictions: np.ndarray, anchors: np.ndarray, clip: float) -> np.ndarray:
    """decode_bbox as it is usually written in NumPy."""
    size = anchors[:, 2:] - anchors[:, :2]
    centre = predictions[:, :2] * size + (anchors[:, :2] + anchors[:, 2:]) / 2
    half = np.exp(np.minimum(predictions[:, 2:], clip)) * size / 2
    return np.concatenate([centre - half, centre + half], axis=1)


def rows() -> Iterator[Row]:
    """A million boxes."""
    rng = np.random.default_rng(0)
    low = rng.uniform(0, 1000, (1_000_000, 2))
    anchors = np.concatenate([low, low + rng.uniform(8, 300, low.shape)], 1).astype(np.float32)
    predictions = rng.normal(0, 0.5, anchors.shape).astype(np.float32)
    clip = float(np.log(1000 / 16))
    yield Row(
        "decode_bbox 1,000,000 boxes",
        partial(detops.decode_bbox, predictions, anchors, decode_clip=clip),
        {"numpy": partial(formula, predictions, anchors, clip)},
        30.0,
        against="numpy",
    )
