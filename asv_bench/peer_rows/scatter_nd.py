"""scatter_nd against ONNX Runtime."""

from collections.abc import Iterator

import numpy as np

import detops
from asv_bench.onnx_session import one_node
from asv_bench.peer import Row


def rows() -> Iterator[Row]:
    """Scalars, and rows that move as a whole."""
    rng = np.random.default_rng(0)
    for text, slots, count, row, target in (
        ("500,000 scalars", 500_000, 500_000, (), 1.3),
        ("500,000 scalars in 4 million", 4_000_000, 500_000, (), None),
        ("10,000 rows of 256", 20_000, 10_000, (256,), None),
    ):
        data = rng.random((slots, *row), dtype=np.float32)
        indices = rng.integers(0, slots, (count, 1))
        updates = rng.random((count, *row), dtype=np.float32)
        for reduction in ("none", "add"):
            inputs = {"data": data, "indices": indices, "updates": updates}
            yield Row(
                f"scatter_nd {text}, {reduction}",
                lambda inputs=inputs, reduction=reduction: detops.scatter_nd(**inputs, reduction=reduction),
                {"onnxruntime": one_node("ScatterND", inputs, {"reduction": reduction}, opset=18)},
                target=target,
            )
