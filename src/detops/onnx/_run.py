"""Running a model on files: reading inputs, the two engines, writing results."""

from __future__ import annotations

import functools
import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from detops._files import written_in_one_step

ENGINES = ("onnxruntime", "reference")

Arrays = dict[str, np.ndarray]


class Model:
    """A model that is ready to run; all that is wrong with it is a ValueError of one line."""

    def __init__(self, path: str, engine: str = "onnxruntime", threads: int = 0) -> None:
        import onnx

        from detops.onnx.report import custom_operators

        self.path = path
        try:
            proto = onnx.load(path, load_external_data=False)
        except Exception as error:  # protobuf's own exception, which has no public name
            raise ValueError(f"{path}: expected an ONNX model ({error})") from error
        unknown = [use for use in custom_operators(proto) if not use.runs]
        if unknown:
            what = "; ".join(f"{use.domain}::{use.operator}: {use.reason}" for use in unknown)
            raise ValueError(f"{path}: {what}")
        constants = {each.name for each in proto.graph.initializer}
        self.inputs = {each.name: each.type.tensor_type for each in proto.graph.input if each.name not in constants}
        self.outputs = [each.name for each in proto.graph.output]
        make = {"onnxruntime": _onnxruntime, "reference": _reference}[engine]
        try:
            self._run = make(path, threads)
        except ImportError:
            raise
        except Exception as error:  # an engine's own kinds of exception
            raise ValueError(f"{path}: {error}") from error

    def __call__(self, arrays: Mapping[str, np.ndarray]) -> Arrays:
        """Run the model; return its results by name."""
        missing = [name for name in self.inputs if name not in arrays]
        if missing:
            raise ValueError(f"{self.path}: expected inputs {', '.join(self.inputs)}, got none for {missing[0]}")
        try:
            results = self._run(dict(arrays))
        except MemoryError:
            raise
        except Exception as error:  # an engine's own kinds of exception
            raise ValueError(f"{self.path}: {error}") from error
        return dict(zip(self.outputs, results, strict=True))

    def read(self, name: str, file: str) -> np.ndarray:
        """Read a file as the array that an input takes."""
        if name not in self.inputs:
            raise ValueError(f"input: expected one of {', '.join(self.inputs)}, got {name!r}")
        suffix = Path(file).suffix.lower()
        if suffix == ".npy":
            return np.load(file, allow_pickle=False)
        if suffix == ".npz":
            with np.load(file, allow_pickle=False) as arrays:
                if name not in arrays and len(arrays.files) != 1:
                    raise ValueError(f"{file}: expected an array {name!r}, got {', '.join(arrays.files)}")
                return arrays[name if name in arrays else arrays.files[0]]
        return self._image(name, file)

    def _image(self, name: str, file: str) -> np.ndarray:
        """An image in the layout of an input: its channels, where the input says how many, and its type."""
        import onnx

        image_module = _pillow()
        tensor = self.inputs[name]
        shape = [each.dim_value for each in tensor.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        last = len(shape) == 4 and shape[3] in (1, 3) and shape[1] not in (1, 3)
        channels = shape[-1 if last else -3] if len(shape) in (3, 4) else 1
        try:
            with image_module.open(file) as image:
                pixels = np.asarray(image.convert("RGB" if channels == 3 else "L"), dtype)
        except image_module.UnidentifiedImageError as error:
            raise ValueError(f"{file}: expected an image, .npy or .npz") from error
        if len(shape) == 2:
            return pixels
        pixels = pixels.reshape((*pixels.shape[:2], -1))
        pixels = pixels if last else np.moveaxis(pixels, -1, 0)
        return pixels[None] if len(shape) == 4 else pixels


def _onnxruntime(path: str, threads: int) -> Callable[[Arrays], list[Any]]:
    import onnxruntime

    from detops.onnx import session

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4  # what goes wrong is raised as well
    opened = session(path, sess_options=options)
    run_options = onnxruntime.RunOptions()
    run_options.log_severity_level = 4
    return lambda arrays: opened.run(None, arrays, run_options)


def _reference(path: str, threads: int) -> Callable[[Arrays], list[Any]]:
    from onnx.reference import ReferenceEvaluator

    from detops.onnx import reference_ops

    evaluator: Any = ReferenceEvaluator(path, new_ops=reference_ops())
    return lambda arrays: evaluator.run(None, arrays)


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError('images need pillow; pip install "detops[demo]" brings it') from error
    return Image


@functools.lru_cache(maxsize=4)
def opened(path: str, engine: str, threads: int, changed: float) -> Model:
    """A model of this process, opened once until its file changes."""
    return Model(path, engine, threads)


def run_file(path: str, engine: str, threads: int, scratch: str, files: Mapping[str, str], output: str) -> None:
    """Run a model on one set of files and write the results; the work of one task, in whatever process."""
    model = opened(path, engine, threads, os.path.getmtime(path))
    save(output, model({name: model.read(name, file) for name, file in files.items()}), scratch)


def save(output: str, results: Mapping[str, np.ndarray], scratch: str | None = None) -> None:
    """Write results as .npz in one step: the file is there complete, or not at all."""
    # As numpy.savez_compressed, which takes no array of the name "file".
    with written_in_one_step(output, scratch) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for key, array in results.items():
            with archive.open(f"{key}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def boxes_of(results: Mapping[str, np.ndarray]) -> tuple[np.ndarray, list[str]]:
    """Find the boxes among results, and a text for each: from outputs that hold one number for each box."""
    for name, boxes in sorted(results.items(), key=lambda item: "box" not in item[0]):
        flat = boxes[0] if boxes.ndim == 3 and len(boxes) == 1 else boxes
        if flat.ndim == 2 and flat.shape[1] in (4, 5) and flat.dtype.kind == "f":
            beside = [
                values.reshape(-1) for other, values in results.items() if other != name and values.size == len(flat)
            ]
            columns = [*beside, flat[:, 4]] if flat.shape[1] == 5 else beside
            columns.sort(key=lambda values: values.dtype.kind == "f")
            texts = [" ".join(f"{float(column[i]):.3g}" for column in columns) for i in range(len(flat))]
            return flat[:, :4], texts
    raise ValueError(f"draw: expected an output of boxes (num_boxes, 4), got {', '.join(results)}")


def draw(image: str, results: Mapping[str, np.ndarray], output: str) -> None:
    """Draw the boxes among results over an image file."""
    image_module = _pillow()
    from PIL import ImageDraw

    boxes, texts = boxes_of(results)
    with image_module.open(image) as opened_image:
        picture = opened_image.convert("RGB")
    zoom = max(1, 900 // max(picture.size))  # so that small images leave room for the texts
    picture = picture.resize((picture.width * zoom, picture.height * zoom))
    pen = ImageDraw.Draw(picture)
    for box, text in zip(boxes, texts, strict=True):
        x1, y1, x2, y2 = (float(edge) * zoom for edge in box)
        if np.isfinite(box).all() and x2 >= x1 and y2 >= y1:
            pen.rectangle((x1, y1, x2, y2), outline="#dc2626", width=2)
            pen.text((x1 + 2, y1 + 1), text, fill="#1d4ed8")
    picture.save(output)
