"""box_iou against the formulas as one writes them in NumPy, and powerboxes and torchvision where they are installed."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import detops
from asv_bench.peer import Row


def table(a: np.ndarray, b: np.ndarray, mode: str) -> np.ndarray:
    """Overlaps of each box with each by broadcasting, in the steps of torchvision."""
    inner = np.minimum(a[:, None, 2:], b[:, 2:]) - np.maximum(a[:, None, :2], b[:, :2])
    np.maximum(inner, 0, out=inner)
    shared = inner[..., 0] * inner[..., 1]
    areas = [(boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1]) for boxes in (a, b)]
    union = areas[0][:, None] + areas[1] - shared
    iou = shared / union
    if mode == "iou":
        return iou
    hull = np.maximum(a[:, None, 2:], b[:, 2:]) - np.minimum(a[:, None, :2], b[:, :2])
    if mode == "giou":
        area = hull[..., 0] * hull[..., 1]
        return iou - (area - union) / area
    apart = (a[:, None, :2] + a[:, None, 2:] - b[:, :2] - b[:, 2:]) / 2
    iou_of_distance = iou - (apart**2).sum(-1) / (hull**2).sum(-1)
    if mode == "diou":
        return iou_of_distance
    angles = [np.arctan((boxes[:, 2] - boxes[:, 0]) / (boxes[:, 3] - boxes[:, 1])) for boxes in (a, b)]
    v = np.float32(4 / np.pi**2) * (angles[0][:, None] - angles[1]) ** 2
    return iou_of_distance - v * v / (1 - iou + v)


def by_powerboxes(name: str, a: np.ndarray, b: np.ndarray) -> Callable[[], Any]:
    """A function of powerboxes, which gives 1 - overlap."""

    def call() -> Any:
        import powerboxes

        return getattr(powerboxes, name)(a, b)

    return call


def by_torchvision(name: str, a: np.ndarray, b: np.ndarray) -> Callable[[], Any]:
    """A function of torchvision on tensors that share the memory of the arrays."""

    def call() -> Any:
        import torch
        import torchvision

        return getattr(torchvision.ops, name)(torch.from_numpy(a), torch.from_numpy(b))

    return call


POWERBOXES = {
    "iou": ("iou_distance", "parallel_iou_distance"),
    "giou": ("giou_distance", "parallel_giou_distance"),
    "diou": ("diou_distance",),
}
TORCHVISION = {
    "iou": "box_iou",
    "giou": "generalized_box_iou",
    "diou": "distance_box_iou",
    "ciou": "complete_box_iou",
}


def rows() -> Iterator[Row]:
    """A thousand boxes with a thousand."""
    rng = np.random.default_rng(0)
    low = rng.uniform(0, 600, (2, 1000, 2))
    a, b = np.concatenate([low, low + rng.uniform(4, 200, low.shape)], -1).astype(np.float32)
    for mode, of_torchvision in TORCHVISION.items():
        peers = {"numpy": lambda mode=mode: table(a, b, mode), "torchvision": by_torchvision(of_torchvision, a, b)}
        peers |= {f"powerboxes {name}": by_powerboxes(name, a, b) for name in POWERBOXES.get(mode, ())}
        yield Row(
            f"box_iou 1000 x 1000, {mode}",
            lambda mode=mode: detops.box_iou(a, b, mode=mode),
            peers,
            target=3 if mode == "iou" else None,
            against="powerboxes parallel_iou_distance" if mode == "iou" else "numpy",
        )
