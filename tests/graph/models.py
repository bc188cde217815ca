"""Small models to fuse: the fixtures, and one decode written line by line so that a test can change any line."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

DATA = Path(__file__).parents[1] / "data" / "graphs"
CLIP = np.float32(np.log(1333 / 16))

# tensorpack's decode; a test replaces lines by key
LINES = {
    "form": "",
    "rows": "rows = Reshape(d, form)",
    "halves": "t, s = Split<axis=1>(rows)",
    "boxes": "boxes = Reshape(b, form)",
    "corners": "lo, hi = Split<axis=1>(boxes)",
    "size": "size = Sub(hi, lo)",
    "sum": "sum = Add(hi, lo)",
    "center": "center = Mul(sum, half)",
    "clip": "bounded = Min(s, clip)",
    "exp": "grown = Exp(bounded)",
    "new": "new = Mul(grown, size)",
    "halved": "halved = Mul(new, half)",
    "offset": "offset = Mul(t, size)",
    "moved": "moved = Add(offset, center)",
    "low": "low = Sub(moved, halved)",
    "high": "high = Add(moved, halved)",
    "joined": "joined = Concat<axis=1>(low, high)",
    "shape": "shape = Shape(b)",
    "out": "out = Reshape(joined, shape)",
}


# what becomes of them where boxes are rows of four, and no line makes `out`
FLAT = {
    "form": "",
    "rows": "",
    "halves": "t, s = Split<axis=-1>(d)",
    "boxes": "",
    "corners": "lo, hi = Split<axis=-1>(b)",
    "shape": "",
    "out": "",
}

# as PyTorch's exporter writes out[:, 0:2] = low and out[:, 2:4] = high, for zeros of any number of rows
IN_PLACE = """whole = Shape(d)
blank = ConstantOfShape(whole)
n = Gather<axis=0>(whole, first)
limit = Cast<to=7>(n)
counted = Range(start, limit, step)
column = Reshape(counted, single)
pair = Add(column, at_low)
form_of = Shape(pair)
rows_low = Expand(column, form_of)
rows_high = Expand(column, form_of)
columns_low = Expand(at_low, form_of)
columns_high = Expand(at_high, form_of)
r0 = Unsqueeze(rows_low, last)
c0 = Unsqueeze(columns_low, last)
r1 = Unsqueeze(rows_high, last)
c1 = Unsqueeze(columns_high, last)
index_low = Concat<axis=-1>(r0, c0)
index_high = Concat<axis=-1>(r1, c1)
half_way = ScatterND(blank, index_low, low)
out = ScatterND(half_way, index_high, high)"""
PLACES: dict[str, Any] = {
    "first": np.array(0),
    "start": np.array(0),
    "step": np.array(1),
    "single": np.array([-1, 1]),
    "last": np.array([-1]),
    "at_low": np.array([0, 1]),
    "at_high": np.array([2, 3]),
}


@cache
def index() -> dict[str, dict[str, Any]]:
    """Return what the fixtures are, and whether each fuses."""
    return json.loads((DATA / "index.json").read_text())


def decode_model(
    lines: Mapping[str, str] | None = None,
    constants: Mapping[str, Any] | None = None,
    *,
    inputs: str = "float[N,4] d, float[N,4] b",
    outputs: str = "float[N,4] out",
    opset: int = 17,
    dtype: Any = np.float32,
    ir_version: int = 8,
) -> onnx.ModelProto:
    """Return tensorpack's decode with some lines replaced and some constants added or replaced."""
    text = "\n".join(line for line in {**LINES, **(lines or {})}.values() if line)
    model = onnx.parser.parse_model(
        f'<ir_version: {ir_version}, opset_import: ["": {opset}]> decode ({inputs}) => ({outputs}) {{ {text} }}'
    )
    values = {"form": np.array([-1, 2, 2]), "half": np.array(0.5, dtype), "clip": np.array(CLIP, dtype)}
    values |= constants or {}
    read = {name for node in model.graph.node for name in node.input}
    made = {name for node in model.graph.node for name in node.output} | {i.name for i in model.graph.input}
    for name, value in values.items():
        if name in read and name not in made:
            model.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    onnx.checker.check_model(model)
    return model


def torchvision_head() -> onnx.ModelProto:
    """Return the head of a Faster R-CNN, which deals all predictions out to the proposals: (1, N * 12) to one."""
    lines = {
        "form": "counted = Shape(b)\ncount = Slice(counted, zero, one)\nform_of = Concat<axis=0>(count, any)",
        "rows": "flat = Reshape(d, form_of)\ngrouped = Reshape(flat, groups)\nscaled = Div(grouped, scale)",
        "halves": "t, s = Split<axis=2>(scaled)",
        "boxes": "boxes = Unsqueeze(b, one)",
        "corners": "lo, hi = Split<axis=2>(boxes)",
        "joined": "out = Concat<axis=2>(low, high)",
        "shape": "",
        "out": "",
    }
    constants = {"groups": np.array([0, -1, 4]), "any": np.array([-1]), "zero": np.array([0]), "one": np.array([1])}
    constants["scale"] = np.array([10, 10, 5, 5], np.float32)
    return decode_model(lines, constants, inputs="float[M,12] d, float[N,4] b", outputs="float[P,Q,4] out")


def in_place(lines: str = IN_PLACE, constants: Mapping[str, Any] | None = None, **arguments: Any) -> onnx.ModelProto:
    """Return a decode that writes its corners into a tensor of zeros."""
    return decode_model(FLAT | {"joined": lines}, PLACES | dict(constants or {}), **arguments)


def session(model: onnx.ModelProto | bytes) -> onnxruntime.InferenceSession:
    """Return a session of stock ONNX Runtime."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    data = model if isinstance(model, bytes) else model.SerializeToString()
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def run(model: onnx.ModelProto | bytes, feeds: Mapping[str, Any]) -> list[Any]:
    """Run a model in stock ONNX Runtime."""
    return session(model).run(None, dict(feeds))


def boxes(shape: Sequence[int], seed: int = 0, dtype: Any = np.float32) -> Any:
    """Return boxes along the last axis, most of them with x1 < x2; along another axis, any numbers."""
    random = np.random.default_rng(seed)
    values = random.uniform(0, 300, shape)
    if shape[-1] == 4:
        values[..., 2:] = values[..., :2] + random.uniform(-5, 90, values[..., 2:].shape)
    return values.astype(dtype)


def predictions(shape: Sequence[int], seed: int = 1, dtype: Any = np.float32) -> Any:
    """Return predictions, some of them beyond any clip."""
    random = np.random.default_rng(seed)
    return (random.normal(0, 1, shape) * random.choice([0.2, 1, 5], shape)).astype(dtype)


def golden(name: str, suffix: str = "") -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the inputs and the outputs that the original framework gave for a fixture."""
    with np.load(DATA / f"{name}.npz") as file:
        feeds = {key[3:] + suffix: file[key] for key in file.files if key.startswith("in_")}
        return feeds, {key[4:] + suffix: file[key] for key in file.files if key.startswith("out_")}


def check_valid(model: onnx.ModelProto) -> None:
    """Check a model in full, with strict shape inference."""
    onnx.checker.check_model(model, full_check=True)
    onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)


def names(values: Any) -> list[str]:
    """Return the names of a list of graph inputs or outputs."""
    return [value.name for value in values]


def operators(model: onnx.ModelProto) -> list[str]:
    """Return the operators of the main graph."""
    return [node.op_type for node in model.graph.node]


def insert(model: onnx.ModelProto, tensor: str, *chain: tuple[str, dict[str, Any]]) -> onnx.ModelProto:
    """Return a copy in which every reader of `tensor` reads it through a chain of operators with attributes."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    last = f"{tensor}_{len(chain)}"
    for node in changed.graph.node:
        for place, name in enumerate(node.input):
            if name == tensor:
                node.input[place] = last
    made = [place + 1 for place, node in enumerate(changed.graph.node) if tensor in node.output]
    source = tensor
    for number, (op, attributes) in enumerate(chain, start=1):
        node = helper.make_node(op, [source], [f"{tensor}_{number}"], **attributes)
        changed.graph.node.insert((made[0] if made else 0) + number - 1, node)
        source = f"{tensor}_{number}"
    return changed
