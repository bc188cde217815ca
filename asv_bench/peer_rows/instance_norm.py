"""instance_norm against ONNX Runtime."""

from collections.abc import Iterator

import numpy as np

import detops
from asv_bench.onnx_session import one_node
from asv_bench.peer import Row


def rows() -> Iterator[Row]:
    """Large maps, and many small ones."""
    rng = np.random.default_rng(0)
    for shape in ((1, 64, 512, 512), (8, 256, 64, 64)):
        inputs = {"x": rng.standard_normal(shape, dtype=np.float32)}
        inputs |= {name: rng.random(shape[1], dtype=np.float32) for name in ("scale", "bias")}
        yield Row(
            f"instance_norm {shape}",
            lambda inputs=inputs: detops.instance_norm(**inputs),
            {"onnxruntime": one_node("InstanceNormalization", inputs)},
            target=1.2,
        )
