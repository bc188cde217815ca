"""decode_bbox against the formula as one writes it in NumPy, and against the memory."""

from collections.abc import Iterator

import numpy as np

import detops
from asv_bench.peer import Row

CLIP = 4.135


def decode_in_columns(t: np.ndarray, anchors: np.ndarray) -> np.ndarray:
    """Boxes from predictions, column by column, in the steps of torchvision's coder."""
    half = t.dtype.type(0.5)
    width, height = anchors[:, 2] - anchors[:, 0], anchors[:, 3] - anchors[:, 1]
    x = t[:, 0] * width + (anchors[:, 0] + half * width)
    y = t[:, 1] * height + (anchors[:, 1] + half * height)
    w = np.exp(np.minimum(t[:, 2], t.dtype.type(CLIP))) * width
    h = np.exp(np.minimum(t[:, 3], t.dtype.type(CLIP))) * height
    return np.stack([x - half * w, y - half * h, x + half * w, y + half * h], 1)


def decode_in_pairs(t: np.ndarray, anchors: np.ndarray) -> np.ndarray:
    """The same in the steps of the definition, tensorpack's: x and y together."""
    half = t.dtype.type(0.5)
    t, anchors = t.reshape(-1, 2, 2), anchors.reshape(-1, 2, 2)
    size = anchors[:, 1] - anchors[:, 0]
    center = t[:, 0] * size + (anchors[:, 0] + anchors[:, 1]) * half
    reach = np.exp(np.minimum(t[:, 1], t.dtype.type(CLIP))) * size * half
    return np.concatenate([center - reach, center + reach], 1)


def rows() -> Iterator[Row]:
    """A million boxes."""
    rng = np.random.default_rng(0)
    low = rng.uniform(0, 600, (1_000_000, 2))
    anchors = np.concatenate([low, low + rng.uniform(4, 200, low.shape)], 1).astype(np.float32)
    t = rng.normal(0, 0.3, anchors.shape).astype(np.float32)
    total = np.empty_like(t)
    yield Row(
        "decode_bbox 1 million boxes",
        lambda: detops.decode_bbox(t, anchors, decode_clip=CLIP),
        {
            "numpy": lambda: decode_in_pairs(t, anchors),
            "numpy, column by column": lambda: decode_in_columns(t, anchors),
            # As many bytes, and next to no work: no decode can be much faster.
            "numpy.add": lambda: np.add(t, anchors, out=total),
        },
        target=30,
        against="numpy",
    )
