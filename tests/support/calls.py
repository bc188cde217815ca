"""One ordinary call of each operator, small, or large enough for several threads."""

from collections.abc import Callable

import numpy as np

import detops
from detops._specification import OPERATORS
from tests.cases import Case

Arrays = dict[str, np.ndarray]


def boxes_of(rng: np.random.Generator, count: int, extent: float = 200.0) -> np.ndarray:
    """Boxes (x1, y1, x2, y2) of ordinary size."""
    low = rng.uniform(0, extent, (count, 2))
    return np.concatenate([low, low + rng.uniform(4, 40, (count, 2))], axis=1)


def rotated_boxes_of(rng: np.random.Generator, count: int, extent: float = 200.0) -> np.ndarray:
    """Boxes (center_x, center_y, width, height, angle) of ordinary size, turned in any direction."""
    sizes = rng.uniform(4, 40, (count, 2))
    return np.concatenate([rng.uniform(0, extent, (count, 2)), sizes, rng.uniform(-np.pi, np.pi, (count, 1))], axis=1)


def _box_iou(rng: np.random.Generator, size: int) -> Case:
    arrays = {"boxes_a": boxes_of(rng, 8 * size), "boxes_b": boxes_of(rng, 20 * size)}
    return Case("box_iou", "", arrays, {"mode": "ciou"})


def _box_iou_rotated(rng: np.random.Generator, size: int) -> Case:
    arrays = {"boxes_a": rotated_boxes_of(rng, 8 * size, 60), "boxes_b": rotated_boxes_of(rng, 10 * size, 60)}
    return Case("box_iou_rotated", "", arrays)


def _decode(rng: np.random.Generator, size: int) -> Case:
    arrays = {"box_predictions": rng.normal(0, 0.5, (200 * size, 4)), "anchors": boxes_of(rng, 200 * size)}
    return Case("decode_bbox", "", arrays, {"decode_clip": 4.0, "scales": (10, 10, 5, 5)})


def _encode(rng: np.random.Generator, size: int) -> Case:
    return Case("encode_bbox", "", {"boxes": boxes_of(rng, 200 * size), "anchors": boxes_of(rng, 200 * size)})


def _cummax(rng: np.random.Generator, size: int) -> Case:
    return Case("cummax", "", {"x": rng.integers(0, 999, (8, 200 * size)).astype(float)})


def _cummin(rng: np.random.Generator, size: int) -> Case:
    return Case("cummin", "", {"x": rng.integers(0, 999, (4 * size, 60, 30)).astype(float)}, {"axis": 1})


def _rois(rng: np.random.Generator, size: int) -> Arrays:
    count = 4 * size
    rois = np.concatenate([rng.integers(0, 2, (count, 1)), boxes_of(rng, count, 60)], axis=1)
    return {"features": rng.normal(size=(2, size, 24, 28)), "rois": rois}


def _roi_align(rng: np.random.Generator, size: int) -> Case:
    return Case("roi_align", "", _rois(rng, size), {"output_size": 3, "spatial_scale": 0.25})


def _roi_pool(rng: np.random.Generator, size: int) -> Case:
    return Case("roi_pool", "", _rois(rng, size), {"output_size": 3, "spatial_scale": 0.25})


def _nms(rng: np.random.Generator, size: int) -> Case:
    arrays = {"boxes": boxes_of(rng, 40 * size), "scores": rng.uniform(0, 1, 40 * size)}
    return Case("nms", "", arrays, {"iou_threshold": 0.4, "score_threshold": 0.05})


def _batched_nms(rng: np.random.Generator, size: int) -> Case:
    arrays = {**_nms(rng, size).arrays, "labels": rng.integers(0, 3, 40 * size)}
    return Case("batched_nms", "", arrays, {"iou_threshold": 0.4}, fixed=("labels",))


def _nms_rotated(rng: np.random.Generator, size: int) -> Case:
    boxes, scores = rotated_boxes_of(rng, 20 * size, 100), rng.uniform(0, 1, 20 * size)
    arrays = {"boxes": boxes, "scores": scores, "labels": rng.integers(0, 3, 20 * size)}
    return Case("nms_rotated", "", arrays, {"iou_threshold": 0.1}, fixed=("labels",))


def _non_max_suppression(rng: np.random.Generator, size: int) -> Case:
    arrays = {
        "boxes": np.stack([boxes_of(rng, 10 * size) for _ in range(2)]),
        "scores": rng.uniform(0, 1, (2, 3, 10 * size)),
    }
    options = {"max_output_boxes_per_class": 7, "iou_threshold": 0.4, "score_threshold": 0.3}
    return Case("non_max_suppression", "", arrays, options)


def _non_max_suppression_padded(rng: np.random.Generator, size: int) -> Case:
    plain = _non_max_suppression(rng, size)
    return Case("non_max_suppression_padded", "", plain.arrays, plain.options)


def _scatter_nd(rng: np.random.Generator, size: int) -> Case:
    arrays = {
        "data": rng.normal(size=(10 * size, 16)),
        "indices": rng.integers(-5, 10 * size, (40 * size, 1)),
        "updates": rng.normal(size=(40 * size, 16)),
    }
    return Case("scatter_nd", "", arrays, {"reduction": "add"}, fixed=("indices",))


def _deform_conv2d(rng: np.random.Generator, size: int) -> Case:
    side = 4 + size
    arrays = {
        "x": rng.normal(size=(2, 4, side, side)),
        "offset": rng.normal(0, 2, (2, 18, side, side)),
        "weight": rng.normal(size=(4, 4, 3, 3)),
        "bias": rng.normal(size=4),
    }
    return Case("deform_conv2d", "", arrays, {"padding": 1})


def _grid_sample(rng: np.random.Generator, size: int) -> Case:
    arrays = {"x": rng.normal(size=(2, 3, 12, 14)), "grid": rng.uniform(-1.2, 1.2, (2, 4 * size, 8, 2))}
    return Case("grid_sample", "", arrays)


def _instance_norm(rng: np.random.Generator, size: int) -> Case:
    arrays = {"x": rng.normal(3, 2, (2, size, 9, 11)), "scale": rng.normal(size=size), "bias": rng.normal(size=size)}
    return Case("instance_norm", "", arrays)


def _multi_scale_deform_attn(rng: np.random.Generator, size: int) -> Case:
    around = (2, 3 * size, 2, 2, 3)
    arrays = {
        "value": rng.normal(size=(2, 60, 2, 5)),
        "spatial_shapes": np.array([[6, 8], [3, 4]]),
        "level_start_index": np.array([0, 48]),
        "sampling_locations": rng.uniform(-0.2, 1.2, (*around, 2)),
        "attention_weights": rng.uniform(size=around),
    }
    return Case("multi_scale_deform_attn", "", arrays, fixed=("spatial_shapes", "level_start_index"))


def _soft_nms(rng: np.random.Generator, size: int) -> Case:
    arrays = {"boxes": boxes_of(rng, 10 * size), "scores": rng.uniform(0, 1, 10 * size)}
    return Case("soft_nms", "", arrays, {"method": "gaussian"})


MAKERS: dict[str, Callable[[np.random.Generator, int], Case]] = {
    "batched_nms": _batched_nms,
    "box_iou": _box_iou,
    "box_iou_rotated": _box_iou_rotated,
    "cummax": _cummax,
    "cummin": _cummin,
    "decode_bbox": _decode,
    "deform_conv2d": _deform_conv2d,
    "encode_bbox": _encode,
    "grid_sample": _grid_sample,
    "instance_norm": _instance_norm,
    "multi_scale_deform_attn": _multi_scale_deform_attn,
    "nms": _nms,
    "nms_rotated": _nms_rotated,
    "non_max_suppression": _non_max_suppression,
    "non_max_suppression_padded": _non_max_suppression_padded,
    "roi_align": _roi_align,
    "roi_pool": _roi_pool,
    "scatter_nd": _scatter_nd,
    "soft_nms": _soft_nms,
}

SMALL, LARGE = 2, 60


def ordinary(operator: str, size: int = SMALL) -> Case:
    """Return an ordinary call of a public operator."""
    return MAKERS[operator](np.random.default_rng(11), size)


def call(case: Case, dtype: str = "float32", **more: object) -> tuple[np.ndarray, ...]:
    """Call the operator of a case; return its results, one or many."""
    found = getattr(detops, case.operator)(**case.cast(dtype), **case.options, **more)
    return found if isinstance(found, tuple) else (found,)


def as_bytes(results: tuple[np.ndarray, ...]) -> list[bytes]:
    """Results as they lie in memory: what is equal to the bit."""
    return [result.tobytes() for result in results]


ALL = sorted(OPERATORS)
