"""instance_norm against ONNX Runtime."""

from collections.abc import Iterator

import numpy as np

import detops
from asv_bench.onnx_session import one_node
from asv_bench.peer import Row


def rows() -> Iterator[Row]:
    """Large maps, and many small ones.

    ONNX Runtime keeps the memory of its result from one run to the next. Ours is measured with ``out=``, which does
    the same, and without, where the system hands out fresh pages in every call.
    """
    rng = np.random.default_rng(0)
    for shape in ((1, 64, 512, 512), (8, 256, 64, 64)):
        inputs = {"x": rng.standard_normal(shape, dtype=np.float32)}
        inputs |= {name: rng.random(shape[1], dtype=np.float32) for name in ("scale", "bias")}
        for text, out in (("", None), (", out=", np.empty_like(inputs["x"]))):
            yield Row(
                f"instance_norm {shape}{text}",
                lambda inputs=inputs, out=out: detops.instance_norm(**inputs, out=out),
                {"onnxruntime": one_node("InstanceNormalization", inputs)},
                target=1.2,
            )
