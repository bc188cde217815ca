"""Box decoding and encoding."""

import numpy as np

from .common import Benchmark


def anchors_of(rng, count):
    """Boxes of some size."""
    low = rng.uniform(0, 1000, (count, 2))
    return np.concatenate([low, low + rng.uniform(8, 300, low.shape)], 1)


class DecodeBbox(Benchmark):
    """Boxes relative to anchors."""

    operator = "decode_bbox"
    sizes = {"million": (1_000_000,), "thousand": (1_000,)}

    def arguments(self, rng, dtype, count):
        return (rng.normal(0, 0.5, (count, 4)).astype(dtype), anchors_of(rng, count).astype(dtype)), {}


class EncodeBbox(Benchmark):
    """Anchors relative to each other."""

    operator = "encode_bbox"
    sizes = DecodeBbox.sizes

    def arguments(self, rng, dtype, count):
        return (anchors_of(rng, count).astype(dtype), anchors_of(rng, count).astype(dtype)), {}
