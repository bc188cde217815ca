"""Pictures as networks take them: reading files, channels, sizes, levels.

A picture is an array (height, width, channels) of levels: uint8 up to 255, or uint16 up to 65535; its channels are
gray, RGB or RGBA. Everything but `read_picture` works on such arrays alone.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detops._extras import need
from detops.cli._arrays import said

Picture = NDArray[Any]
Size = tuple[int, int]  # (height, width)

CHANNELS = (1, 3, 4)

logging.getLogger("PIL").addHandler(logging.NullHandler())  # what is wrong with a file is raised as well
FITS = ("letterbox", "stretch")


@dataclass(frozen=True)
class Preparation:
    """The preparation of a picture for a network.

    Attributes
    ----------
    resize : (int, int) or None
        The (height, width) to bring pictures to. None: their own, or for a preset that resizes the model's.
    fit : {"letterbox", "stretch"}
        Whether the sides keep their ratio, and the rest is filled up, or not.
    open_size : (int, int) or None
        The size to bring pictures to where neither `resize` nor the model says one.
    within : (int, int) or None
        As `open_size`, but the longest and the shortest side to stay within, and nothing is filled up.
    multiple : int
        Fill `within` up to multiples of this.
    centered : bool
        Whether a letterbox has the picture in its middle; else it is at the top left.
    fill : float or None
        The level (0 to 255) of what is filled up; None is the one that the network gets as 0.
    scale, mean, std : float, tuple of float, tuple of float
        The network gets ``(level * scale - mean) / std``; one mean for all channels, or one for each.
    bgr : bool
        Whether the first channel is blue. `mean` and `std` are in the order of the network's channels.
    """

    resize: Size | None = None
    fit: str = "letterbox"
    open_size: Size | None = None
    within: tuple[int, int] | None = None
    multiple: int = 1
    centered: bool = True
    fill: float | None = 114
    scale: float = 1.0
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    bgr: bool = False

    def resizes(self) -> bool:
        """Whether pictures may get another size."""
        return any((self.resize, self.open_size, self.within))

    def size_words(self) -> list[str]:
        """Describe what is done to the size of any picture."""
        if self.resize is not None:
            return [f"{self.fit} to {_size(self.resize)}"]
        if not self.resizes():
            return []
        if self.within is not None:
            return [
                f"to the model's size, or within {_size(self.within)} and filled up to multiples of {self.multiple}"
            ]
        assert self.open_size is not None
        return [f"{self.fit} to the model's size, or {_size(self.open_size)} where that is open"]

    def words(self) -> list[str]:
        """Describe what is done to the levels."""
        said = []
        if self.scale != 1:
            inverse = 1 / self.scale
            said.append(
                f"levels / {inverse:g}" if math.isclose(inverse, round(inverse)) else f"levels * {self.scale:g}"
            )
        if any(self.mean):
            said.append(f"minus {_listed(self.mean)}")
        if set(self.std) != {1.0}:
            said.append(f"divided by {_listed(self.std)}")
        return [*said, "BGR"] if self.bgr else said


def _size(size: Size) -> str:
    return f"{size[0]}x{size[1]}"


def _listed(numbers: Sequence[float]) -> str:
    return ", ".join(f"{number:g}" for number in numbers)


# The preparations that exports of these libraries expect, with the files that say so:
# mmdet: configs/_base_/datasets/coco_detection.py (scale) and configs/_base_/models/faster-rcnn_r50_fpn.py (numbers,
#   and the divisor of the padding, which comes after normalization and is 0) of MMDetection.
# torchvision: models/detection/transform.py; detectors resize and normalize by themselves, and want RGB from 0 to 1.
# yolo: LetterBox in ultralytics/data/augment.py, and the division by 255 in ultralytics/engine/predictor.py.
# yolox: preproc in yolox/data/data_augment.py; pictures as OpenCV reads them.
PRESETS = {
    "mmdet": Preparation(
        within=(1333, 800),
        multiple=32,
        centered=False,
        fill=None,
        mean=(123.675, 116.28, 103.53),
        std=(58.395, 57.12, 57.375),
    ),
    "torchvision": Preparation(scale=1 / 255),
    "yolo": Preparation(open_size=(640, 640), scale=1 / 255),
    "yolox": Preparation(open_size=(640, 640), centered=False, bgr=True),
}


@dataclass(frozen=True)
class Layout:
    """Form in which an input takes pictures; None where the model leaves it open."""

    rank: int
    channels: int | None
    height: int | None
    width: int | None
    channels_last: bool = False


@dataclass(frozen=True)
class Placement:
    """Where a picture of size `picture` went: scaled to `scaled`, at `top` and `left` of an image of size `whole`."""

    picture: Size
    scaled: Size
    whole: Size
    top: int = 0
    left: int = 0

    def back(self, boxes: NDArray[Any]) -> NDArray[np.float64]:
        """Return boxes (num_boxes, 4) of the network's image, as x1, y1, x2, y2, in pixels of the picture."""
        factor = np.array([self.picture[1] / self.scaled[1], self.picture[0] / self.scaled[0]] * 2)
        moved: NDArray[np.float64] = (boxes - np.array([self.left, self.top] * 2, np.float64)) * factor
        return moved

    def words(self) -> list[str]:
        """Describe what was done to the size."""
        said = []
        if self.scaled != self.picture:
            said.append(f"resized to {_size(self.scaled)}")
        if self.whole != self.scaled:
            said.append(f"at row {self.top}, column {self.left} of {_size(self.whole)}")
        return said


def read_picture(file: str, deep: bool = False) -> Picture:
    """Read an image file upright, as its EXIF orientation says; palettes are resolved.

    Raises
    ------
    ValueError
        If the file holds no image, is damaged, or has levels of neither 8 nor 16 bits; or if levels of 16 bits are
        wanted (`deep`) and the file has them but Pillow reads only 8.
    OSError
        If it cannot be opened.
    """
    image_module = need("PIL.Image", "cli", "reading images")
    try:
        with image_module.open(file) as image:
            return _levels(image, deep)
    except image_module.UnidentifiedImageError as error:
        raise ValueError(f"{file}: expected an image, .npy or .npz") from error
    except OSError as error:
        if error.filename is not None:
            raise
        raise ValueError(f"{file}: expected a whole image ({error})") from error
    except MemoryError as error:
        raise MemoryError(f"{file}: {said(error)}") from error
    except Exception as error:  # decoders meet damaged files with exceptions of any kind
        raise ValueError(f"{file}: expected an image ({said(error)})") from error


def _levels(image: Any, deep: bool) -> Picture:
    from PIL import ImageOps

    # Pillow decodes color of 16 bits to its upper 8, as cv2.imread does.
    if deep and image.mode in ("RGB", "RGBA") and any("16" in str(tile[-1]) for tile in getattr(image, "tile", ())):
        raise ValueError("Pillow reads color of 16 bits as 8 bits; give an .npy for an input of uint16")
    kind, mode = image.format, image.mode
    image = ImageOps.exif_transpose(image)
    if mode.startswith("I;16") or (mode == "I" and kind in ("PNG", "PPM")):
        pixels = np.asarray(image).astype(np.uint16)
    elif mode in ("I", "F"):
        raise ValueError(f"8 or 16 bits a channel are read, this has 32 (Pillow's mode {mode})")
    elif mode in ("1", "L", "LA", "La"):
        pixels = np.asarray(image.convert("L"))
    elif mode in ("RGBA", "RGBa", "PA") or (mode == "P" and "transparency" in image.info):
        pixels = np.asarray(image.convert("RGBA"))
    else:
        pixels = np.asarray(image.convert("RGB"))
    return pixels.reshape(*pixels.shape[:2], -1)


def in_8_bits(picture: Picture) -> NDArray[np.uint8]:
    """Return the upper 8 bits of the levels, as Pillow and ``cv2.imread`` do."""
    return picture if picture.dtype == np.uint8 else (picture >> 8).astype(np.uint8)


def with_channels(picture: Picture, count: int) -> Picture:
    """Return the picture as gray (1), RGB (3) or RGBA (4); transparency that is not asked for is dropped."""
    if picture.shape[2] == count:
        return picture
    if count == 1:
        # The luma of ITU-R 601-2, in Pillow's fixed-point numbers.
        luma = (picture[..., :3].astype(np.int64) @ np.array([19595, 38470, 7471]) + 0x8000) >> 16
        return luma.astype(picture.dtype)[..., None]
    color = np.repeat(picture, 3, axis=2) if picture.shape[2] == 1 else picture[..., :3]
    if count == 3:
        return color
    opaque = np.full((*color.shape[:2], 1), np.iinfo(color.dtype).max, color.dtype)
    return np.concatenate([color, opaque], axis=2)


def resized(picture: Picture, size: Size) -> Picture:
    """Return the picture in another size: bilinear between pixel centers, without smoothing, as ``cv2.resize`` is."""
    if picture.shape[:2] == size:
        return picture
    near, far, weight = _taps(picture.shape[0], size[0])
    rows = picture[near] * (1 - weight)[:, None, None] + picture[far] * weight[:, None, None]
    near, far, weight = _taps(picture.shape[1], size[1])
    levels = rows[:, near] * (1 - weight)[:, None] + rows[:, far] * weight[:, None]
    return np.rint(levels).astype(picture.dtype)


def _taps(length: int, count: int) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float32]]:
    """The two elements of an axis that each of `count` new ones lies between, and the weight of the second."""
    position = np.clip((np.arange(count) + 0.5) * (length / count) - 0.5, 0, length - 1)
    near = np.floor(position).astype(np.intp)
    return near, np.minimum(near + 1, length - 1), (position - near).astype(np.float32)


def layout(shape: Sequence[int | None] | None) -> Layout:
    """Return what an input of this declared shape wants: (N, C, H, W), (N, H, W, C), either without N, or (H, W).

    Where the channels may be first or last they are first, as ONNX's operators have them.

    Raises
    ------
    ValueError
        If no picture has that shape.
    """
    if shape is None:
        return Layout(4, None, None, None)
    if len(shape) == 2:
        return Layout(2, 1, shape[0], shape[1])
    if len(shape) not in (3, 4):
        raise ValueError(f"expected an input of 2 to 4 axes for an image, got one of {len(shape)}")
    if len(shape) == 4 and shape[0] not in (None, 1):
        raise ValueError(f"expected an input of one image, got one of {shape[0]}; give an .npy")
    first, middle, last = shape[-3:]
    if last in CHANNELS and first not in CHANNELS:
        return Layout(len(shape), last, first, middle, channels_last=True)
    if first not in (None, *CHANNELS):
        raise ValueError(f"expected an input of 1, 3 or 4 channels for an image, got one of {first}")
    return Layout(len(shape), first, middle, last)


def place(picture: Size, wanted: Layout, preparation: Preparation) -> Placement:
    """Return where a picture goes in the image that a network gets.

    Raises
    ------
    ValueError
        If the model has a fixed size and the result would have another.
    """
    declared = wanted.height, wanted.width
    if preparation.resize is not None:
        placement = _into(picture, preparation.resize, preparation)
    elif preparation.resizes():
        if wanted.height and wanted.width:
            placement = _into(picture, (wanted.height, wanted.width), preparation)
        elif preparation.within is not None:
            placement = _within(picture, preparation.within, preparation.multiple)
        else:
            assert preparation.open_size is not None
            height, width = preparation.open_size
            placement = _into(picture, (wanted.height or height, wanted.width or width), preparation)
    else:
        placement = Placement(picture, picture, picture)
    if any(length not in (None, got) for length, got in zip(declared, placement.whole, strict=True)):
        wants = "x".join("any" if length is None else str(length) for length in declared)
        got = _size(placement.whole)
        raise ValueError(f"expected an image of height x width {wants}, got {got}; --resize changes it")
    return placement


def _scaled(picture: Size, factor: float) -> Size:
    height, width = (max(math.floor(length * factor + 0.5), 1) for length in picture)
    return height, width


def _into(picture: Size, size: Size, preparation: Preparation) -> Placement:
    if preparation.fit == "stretch":
        return Placement(picture, size, size)
    scaled = _scaled(picture, min(size[0] / picture[0], size[1] / picture[1]))
    scaled = min(scaled[0], size[0]), min(scaled[1], size[1])
    if not preparation.centered:
        return Placement(picture, scaled, size)
    return Placement(picture, scaled, size, (size[0] - scaled[0]) // 2, (size[1] - scaled[1]) // 2)


def _within(picture: Size, sides: tuple[int, int], multiple: int) -> Placement:
    scaled = _scaled(picture, min(max(sides) / max(picture), min(sides) / min(picture)))
    height, width = (-(-length // multiple) * multiple for length in scaled)
    return Placement(picture, scaled, (height, width))


def prepared(picture: Picture, dtype: Any, wanted: Layout, preparation: Preparation) -> tuple[NDArray[Any], Placement]:
    """Return the array that an input takes for a picture, and where in it the picture is.

    An input of uint16 gets levels of 16 bits where the picture has them; any other gets levels from 0 to 255.

    Raises
    ------
    ValueError
        If the input's type cannot hold the levels, or sizes or channels do not go together.
    """
    dtype = np.dtype(dtype)
    levels = picture if dtype == np.uint16 else in_8_bits(picture)
    own = 1 if levels.shape[2] == 1 else 3  # transparency is for inputs that say so
    levels = with_channels(levels, wanted.channels or own)
    if preparation.bgr:
        levels = levels[..., [2, 1, 0, *range(3, levels.shape[2])]] if levels.shape[2] > 1 else levels
    placement = place(levels.shape[:2], wanted, preparation)
    table = _table(levels, dtype, preparation)
    whole = np.empty((*placement.whole, levels.shape[2]), dtype)
    whole[...] = _filling(levels, dtype, preparation, table.shape[1])
    inside = resized(levels, placement.scaled)
    (height, width), top, left = placement.scaled, placement.top, placement.left
    for channel in range(levels.shape[2]):
        column = table[:, channel % table.shape[1]]
        whole[top : top + height, left : left + width, channel] = column[inside[..., channel]]
    if wanted.rank == 2:
        return whole[..., 0], placement
    if not wanted.channels_last:
        whole = np.ascontiguousarray(np.moveaxis(whole, -1, 0))
    return (whole[None] if wanted.rank == 4 else whole), placement


def _table(levels: Picture, dtype: np.dtype[Any], preparation: Preparation) -> NDArray[Any]:
    """Return the network's number for each level, (num_levels, 1 or channels)."""
    every = np.arange(np.iinfo(levels.dtype).max + 1, dtype=np.float64)
    return _converted(every[:, None], levels.shape[2], dtype, preparation)


def _filling(levels: Picture, dtype: np.dtype[Any], preparation: Preparation, columns: int) -> NDArray[Any]:
    if preparation.fill is None:
        return np.zeros((), dtype)
    level = preparation.fill * (np.iinfo(levels.dtype).max / 255)
    filling = _converted(np.array([[level]]), levels.shape[2], dtype, preparation)[0]
    return filling if columns > 1 else filling[:1]


def _converted(levels: NDArray[Any], channels: int, dtype: np.dtype[Any], preparation: Preparation) -> NDArray[Any]:
    for name in ("mean", "std"):
        count = len(getattr(preparation, name))
        if count not in (1, channels):
            raise ValueError(f"{name}: expected one number, or one for each of the {channels} channels, got {count}")
    values = (levels * preparation.scale - np.array(preparation.mean)) / np.array(preparation.std)
    if dtype.kind in "iub":
        values = np.rint(values)
        low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        if values.min() < low or values.max() > high:
            raise ValueError(
                f"expected an input that holds the levels {values.min():g} to {values.max():g}, got one of {dtype} "
                f"({low} to {high}); --scale and --mean change them"
            )
    elif dtype.kind not in "fV":
        raise ValueError(f"expected an input of numbers for an image, got one of {dtype}")
    return values.astype(dtype)
