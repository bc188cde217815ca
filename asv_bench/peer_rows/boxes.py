"""decode_bbox against the formula as one writes it in NumPy."""

from collections.abc import Iterator

import numpy as np

import detops
from asv_bench.peer import Row

CLIP = 4.135


def decode_in_numpy(t: np.ndarray, anchors: np.ndarray) -> np.ndarray:
    """Boxes from predictions, a temporary array for each step."""
    half = t.dtype.type(0.5)
    size = anchors[:, 2:] - anchors[:, :2]
    centre = t[:, :2] * size + (anchors[:, :2] + half * size)
    reach = np.exp(np.minimum(t[:, 2:], t.dtype.type(CLIP))) * size * half
    return np.concatenate([centre - reach, centre + reach], 1)


def rows() -> Iterator[Row]:
    """A million boxes."""
    rng = np.random.default_rng(0)
    low = rng.uniform(0, 600, (1_000_000, 2))
    anchors = np.concatenate([low, low + rng.uniform(4, 200, low.shape)], 1).astype(np.float32)
    t = rng.normal(0, 0.3, anchors.shape).astype(np.float32)
    yield Row(
        "decode_bbox 1 million boxes",
        lambda: detops.decode_bbox(t, anchors, decode_clip=CLIP),
        {"numpy": lambda: decode_in_numpy(t, anchors)},
        target=30,
        against="numpy",
    )
