"""roi_align beside onnxruntime's."""

from collections.abc import Iterator

import numpy as np

import detops
from asv_bench.onnx_session import one_node
from asv_bench.peer import Row


def proposals(rng: np.random.Generator, count: int, height: int, width: int) -> np.ndarray:
    """Boxes (x1, y1, x2, y2) as a detector proposes them: from 24 to 480 pixels, of any shape, within the image."""
    size = np.exp(rng.uniform(np.log(24), np.log(480), (count, 1)))
    stretch = np.exp(rng.uniform(-0.6, 0.6, (count, 1)))
    reach = size * np.concatenate([stretch, 1 / stretch], 1) / 2
    center = rng.uniform(0, 1, (count, 2)) * [width, height]
    return np.concatenate([center - reach, center + reach], 1).clip(0, [width, height] * 2).astype(np.float32)


def row(name: str, ratio: int, count: int, target: float | None, mode: str = "avg") -> Row:
    """Rois on a map of 256 channels with a stride of 4."""
    rng = np.random.default_rng(0)
    features = rng.standard_normal((1, 256, 200, 272), dtype=np.float32)
    rois = proposals(rng, count, 800, 1088)
    images = np.zeros(count, np.int64)
    options = {"spatial_scale": 0.25, "sampling_ratio": ratio}
    peer = one_node(
        "RoiAlign",
        {"features": features, "rois": rois, "images": images},
        {"output_height": 7, "output_width": 7, "mode": mode, **options},
    )
    ours = {"avg": "avg", "max": "corner_max"}[mode]
    return Row(
        name,
        lambda: detops.roi_align(features, rois, 7, mode=ours, batch_indices=images, **options),
        {"onnxruntime": peer},
        target,
    )


def rows() -> Iterator[Row]:
    """The rows, made one after the other."""
    yield row("roi_align 1000 rois, sampling_ratio=2", 2, 1000, 4)
    yield row("roi_align 1000 rois, sampling_ratio=0", 0, 1000, 7)
    yield row("roi_align 10 rois, sampling_ratio=2", 2, 10, None)
    yield row("roi_align 1000 rois, sampling_ratio=2, max", 2, 1000, None, "max")
