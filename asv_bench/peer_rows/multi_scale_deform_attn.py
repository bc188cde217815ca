"""multi_scale_deform_attn."""

from collections.abc import Iterator

import numpy as np

import detops
from asv_bench.onnx_session import one_node
from asv_bench.peer import Row


def rows() -> Iterator[Row]:
    """The encoder and the decoder of Deformable DETR, against onnxruntime's GridSample of each level.

    That is what models hold that are exported without a node of their own; their transposes and sums are left out.
    """
    rng = np.random.default_rng(0)
    shapes = np.array([[100, 134], [50, 67], [25, 34], [13, 17]])
    sizes = shapes.prod(axis=1)
    value = rng.standard_normal((1, sizes.sum(), 8, 32), dtype=np.float32)
    starts = sizes.cumsum() - sizes
    maps = [rng.standard_normal((8, 32, height, width), dtype=np.float32) for height, width in shapes]
    for name, queries in (("decoder", 300), ("encoder", int(sizes.sum()))):
        around = (1, queries, 8, 4, 4)
        locations = rng.uniform(size=(*around, 2)).astype(np.float32)
        weights = rng.uniform(size=around).astype(np.float32)
        grid = rng.uniform(-1, 1, (8, queries, 4, 2)).astype(np.float32)
        sessions = [one_node("GridSample", {"X": x, "grid": grid}, {}, opset=16) for x in maps]

        def ours(locations: np.ndarray = locations, weights: np.ndarray = weights) -> np.ndarray:
            return detops.multi_scale_deform_attn(value, shapes, starts, locations, weights)

        def theirs(sessions: list = sessions) -> None:
            for session in sessions:
                session()

        peers = {"onnxruntime": theirs}
        yield Row(f"multi_scale_deform_attn, {name}: {queries} queries, of GridSample alone", ours, peers, 5)
