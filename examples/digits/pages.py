"""Make pages of handwritten digits: scikit-learn's scanned digits, pasted at several sizes.

scikit-learn's `load_digits` holds 1797 real scans of 8x8 pixels. They are split by index, so that no digit
is in two parts: training 0-1196, validation 1197-1396, test 1397-1796.

Run as a script, it makes the demo's page of test digits, the first from the seed that shows all ten labels::

    python examples/digits/pages.py src/detops/data/digits
"""

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter
from sklearn.datasets import load_digits

from detops.demo import Boxes

PARTS = {"train": range(1197), "validation": range(1197, 1397), "test": range(1397, 1797)}
HEIGHT, WIDTH = 256, 320
SMALLEST, LARGEST = 20, 56  # the side of the pasted 8x8 scan, in pixels
GAP = 3  # free pixels between two digits

Array = NDArray[np.float64]
Place = tuple[int, int, int, int]


@dataclass(frozen=True)
class Page:
    """A page of uint8 gray levels, the digits on it, and their indices in `load_digits`."""

    image: NDArray[np.uint8]
    truth: Boxes
    indices: NDArray[np.int64]


class PageMaker:
    """Makes pages from one part of the digits; pages differ by the generator `rng` alone."""

    def __init__(self, part: str) -> None:
        digits = load_digits()
        self._scans, self._labels = digits.images / 16, digits.target
        self._part = np.array(PARTS[part])

    def __call__(self, rng: np.random.Generator, height: int = HEIGHT, width: int = WIDTH, most: int = 16) -> Page:
        ink = np.zeros((height, width))
        boxes: list[Place] = []
        indices = []
        for index in rng.choice(self._part, rng.integers(most // 2, most + 1), replace=False):
            glyph = _glyph(self._scans[index], rng)
            place = _free_place(glyph.shape, boxes, (height, width), rng)
            if place is not None:
                x1, y1, x2, y2 = place
                ink[y1:y2, x1:x2] = glyph
                boxes.append(place)
                indices.append(index)
        labels = self._labels[indices].astype(np.int64)
        truth = Boxes(np.array(boxes, np.float32).reshape(-1, 4), labels, np.ones(len(boxes), np.float32))
        return Page(_develop(ink, rng), truth, np.array(indices, np.int64))


def _glyph(scan: Array, rng: np.random.Generator) -> Array:
    """Return the coverage by ink of one enlarged digit, cut to its ink."""
    side = SMALLEST * (LARGEST / SMALLEST) ** rng.random()
    width = max(8, round(side * rng.uniform(0.8, 1.1)))
    image = Image.fromarray(np.pad(scan, 1).astype(np.float32))
    image = image.resize((width * 10 // 8, round(side * 10 / 8)), Image.Resampling.BICUBIC)
    image = image.rotate(rng.uniform(-10, 10), Image.Resampling.BILINEAR, expand=True)
    soft = np.asarray(image, np.float64)
    coverage = np.clip((soft - 0.38) * rng.uniform(1.2, 3.5) + 0.5, 0, 1)
    rows, columns = (np.flatnonzero((coverage > 0.3).any(axis)) for axis in (1, 0))
    return coverage[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def _free_place(
    shape: tuple[int, ...], taken: list[Place], size: tuple[int, int], rng: np.random.Generator
) -> Place | None:
    height, width = shape
    for _ in range(50):
        y, x = rng.integers(1, size[0] - height), rng.integers(1, size[1] - width)
        box = (int(x), int(y), int(x + width), int(y + height))
        if all(
            box[0] >= x2 + GAP or x1 >= box[2] + GAP or box[1] >= y2 + GAP or y1 >= box[3] + GAP
            for x1, y1, x2, y2 in taken
        ):
            return box
    return None


def _develop(ink: Array, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Put ink of some darkness on paper with stains, ruled lines, specks, blur and grain."""
    paper = rng.uniform(150, 245) + rng.uniform(0, 18) * _clouds(ink.shape, rng)
    for y in _ruled_lines(ink.shape[0], rng):
        paper[y] -= rng.uniform(10, 45)
    contrast = rng.uniform(70, 140) + rng.uniform(0, 12) * _clouds(ink.shape, rng)
    specks = rng.random(ink.shape) < rng.uniform(0, 0.002)
    coverage = np.maximum(ink, specks * rng.uniform(0.3, 1))
    clean = np.clip(paper - contrast * coverage, 0, 255).astype(np.uint8)
    blurred = np.asarray(Image.fromarray(clean).filter(ImageFilter.GaussianBlur(rng.uniform(0, 0.9))))
    grain = rng.normal(0, rng.uniform(1, 9), ink.shape)
    return np.clip(np.rint(blurred + grain), 0, 255).astype(np.uint8)


def _clouds(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    coarse = Image.fromarray(rng.uniform(-1, 1, (5, 6)).astype(np.float32))
    return np.asarray(coarse.resize(shape[::-1], Image.Resampling.BICUBIC), np.float64)


def _ruled_lines(height: int, rng: np.random.Generator) -> range:
    if rng.random() < 0.5:
        return range(0)
    step = int(rng.integers(18, 60))
    return range(int(rng.integers(0, step)), height, step)


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the page of the demo.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    make_page, rng = PageMaker("test"), np.random.default_rng(arguments.seed)
    page = make_page(rng)
    while len(set(page.truth.labels)) < 10:
        page = make_page(rng)
    Image.fromarray(page.image).save(arguments.folder / "page.png", optimize=True)
    digits = [
        {"label": int(label), "box": [int(x) for x in box], "load_digits_index": int(index)}
        for label, box, index in zip(page.truth.labels, page.truth.boxes, page.indices, strict=True)
    ]
    lines = ",\n".join("    " + json.dumps(digit) for digit in digits)
    (arguments.folder / "page.json").write_text(f'{{\n  "digits": [\n{lines}\n  ]\n}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
