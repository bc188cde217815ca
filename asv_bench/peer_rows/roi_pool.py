"""roi_pool beside onnxruntime's MaxRoiPool."""

from collections.abc import Iterator

import numpy as np

import detops
from asv_bench.onnx_session import one_node
from asv_bench.peer import Row
from asv_bench.peer_rows.roi_align import proposals


def rows() -> Iterator[Row]:
    """The map of a VGG network."""
    rng = np.random.default_rng(0)
    features = rng.standard_normal((1, 512, 38, 50), dtype=np.float32)
    rois = np.concatenate([np.zeros((300, 1), np.float32), proposals(rng, 300, 608, 800)], 1)
    peer = one_node(
        "MaxRoiPool", {"features": features, "rois": rois}, {"pooled_shape": [7, 7], "spatial_scale": 1 / 16}
    )
    yield Row(
        "roi_pool 300 rois",
        lambda: detops.roi_pool(features, rois, 7, spatial_scale=1 / 16),
        {"onnxruntime": peer},
        5,
    )
