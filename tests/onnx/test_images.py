"""Pictures as networks take them."""

import io
from pathlib import Path

import numpy as np
import pytest

from detops.cli import _images
from detops.cli._images import PRESETS, Layout, Preparation, layout, prepared, read_picture

image_module = pytest.importorskip("PIL.Image", reason="reading images needs Pillow (the extra 'cli')")

ANY = Layout(4, None, None, None)
AS_IT_IS = Preparation()
DEEP = np.array([[0, 257, 25700, 65535, 255, 512]], np.uint16)


def written(path: Path, pixels: np.ndarray, mode: str | None = None, **options) -> str:
    """An image file; `mode` is the one of Pillow that it is converted to first."""
    image = image_module.fromarray(pixels)
    (image if mode is None else image.convert(mode)).save(path, **options)
    return str(path)


@pytest.fixture
def color() -> np.ndarray:
    return np.random.default_rng(3).integers(0, 256, (5, 7, 3), np.uint8)


def levels(file: str, dtype: str, wanted: Layout = ANY) -> np.ndarray:
    deep = dtype == "uint16"
    return prepared(read_picture(file, deep), dtype, wanted, AS_IT_IS)[0]


@pytest.mark.parametrize(
    ("dtype", "wanted"),
    [
        ("uint8", [0, 1, 100, 255, 0, 2]),
        ("float32", [0, 1, 100, 255, 0, 2]),
        ("float16", [0, 1, 100, 255, 0, 2]),
        ("int32", [0, 1, 100, 255, 0, 2]),
        ("uint16", [0, 257, 25700, 65535, 255, 512]),
    ],
)
@pytest.mark.parametrize("suffix", [".png", ".tif", ".pgm"])
def test_levels_of_16_bits(tmp_path: Path, dtype: str, wanted: list[int], suffix: str) -> None:
    got = levels(written(tmp_path / f"x{suffix}", DEEP), dtype)
    assert got.dtype == dtype
    assert got.shape == (1, 1, 1, 6)
    assert got.ravel().tolist() == wanted


def test_levels_of_8_bits_stay_in_an_input_of_16(tmp_path: Path) -> None:
    got = levels(written(tmp_path / "x.png", np.array([[0, 1, 255]], np.uint8)), "uint16")
    assert got.ravel().tolist() == [0, 1, 255]


def test_color_of_16_bits_is_not_read_as_8_in_silence(tmp_path: Path) -> None:
    """Pillow writes no such file: this is one by hand, of two pixels."""
    import struct
    import zlib

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    pixels = struct.pack(">6H", 0, 257, 25700, 65535, 1, 512)
    file = tmp_path / "x.png"
    file.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 1, 16, 2, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(b"\0" + pixels))
        + chunk(b"IEND", b"")
    )
    assert levels(str(file), "uint8").transpose(0, 2, 3, 1).ravel().tolist() == [0, 1, 100, 255, 0, 2]
    with pytest.raises(ValueError, match="Pillow reads color of 16 bits as 8 bits"):
        levels(str(file), "uint16")


@pytest.mark.parametrize(
    ("orientation", "turn"),
    [
        (1, lambda x: x),
        (2, lambda x: x[:, ::-1]),
        (3, lambda x: x[::-1, ::-1]),
        (4, lambda x: x[::-1]),
        (5, lambda x: x.swapaxes(0, 1)),
        (6, lambda x: np.rot90(x, -1)),
        (7, lambda x: x[::-1, ::-1].swapaxes(0, 1)),
        (8, lambda x: np.rot90(x)),
    ],
)
def test_exif_orientation(tmp_path: Path, color: np.ndarray, orientation: int, turn) -> None:
    exif = image_module.Exif()
    exif[0x0112] = orientation
    file = written(tmp_path / "x.png", color, exif=exif)
    np.testing.assert_array_equal(read_picture(file), turn(color))


def test_modes_of_images(tmp_path: Path, color: np.ndarray) -> None:
    alpha = np.full((*color.shape[:2], 1), 9, np.uint8)
    rgba = written(tmp_path / "rgba.png", np.concatenate([color, alpha], axis=2))
    gray = color[..., 0]
    cases = {
        "rgb": (written(tmp_path / "rgb.png", color), color),
        "rgba": (rgba, color),
        "gray": (written(tmp_path / "l.png", gray), np.stack([gray] * 3, -1)),
        "la": (written(tmp_path / "la.png", gray, "LA"), np.stack([gray] * 3, -1)),
        "palette": (written(tmp_path / "p.png", np.tile(color[:1, :1], (5, 7, 1)), "P"), None),
        "1 bit": (written(tmp_path / "1.png", gray > 127), np.stack([(gray > 127) * np.uint8(255)] * 3, -1)),
        "cmyk": (written(tmp_path / "cmyk.tif", color, "CMYK"), color),
    }
    for name, (file, wanted) in cases.items():
        got = levels(file, "uint8", Layout(3, 3, None, None, channels_last=True))
        if wanted is None:
            with image_module.open(file) as image:
                assert image.mode == "P"
                wanted = np.asarray(image.convert("RGB"))
        np.testing.assert_array_equal(got, wanted, err_msg=name)
    np.testing.assert_array_equal(levels(rgba, "uint8", Layout(3, 4, None, None))[3], alpha[..., 0])
    opaque = levels(cases["rgb"][0], "uint8", Layout(3, 4, None, None))
    assert (opaque[3] == 255).all()


def test_transparent_palette(tmp_path: Path) -> None:
    image = image_module.new("P", (2, 1))
    image.putpalette([10, 20, 30, 40, 50, 60])
    image.putpixel((1, 0), 1)
    image.save(tmp_path / "x.png", transparency=0)
    assert read_picture(str(tmp_path / "x.png")).tolist() == [[[10, 20, 30, 0], [40, 50, 60, 255]]]


def test_gray_is_pillows(color: np.ndarray) -> None:
    wanted = np.asarray(image_module.fromarray(color).convert("L"))
    np.testing.assert_array_equal(_images.with_channels(color, 1)[..., 0], wanted)


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [
        (None, Layout(4, None, None, None)),
        ([None, None, None, None], Layout(4, None, None, None)),
        ([1, 3, 20, 30], Layout(4, 3, 20, 30)),
        ([1, 20, 30, 3], Layout(4, 3, 20, 30, channels_last=True)),
        ([None, None, None, 3], Layout(4, 3, None, None, channels_last=True)),
        ([1, 3, None, 3], Layout(4, 3, None, 3)),
        ([1, 1, 20, 30], Layout(4, 1, 20, 30)),
        ([3, 20, 30], Layout(3, 3, 20, 30)),
        ([20, 30, 3], Layout(3, 3, 20, 30, channels_last=True)),
        ([None, None, 4], Layout(3, 4, None, None, channels_last=True)),
        ([20, None], Layout(2, 1, 20, None)),
    ],
)
def test_layouts(shape, wanted: Layout) -> None:
    assert layout(shape) == wanted


@pytest.mark.parametrize(
    ("shape", "message"),
    [([], "2 to 4 axes"), ([1, 1, 3, 2, 2], "2 to 4 axes"), ([2, 3, 5, 5], "one image"), ([1, 7, 5, 5], "channels")],
)
def test_layouts_of_no_picture(shape, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        layout(shape)


def test_an_open_channel_axis_takes_the_pictures_channels(color: np.ndarray) -> None:
    got, _ = prepared(color, "float32", ANY, AS_IT_IS)
    np.testing.assert_array_equal(got[0], color.transpose(2, 0, 1))
    gray, _ = prepared(color[..., :1], "float32", ANY, AS_IT_IS)
    assert gray.shape == (1, 1, 5, 7)


@pytest.mark.parametrize("dtype", ["int8", "bool", "complex64", "O"])
def test_types_that_hold_no_levels(color: np.ndarray, dtype: str) -> None:
    with pytest.raises(ValueError, match=r"expected an input (that holds the levels 0 to 255|of numbers)"):
        prepared(color, dtype, ANY, AS_IT_IS)


def test_levels_of_a_signed_input(color: np.ndarray) -> None:
    got, _ = prepared(color, "int8", ANY, Preparation(mean=(128,)))
    np.testing.assert_array_equal(got[0].transpose(1, 2, 0), color.astype(int) - 128)


def linear(x: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Each new element from its definition: linear between the centers of the old ones."""
    y = np.empty((*size, x.shape[2]))
    for i, j in np.ndindex(size):
        at = [(k + 0.5) * x.shape[axis] / size[axis] - 0.5 for axis, k in enumerate((i, j))]
        total = np.zeros(x.shape[2])
        for a, b in np.ndindex(x.shape[:2]):
            # The first and the last element go on for ever.
            near = [min(max(p, 0), n - 1) for p, n in zip(at, x.shape[:2], strict=True)]
            total += x[a, b] * max(1 - abs(near[0] - a), 0) * max(1 - abs(near[1] - b), 0)
        y[i, j] = total
    return y


@pytest.mark.parametrize("size", [(5, 7), (11, 3), (2, 20), (1, 1), (10, 14)])
@pytest.mark.parametrize("factor", [1, 257])
def test_resized_is_bilinear(color: np.ndarray, size: tuple[int, int], factor: int) -> None:
    picture = color if factor == 1 else color.astype(np.uint16) * np.uint16(factor)
    got = _images.resized(picture, size)
    assert got.dtype == picture.dtype
    np.testing.assert_allclose(got, linear(picture, size), atol=0.51 if factor == 1 else 0.6)


def test_letterbox_and_back() -> None:
    picture = np.full((30, 60, 3), 200, np.uint8)
    got, placement = prepared(picture, "float32", Layout(4, 3, None, None), Preparation(resize=(40, 40)))
    assert got.shape == (1, 3, 40, 40)
    assert (placement.scaled, placement.top, placement.left) == ((20, 40), 10, 0)
    assert (got[0, :, 10:30] == 200).all()
    assert (got[0, :, :10] == 114).all()
    assert (got[0, :, 30:] == 114).all()
    assert placement.back(np.array([[0, 10, 40, 30], [10, 15, 20, 20.0]])).tolist() == [
        [0, 0, 60, 30],
        [15, 7.5, 30, 15],
    ]


def test_stretch_and_back() -> None:
    picture = np.arange(200, dtype=np.uint8).reshape(10, 20, 1)
    got, placement = prepared(picture, "uint8", Layout(2, 1, None, None), Preparation(resize=(30, 20), fit="stretch"))
    assert got.shape == (30, 20)
    assert placement.back(np.array([[0, 0, 20, 30.0]])).tolist() == [[0, 0, 20, 10]]


def test_the_model_says_the_size() -> None:
    picture, fixed = np.zeros((30, 60, 3), np.uint8), Layout(4, 3, 64, 96)
    with pytest.raises(ValueError, match=r"expected an image of height x width 64x96, got 30x60; --resize changes it"):
        prepared(picture, "float32", fixed, AS_IT_IS)
    for preset in ("mmdet", "yolo", "yolox"):
        assert prepared(picture, "float32", fixed, PRESETS[preset])[0].shape == (1, 3, 64, 96)
    with pytest.raises(ValueError, match="got 32x32"):
        prepared(picture, "float32", fixed, Preparation(resize=(32, 32)))


RGB = (200, 100, 50)


def test_preset_of_mmdetection() -> None:
    picture = np.full((400, 1000, 3), RGB, np.uint8)
    got, placement = prepared(picture, "float32", Layout(4, 3, None, None), PRESETS["mmdet"])
    # 1333 / 1000 is less than 800 / 400; then both sides go up to multiples of 32, at the bottom and the right
    assert placement.scaled == (533, 1333)
    assert got.shape == (1, 3, 544, 1344)
    wanted = [(200 - 123.675) / 58.395, (100 - 116.28) / 57.12, (50 - 103.53) / 57.375]
    np.testing.assert_allclose(got[0, :, 0, 0], wanted, rtol=1e-6)
    assert (got[0, :, 533:] == 0).all()
    assert (got[0, :, :, 1333:] == 0).all()


def test_preset_of_torchvision() -> None:
    picture = np.full((4, 5, 3), RGB, np.uint8)
    got, _ = prepared(picture, "float32", Layout(3, 3, None, None), PRESETS["torchvision"])
    np.testing.assert_array_equal(got[:, 2, 2], np.float32(RGB) / np.float32(255))
    assert got.shape == (3, 4, 5)


def test_preset_of_yolo() -> None:
    picture = np.full((320, 640, 3), RGB, np.uint8)
    got, placement = prepared(picture, "float32", Layout(4, 3, None, None), PRESETS["yolo"])
    assert got.shape == (1, 3, 640, 640)
    assert (placement.top, placement.left) == (160, 0)
    np.testing.assert_array_equal(got[0, :, 160, 0], np.float32(RGB) / np.float32(255))
    np.testing.assert_array_equal(got[0, :, 159, 0], [np.float32(114) / np.float32(255)] * 3)


def test_preset_of_yolox() -> None:
    picture = np.full((320, 640, 3), RGB, np.uint8)
    got, placement = prepared(picture, "float32", Layout(4, 3, None, None), PRESETS["yolox"])
    assert (placement.top, placement.left) == (0, 0)
    assert got[0, :, 0, 0].tolist() == [50, 100, 200]
    assert got[0, :, 320, 0].tolist() == [114] * 3


def test_mean_of_other_channels(color: np.ndarray) -> None:
    with pytest.raises(ValueError, match="mean: expected one number, or one for each of the 1 channels, got 3"):
        prepared(color, "float32", Layout(4, 1, None, None), PRESETS["mmdet"])


def damaged(kind: str) -> bytes:
    buffer = io.BytesIO()
    image_module.fromarray(np.random.default_rng(0).integers(0, 256, (40, 40, 3), np.uint8)).save(buffer, kind)
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "TIFF", "WEBP"])
def test_damaged_images_are_value_errors(tmp_path: Path, kind: str) -> None:
    whole, file = damaged(kind), tmp_path / "x.img"
    for length in (0, 1, 8, 30, len(whole) // 2):
        file.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"^\S+x\.img: expected an? (whole )?image"):
            read_picture(str(file))


def test_images_that_are_too_large_and_too_deep(tmp_path: Path, monkeypatch) -> None:
    file = written(tmp_path / "x.png", np.zeros((9, 9), np.uint8))
    monkeypatch.setattr(image_module, "MAX_IMAGE_PIXELS", 10)
    with pytest.raises(ValueError, match=r"x\.png: expected an image \(Image size \(81 pixels\) exceeds limit"):
        read_picture(file)
    with pytest.raises(ValueError, match="8 or 16 bits a channel are read"):
        read_picture(written(tmp_path / "x.tif", np.zeros((2, 2), np.float32)))


def test_a_picture_larger_than_memory_is_named(tmp_path: Path, monkeypatch) -> None:
    file = written(tmp_path / "x.png", np.zeros((2, 2), np.uint8))

    def full(*arguments) -> None:
        raise MemoryError

    monkeypatch.setattr(_images, "_levels", full)
    with pytest.raises(MemoryError, match=r"x\.png: MemoryError"):
        read_picture(file)
