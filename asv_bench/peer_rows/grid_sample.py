"""grid_sample.

Each writes into memory that it has had before, as in a loop over frames: onnxruntime keeps what it once allocated, and
fresh pages for 16 MB cost more than sampling does.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import detops
from asv_bench.onnx_session import one_node
from asv_bench.peer import Row


def smooth_warp(height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns and rows to read from: a wave of 8 pixels."""
    y, x = np.mgrid[:height, :width].astype(np.float32)
    return x + 8 * np.sin(y / 60), y + 8 * np.cos(x / 70)


def remap(image: np.ndarray, x: np.ndarray, y: np.ndarray) -> Callable[[], Any]:
    """OpenCV's way to do it: channels innermost, positions in pixels."""
    channels_last = np.ascontiguousarray(image.transpose(1, 2, 0))
    out = np.empty_like(channels_last)

    def run() -> Any:
        import cv2

        return cv2.remap(channels_last, x, y, cv2.INTER_LINEAR, dst=out, borderMode=cv2.BORDER_CONSTANT)

    return run


def rows() -> Iterator[Row]:
    """A warp of an image, and random points of a deep map."""
    rng = np.random.default_rng(0)
    height, width = 1080, 1920
    image = rng.standard_normal((1, 3, height, width), dtype=np.float32)
    x, y = smooth_warp(height, width)
    warp = np.stack([(2 * x + 1) / width - 1, (2 * y + 1) / height - 1], -1)[None]
    peers = {"cv2.remap": remap(image[0], x, y), "onnxruntime": one_node("GridSample", {"X": image, "grid": warp})}
    warped = np.empty_like(image)
    yield Row(
        "grid_sample 1080p warp, linear",
        lambda: detops.grid_sample(image, warp, out=warped),
        peers,
        1.2,
        "cv2.remap",
    )
    maps = rng.standard_normal((4, 64, 128, 128), dtype=np.float32)
    grid = rng.uniform(-1.1, 1.1, (4, 128, 128, 2)).astype(np.float32)
    out = np.empty_like(maps)
    for mode, target in (("linear", 2.5), ("nearest", 10), ("cubic", 12)):
        yield Row(
            f"grid_sample (4, 64, 128, 128) random, {mode}",
            lambda mode=mode: detops.grid_sample(maps, grid, mode=mode, out=out),
            {"onnxruntime": one_node("GridSample", {"X": maps, "grid": grid}, {"mode": mode})},
            target,
        )
