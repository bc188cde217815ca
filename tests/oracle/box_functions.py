"""Functions of boxes, box by box, in float64, from their definitions."""

import math
from collections.abc import Callable, Iterator, Sequence

Box = Sequence[float]


def area(box: Box) -> float:
    width, height = box[2] - box[0], box[3] - box[1]
    return width * height if width > 0 and height > 0 else 0.0


def clipped(box: Box, height: int, width: int) -> list[float]:
    return [min(max(number, 0), bound) for number, bound in zip(box, (width, height, width, height), strict=True)]


def turned_corners(box: Box, clockwise: bool) -> list[float]:
    """The corners of (cx, cy, w, h, angle): those of the box at angle 0, turned around its center."""
    cx, cy, w, h, angle = box
    angle = angle if clockwise else -angle
    found = []
    for dx, dy in ((-w / 2, -h / 2), (w / 2, -h / 2), (w / 2, h / 2), (-w / 2, h / 2)):
        found.append(cx + math.cos(angle) * dx - math.sin(angle) * dy)
        found.append(cy + math.sin(angle) * dx + math.cos(angle) * dy)
    return found


TO_CORNERS: dict[str, Callable[[Box], list[float]]] = {
    "xyxy": lambda b: [b[0], b[1], b[2], b[3]],
    "xywh": lambda b: [b[0], b[1], b[0] + b[2], b[1] + b[3]],
    "cxcywh": lambda b: [b[0] - b[2] / 2, b[1] - b[3] / 2, b[0] + b[2] / 2, b[1] + b[3] / 2],
}
FROM_CORNERS: dict[str, Callable[[Box], list[float]]] = {
    "xyxy": lambda b: [b[0], b[1], b[2], b[3]],
    "xywh": lambda b: [b[0], b[1], b[2] - b[0], b[3] - b[1]],
    "cxcywh": lambda b: [(b[0] + b[2]) / 2, (b[1] + b[3]) / 2, b[2] - b[0], b[3] - b[1]],
}


def sigmoid(number: float) -> float:
    return 1 / (1 + math.exp(-number))


def mean_of(logits: Sequence[float]) -> float:
    weights = [math.exp(logit) for logit in logits]
    return sum(step * weight for step, weight in enumerate(weights)) / sum(weights)


def from_distances(sides: Sequence[float], x: float, y: float, stride: float) -> list[float]:
    left, top, right, bottom = (side * stride for side in sides)
    return [x - left, y - top, x + right, y + bottom]


def yolo_level(
    level: Sequence, stride: float, form: str, anchors: Sequence | None, bins: int
) -> Iterator[tuple[list[float], list[float]]]:
    """The boxes and scores of one image's map (channels, height, width)."""
    per_anchor = len(level) // (len(anchors) if anchors is not None else 1)
    for number in range(len(anchors) if anchors is not None else 1):
        for row in range(len(level[0])):
            for column in range(len(level[0][0])):
                given = [float(channel[row][column]) for channel in level]
                given = given[number * per_anchor : (number + 1) * per_anchor]
                if form == "yolov8":
                    sides = [mean_of(given[side * bins : (side + 1) * bins]) for side in range(4)]
                    if bins == 1:
                        sides = given[:4]
                    box = from_distances(sides, (column + 0.5) * stride, (row + 0.5) * stride, stride)
                    yield box, [sigmoid(score) for score in given[4 * bins :]]
                    continue
                tx, ty, tw, th, thing, *classes = given
                if form == "yolox":
                    center, size = (tx, ty), (math.exp(tw) * stride, math.exp(th) * stride)
                elif form == "yolov3":
                    center = sigmoid(tx), sigmoid(ty)
                    size = math.exp(tw) * anchors[number][0], math.exp(th) * anchors[number][1]
                else:
                    center = 2 * sigmoid(tx) - 0.5, 2 * sigmoid(ty) - 0.5
                    size = (2 * sigmoid(tw)) ** 2 * anchors[number][0], (2 * sigmoid(th)) ** 2 * anchors[number][1]
                x, y = (center[0] + column) * stride, (center[1] + row) * stride
                box = [x - size[0] / 2, y - size[1] / 2, x + size[0] / 2, y + size[1] / 2]
                yield box, [sigmoid(thing) * sigmoid(score) for score in classes]
