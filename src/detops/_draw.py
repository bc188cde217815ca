"""Boxes with labels on a picture."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detops._extras import need
from detops._files import written_in_one_step

LONG_SIDE = 960  # a small picture is enlarged to about this, as its boxes would have no room for their labels
HEIGHT, MARGIN = 20, 3  # of a label


@dataclass(frozen=True)
class Tag:
    """A box (x1, y1, x2, y2) in pixels of the picture, and what stands beside it."""

    box: Sequence[float]
    text: str
    color: str
    below: bool = False


def picture_format(path: str | Path, argument: str) -> str:
    """Return Pillow's name of the format that a file name stands for.

    Raises
    ------
    ValueError
        If it stands for none that Pillow writes.
    """
    image_module = need("PIL.Image", "cli", "drawing")
    kind = image_module.registered_extensions().get(Path(path).suffix.lower())
    if kind not in image_module.SAVE:
        raise ValueError(f"{argument}: expected the file name of an image, such as out.png, got {str(path)!r}")
    return kind


def save_picture(picture: Any, path: str | Path, scratch: str | None = None) -> None:
    """Write a PIL image in one step, in the format that the file name stands for."""
    with written_in_one_step(path, scratch) as file:
        picture.save(file, format=picture_format(path, "picture"))


def zoom_of(pixels: NDArray[np.uint8]) -> int:
    """Return the whole number by which a picture is enlarged."""
    return max(1, LONG_SIDE // max(pixels.shape[:2]))


def drawn(pixels: NDArray[np.uint8], tags: Sequence[Tag]) -> Any:
    """Return a picture (height, width) or (height, width, 3) with tags as a PIL image.

    Each label has a background and stands where it covers no other while there is room, close to its box.
    """
    image_module, draw_module, font_module = (
        need(f"PIL.{name}", "cli", "drawing") for name in ("Image", "ImageDraw", "ImageFont")
    )
    zoom = zoom_of(pixels)
    picture = image_module.fromarray(pixels).convert("RGB")
    picture = picture.resize((picture.width * zoom, picture.height * zoom), image_module.Resampling.BICUBIC)
    pen, font = draw_module.Draw(picture), font_module.load_default(17)
    boxes = [tuple(float(edge) * zoom for edge in tag.box) for tag in tags]
    for tag, box in zip(tags, boxes, strict=True):
        pen.rectangle(box, outline=tag.color, width=2)
    places = _Places(picture.size)
    for tag, box in zip(tags, boxes, strict=True):
        if tag.text:
            width = pen.textlength(tag.text, font) + 2 * MARGIN
            left, top = places.take(box, width, tag.below)
            pen.rectangle((left, top, left + width, top + HEIGHT), fill=tag.color)
            pen.text((left + MARGIN, top), tag.text, fill="white", font=font)
    return picture


class _Places:
    """Where on a picture of `size` (width, height) labels stand."""

    def __init__(self, size: tuple[int, int]) -> None:
        self.size = size
        self.taken = np.empty((0, 4))

    def take(self, box: Sequence[float], width: float, below: bool) -> tuple[float, float]:
        """Return left and top of a label: the first place where it covers none, else the one where it covers least."""
        best, least = (0.0, 0.0), np.inf
        for left, top in self._candidates(box, width, below):
            place = np.array([left, top, left + width, top + HEIGHT])
            common = np.minimum(self.taken[:, 2:], place[2:]) - np.maximum(self.taken[:, :2], place[:2])
            covered = np.prod(np.maximum(common, 0), axis=1).sum()
            if covered < least:
                best, least = (left, top), covered
            if covered == 0:
                break
        self.taken = np.vstack([self.taken, [*best, best[0] + width, best[1] + HEIGHT]])
        return best

    def _candidates(self, box: Sequence[float], width: float, below: bool) -> Iterator[tuple[float, float]]:
        x1, y1, x2, y2 = box
        lefts = [max(min(left, self.size[0] - width), 0.0) for left in (x1, x2, x1 - width, x2 - width)]
        tops = [y2, y1 - HEIGHT] if below else [y1 - HEIGHT, y2]
        lowest = max(self.size[1] - HEIGHT, 0)
        for left in lefts:
            for top in (*tops, y1, y2 - HEIGHT):
                yield left, max(min(top, lowest), 0.0)
        # Nothing is free at the box: the rows of labels further and further down and up the picture.
        lefts += np.arange(0, self.size[0] - width, width).tolist()
        for step in range(1, self.size[1] // HEIGHT + 1):
            for top in (y2 + step * HEIGHT, y1 - (step + 1) * HEIGHT):
                if 0 <= top <= lowest:
                    for left in lefts:
                        yield left, top
