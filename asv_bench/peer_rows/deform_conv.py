"""deform_conv2d."""

from collections.abc import Iterator

import numpy as np

import detops
from asv_bench.onnx_session import one_node
from asv_bench.peer import Row


def rows() -> Iterator[Row]:
    """A modulated convolution of a backbone, against onnxruntime's and against its bare matrix product."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 256, 50, 68), dtype=np.float32)
    weight = rng.standard_normal((256, 256, 3, 3), dtype=np.float32)
    offset = rng.standard_normal((1, 18, 50, 68), dtype=np.float32)
    mask = rng.uniform(size=(1, 9, 50, 68)).astype(np.float32)
    bias = np.zeros(256, np.float32)
    matrix, columns = weight.reshape(256, -1), rng.standard_normal((256 * 9, 50 * 68), dtype=np.float32)

    def ours() -> np.ndarray:
        return detops.deform_conv2d(x, offset, weight, bias, mask=mask, padding=1)

    inputs = {"X": x, "W": weight, "offset": offset, "B": bias, "mask": mask}
    session = one_node("DeformConv", inputs, {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, opset=22)
    name = "deform_conv2d 256 to 256, 3x3, 50x68, modulated"
    yield Row(name, ours, {"onnxruntime": session}, 1.2)
    # Nothing but the product: sampling, and reading and writing maps, come on top.
    yield Row(name, ours, {"numpy's product alone": lambda: matrix @ columns}, 0.75, "numpy's product alone")
