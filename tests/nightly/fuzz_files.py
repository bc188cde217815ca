"""Damaged files for the readers of ``detops run``: ``python tests/nightly/fuzz_files.py [--seconds N] [--seed N]``.

Whole files are cut, and bytes of them changed, moved and repeated. A reader returns an array or raises what the command
line says in one line (ValueError, OSError, MemoryError); anything else, and a process that dies, is a fault. The files
that showed one are kept in the folder that is printed.
"""

import argparse
import io
import resource
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from detops.cli import _arrays, _images

EXPECTED = (ValueError, OSError, MemoryError)
KINDS = ("PNG", "JPEG", "GIF", "TIFF", "WEBP", "BMP", "PPM", "ICO", "TGA", "PCX", "JPEG2000", "AVIF")


def whole_files() -> Iterator[tuple[str, bytes]]:
    """Files that can be read, by suffix."""
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(3, 4)).astype(kind) for kind in ("<f4", ">f8", "<i2", "|u1")]
    arrays += [np.array(["a", "häuser"]), np.zeros((0, 3), np.float32), np.asfortranarray(arrays[0])]
    for array in arrays:
        file = io.BytesIO()
        np.save(file, array)
        yield ".npy", file.getvalue()
        for save in (np.savez, np.savez_compressed):
            file = io.BytesIO()
            save(file, x=array, y=array)
            yield ".npz", file.getvalue()
    exif = Image.Exif()
    exif[0x0112] = 6
    pictures = [
        Image.fromarray(rng.integers(0, 256, (20, 30, 3), np.uint8)).convert(mode) for mode in ("RGB", "L", "P")
    ]
    pictures.append(Image.fromarray(rng.integers(0, 65536, (20, 30), np.uint16)))
    for picture in pictures:
        for kind in KINDS:
            file = io.BytesIO()
            try:
                picture.save(file, kind, exif=exif)
            except (OSError, KeyError, ValueError):  # no such mode in that format, or no such format here
                continue
            yield ".img", file.getvalue()


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """Return the file with a few of its bytes changed, cut, moved or repeated."""
    damage = bytearray(data)
    for _ in range(rng.integers(1, 6)):
        at = int(rng.integers(0, len(damage) + 1))
        # The beginnings of files say most.
        at = at if rng.random() < 0.5 else at % 128
        length = int(rng.integers(1, 9))
        piece = damage[at : at + length]
        kind = rng.integers(0, 6)
        if kind == 0:
            damage[at : at + length] = rng.bytes(length)
        elif kind == 1:
            damage[at : at + length] = bytes([int(rng.choice([0, 1, 0x7F, 0x80, 0xFF]))]) * length
        elif kind == 2:
            del damage[at:]
        elif kind == 3:
            del damage[at : at + length]
        elif kind == 4:
            damage[at:at] = piece * int(rng.integers(1, 20))
        elif piece:
            damage[at] ^= 1 << int(rng.integers(0, 8))
    return bytes(damage)


def read(file: str) -> None:
    """Read a file as ``detops run`` does."""
    if file.endswith(".img"):
        picture = _images.read_picture(file)
        if picture.size < 1 << 24:
            _images.prepared(picture, np.float32, _images.layout(None), _images.PRESETS["yolo"])
    else:
        _arrays.read_array(file, "x")


def main() -> int:
    """Run for some time and say what was found."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=300)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    warnings.simplefilter("ignore")  # Pillow's, about what is odd in a file
    limit = 4 << 30
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))  # what a header claims must not take the machine's memory
    rng, seeds, counts = np.random.default_rng(given.seed), list(whole_files()), Counter[str]()
    folder = Path(tempfile.mkdtemp(prefix="fuzz-files-"))
    end = time.monotonic() + given.seconds
    while time.monotonic() < end:
        suffix, data = seeds[int(rng.integers(0, len(seeds)))]
        file = folder / f"case{suffix}"
        file.write_bytes(damaged(data, rng))  # and there it is, if the process dies
        outcome = outcome_of(lambda: read(str(file)), str(file))  # noqa: B023
        counts[f"{suffix} {outcome}"] += 1
        if outcome.startswith("fault"):
            file.rename(folder / f"fault{counts.total()}{suffix}")
    for outcome, count in sorted(counts.items()):
        print(f"{count:8} {outcome}")
    faults = sum(count for outcome, count in counts.items() if " fault" in outcome)
    print(f"{counts.total()} files, {faults} faults" + (f", kept in {folder}" if faults else ""))
    return 1 if faults else 0


def outcome_of(call: Callable[[], None], file: str) -> str:
    """Say how a call ended."""
    try:
        call()
    except EXPECTED as error:
        return type(error).__name__ if file in str(error) else f"fault: no file is named in {error}"
    except Exception as error:
        return f"fault: {type(error).__name__}: {error}"
    return "read"


if __name__ == "__main__":
    sys.exit(main())
