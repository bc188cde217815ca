"""Running a model on files: the two engines, one task of many, pictures of what was found."""

from __future__ import annotations

import ast
import functools
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from detops import _draw
from detops._extras import need
from detops.cli import _arrays, _images
from detops.cli._arrays import Arrays
from detops.cli._images import Placement, Preparation

ENGINES = ("onnxruntime", "reference")
OPTIMIZED = b"ORTM"  # what a file in ONNX Runtime's own format says it is
AS_IT_IS = Preparation()
COLORS = (
    *("#dc2626", "#2563eb", "#15803d", "#b45309", "#7c3aed"),
    *("#be185d", "#0e7490", "#4d7c0f", "#57534e", "#9333ea"),
)


@dataclass(frozen=True)
class Read:
    """Array that was read from a file for an input; `placement` is None where the file is no picture."""

    array: np.ndarray
    placement: Placement | None = None
    channels: str = ""

    def words(self, file: str, preparation: Preparation) -> str:
        """Describe what was read, and what was done to it."""
        what = f"{file}: {self.array.dtype} {self.array.shape}"
        if self.placement is None:
            return what
        done = [*self.placement.words(), *preparation.words()]
        height, width = self.placement.picture
        return ", ".join([f"{what} from {height}x{width} {self.channels}", *done])


class Model:
    """A model that is ready to run; all that is wrong with it is a ValueError of one line."""

    def __init__(self, path: str, engine: str = "onnxruntime", threads: int = 0) -> None:
        onnx = need("onnx", "cli", "running a model")
        from detops.cli.operators import custom_operators

        self.path = path
        if is_optimized(path):
            self._open_optimized(engine, threads)
            return
        try:
            proto = onnx.load(path, load_external_data=False)
        except OSError:
            raise
        except Exception as error:  # protobuf's own exception, which has no public name
            raise ValueError(f"{path}: expected an ONNX model ({error})") from error
        constants = {each.name for each in proto.graph.initializer}
        self.inputs = {each.name: each.type for each in proto.graph.input if each.name not in constants}
        self.outputs = [each.name for each in proto.graph.output]
        self.metadata = {each.key: each.value for each in proto.metadata_props}
        make = {"onnxruntime": _onnxruntime, "reference": _reference}[engine]
        try:
            self._run = make(path, threads)
        except (ImportError, MemoryError):
            raise
        except Exception as error:  # an engine's own kinds of exception
            reasons = [f"{use.title}: {use.reason}" for use in custom_operators(proto) if not use.runs]
            raise ValueError(f"{path}: {'; '.join(reasons) or _arrays.said(error)}") from error

    def _open_optimized(self, engine: str, threads: int) -> None:
        """Open a model in ONNX Runtime's own format, which says what it takes only once it is open."""
        import onnx

        if engine == "reference":
            raise ValueError(f"{self.path}: ONNX's evaluator takes ONNX models, not ONNX Runtime's own format")
        try:
            opened = _session(self.path, threads)
        except (ImportError, MemoryError):
            raise
        except Exception as error:  # ONNX Runtime's own kinds of exception
            raise ValueError(f"{self.path}: {_arrays.said(error)}") from error
        self._run = _runner(opened)
        self.inputs = {}
        for each in opened.get_inputs():
            self.inputs[each.name] = onnx.TypeProto()
            if each.type.startswith("tensor("):
                element = onnx.TensorProto.DataType.Value(each.type[len("tensor(") : -1].upper())
                self.inputs[each.name].CopyFrom(onnx.helper.make_tensor_type_proto(element, each.shape))
        self.outputs = [each.name for each in opened.get_outputs()]
        self.metadata = dict(opened.get_modelmeta().custom_metadata_map)

    def __call__(self, arrays: Mapping[str, np.ndarray]) -> Arrays:
        """Run the model; return its results by name."""
        missing = [name for name in self.inputs if name not in arrays]
        if missing:
            raise ValueError(f"{self.path}: expected inputs {', '.join(self.inputs)}, got none for {missing[0]}")
        try:
            results = self._run(dict(arrays))
        except MemoryError as error:
            raise MemoryError(f"{self.path}: {error}") from error
        except Exception as error:  # an engine's own kinds of exception
            raise ValueError(f"{self.path}: {_arrays.said(error)}") from error
        return _arrays.named_arrays(dict(zip(self.outputs, results, strict=True)))

    def read(self, name: str, file: str, preparation: Preparation = AS_IT_IS) -> Read:
        """Read a file as what an input takes."""
        dtype, shape = self._declared(name)
        if not is_picture(file):
            return Read(_arrays.fitted(_arrays.read_array(file, name), dtype, f"{file}: input {name}"))
        try:
            wanted = _images.layout(shape)
        except ValueError as error:
            raise ValueError(f"input {name}: {error}") from error
        picture = _images.read_picture(file, deep=dtype == np.uint16)
        try:
            array, placement = _images.prepared(picture, dtype, wanted, preparation)
        except ValueError as error:
            raise ValueError(f"{file}: input {name}: {error}") from error
        return Read(array, placement, {1: "gray", 3: "RGB", 4: "RGBA"}[picture.shape[2]])

    def _declared(self, name: str) -> tuple[np.dtype[Any], list[int | None] | None]:
        """The type and the shape of an input, None for what is left open."""
        import onnx

        if name not in self.inputs:
            raise ValueError(f"input: expected one of {', '.join(self.inputs)}, got {name!r}")
        kind = self.inputs[name].WhichOneof("value")
        if kind != "tensor_type":
            raise ValueError(f"input {name}: a file holds a tensor, and the model takes a {str(kind).split('_')[0]}")
        tensor = self.inputs[name].tensor_type
        shape = None
        if tensor.HasField("shape"):
            # Some exporters write an open dimension as 0 or -1.
            shape = [each.dim_value if each.dim_value > 0 else None for each in tensor.shape.dim]
        try:
            return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)), shape
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"input {name}: the model declares no type of elements that is known") from error


def is_picture(file: str) -> bool:
    """Whether a file is read as an image."""
    return Path(file).suffix.lower() not in _arrays.SUFFIXES


def is_optimized(path: str) -> bool:
    """Whether a file is in ONNX Runtime's own format (.ort)."""
    with open(path, "rb") as file:
        return file.read(8)[4:] == OPTIMIZED


def _onnxruntime(path: str, threads: int) -> Callable[[Arrays], list[Any]]:
    return _runner(_session(path, threads))


def _session(path: str, threads: int) -> Any:
    import onnxruntime

    from detops.onnx import session

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4  # what goes wrong is raised as well
    return session(path, sess_options=options)


def _runner(opened: Any) -> Callable[[Arrays], list[Any]]:
    import onnxruntime

    run_options = onnxruntime.RunOptions()
    run_options.log_severity_level = 4
    return lambda arrays: opened.run(None, arrays, run_options)


def _reference(path: str, threads: int) -> Callable[[Arrays], list[Any]]:
    from detops.onnx._reference import evaluator

    opened: Any = evaluator(path)
    return lambda arrays: opened.run(None, arrays)


@functools.lru_cache(maxsize=4)
def opened(path: str, engine: str, threads: int, changed: float) -> Model:
    """A model of this process, opened once until its file changes."""
    return Model(path, engine, threads)


@dataclass(frozen=True)
class Task:
    """The file of each input, and the files to write: results and picture, either of them or both."""

    files: dict[str, str]
    results: str | None = None
    picture: str | None = None

    def targets(self) -> list[str]:
        """Return the files to write."""
        return [path for path in (self.results, self.picture) if path is not None]


@dataclass(frozen=True)
class Job:
    """Settings that all tasks share. `scratch` is the folder for unfinished files of each folder that is written to."""

    model: str
    engine: str
    threads: int
    preparation: Preparation
    scratch: dict[str, str] = field(default_factory=dict)

    def attempt(self, task: Task) -> str | None:
        """Do a task, in whatever process, and return what went wrong; nothing of one task ends the others."""
        try:
            model = opened(self.model, self.engine, self.threads, os.path.getmtime(self.model))
            self.run(model, task)
        except MemoryError as error:
            return f"out of memory ({error})"
        except Exception as error:
            text = _arrays.said(error)
            known = isinstance(error, (ImportError, OSError, TypeError, ValueError))
            return text if known else f"{type(error).__name__}: {text}"
        return None

    def run(self, model: Model, task: Task) -> tuple[dict[str, Read], Arrays]:
        """Read the files, run the model, write what the task wants."""
        read = {name: model.read(name, file, self.preparation) for name, file in task.files.items()}
        results = model({name: each.array for name, each in read.items()})
        if task.results is not None:
            _arrays.save(task.results, results, self._scratch(task.results))
        if task.picture is not None:
            name = next(name for name, file in task.files.items() if is_picture(file))
            image = picture_of(task.files[name], read[name].placement, results, model.metadata)
            _draw.save_picture(image, task.picture, self._scratch(task.picture))
        return read, results

    def _scratch(self, path: str) -> str | None:
        return self.scratch.get(os.path.dirname(path))


@dataclass(frozen=True)
class Found:
    """Boxes (num_boxes, 4) as x1, y1, x2, y2, and a text and a number of the color for each."""

    boxes: np.ndarray
    texts: list[str]
    colors: list[int]


def found(results: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> Found:
    """Find the boxes among results, and what belongs to each: outputs that hold one number for each box.

    The metadata may say which outputs are boxes, scores and labels (``draw``, a JSON object), and the names of the
    labels (``labels``, a JSON list; or ``names``, a Python dict, as Ultralytics writes it).
    """
    said = _loaded(json.loads, metadata.get("draw"), dict)
    names = _loaded(json.loads, metadata.get("labels"), list) or _loaded(ast.literal_eval, metadata.get("names"), dict)
    order = sorted(results, key=lambda name: (name != said.get("boxes"), "box" not in name))
    for name in order:
        boxes = results[name]
        flat = boxes[0] if boxes.ndim == 3 and len(boxes) == 1 else boxes
        if flat.ndim == 2 and flat.shape[1] in (4, 5, 6) and flat.dtype.kind == "f":
            beside = {
                key: array.reshape(-1) for key, array in results.items() if key != name and array.size == len(flat)
            }
            columns = [*beside.values(), *flat[:, 4:].T]
            wholes = sorted(filter(_whole, columns), key=lambda column: column.dtype.kind == "f")
            labels = beside.get(said.get("labels", ""), wholes[0] if wholes else None)
            scores = beside.get(said.get("scores", ""), next((each for each in columns if each is not labels), None))
            return Found(flat[:, :4], _texts(labels, scores, names, len(flat)), _colors(labels, len(flat)))
    raise ValueError(f"draw: expected an output of boxes (num_boxes, 4), got {', '.join(results)}")


def _loaded(read: Callable[[str], Any], text: str | None, kind: type) -> Any:
    """Return a value of the metadata, empty where it has another type: other tools may use the same key."""
    try:
        value = read(text) if text is not None else kind()
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return kind()
    return value if isinstance(value, kind) else kind()


def _whole(column: np.ndarray) -> bool:
    """Whether these are the numbers of labels."""
    return column.dtype.kind in "iu" or (column.dtype.kind == "f" and len(column) > 0 and bool((column % 1 == 0).all()))


def _texts(labels: np.ndarray | None, scores: np.ndarray | None, names: Any, count: int) -> list[str]:
    texts = [""] * count if labels is None else [_name(names, int(label)) for label in labels]
    return texts if scores is None else [f"{a} {float(b):.2f}".strip() for a, b in zip(texts, scores, strict=True)]


def _name(names: Any, label: int) -> str:
    known = isinstance(names, dict) or 0 <= label < len(names)
    return str(names.get(label, label) if isinstance(names, dict) else names[label] if known else label)


def _colors(labels: np.ndarray | None, count: int) -> list[int]:
    return [0] * count if labels is None else [int(label) % len(COLORS) for label in labels]


def picture_of(
    file: str, placement: Placement | None, results: Mapping[str, np.ndarray], metadata: Mapping[str, str]
) -> Any:
    """Return an image file with the boxes among results, moved back to where they are in it, as a PIL image."""
    pixels = _images.with_channels(_images.in_8_bits(_images.read_picture(file)), 3)
    what = found(results, metadata)
    boxes = what.boxes.astype(np.float64)
    if placement is not None:
        boxes = placement.back(boxes)
    boxes = np.clip(boxes, 0, np.array(pixels.shape[1::-1] * 2))
    # Boxes are drawn as far as they lie on the picture; not NaN, and not boxes of nothing but filling.
    tags = [
        _draw.Tag(box.tolist(), text, COLORS[color])
        for box, text, color in zip(boxes, what.texts, what.colors, strict=True)
        if box[2] > box[0] and box[3] > box[1]
    ]
    return _draw.drawn(pixels, tags)
