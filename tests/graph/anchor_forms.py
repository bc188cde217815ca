"""Decodes of anchors in center form, and of anchors whose pixels are counted, as lines of ONNX and as GraphDefs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx

from detops.graph.model._tf_schema import messages
from detops.graph.model._tf_tensors import number_of, set_tensor

from .models import DATA, decode_model

SCOPE = "rpn/decode_bbox_target"
COUNTED = {"size": "less = Sub(hi, lo)\nsize = Add(less, one)"}
# the center is half a pixel further than the mean of the corners
FURTHER = COUNTED | {"sum": "reach = Mul(size, half)", "center": "center = Add(lo, reach)"}
CENTERED = {"corners": "center, size = Split<axis=1>(boxes)", "size": "", "sum": "", "center": ""}
VARIANCES = {"clip": "bounded = Mul(s, fifth)", "offset": "varied = Mul(t, tenth)\noffset = Mul(varied, size)"}
LESS_AT_THE_END = {"high": "beyond = Add(moved, halved)\nhigh = Sub(beyond, one)"}
LESS_ON_BOTH_SIDES = {
    "low": "outer = Sub(moved, halved)\nlow = Add(outer, half)",
    "high": "beyond = Add(moved, halved)\nhigh = Sub(beyond, half)",
}
NUMBERS = {"one": np.float32(1), "tenth": np.float32(0.1), "fifth": np.float32(0.2)}

# name: lines, the form of the anchors, and the offset
FORMS: dict[str, tuple[dict[str, str], str, int]] = {
    "ssd": (CENTERED | VARIANCES | {"high": "high = Add(low, new)"}, "center", 0),
    "center": (CENTERED, "center", 0),
    "center, counted": (CENTERED | LESS_ON_BOTH_SIDES, "center", 1),
    "maskrcnn_benchmark": (FURTHER | LESS_AT_THE_END, "corner", 1),
    "mmdetection_1": (COUNTED | LESS_ON_BOTH_SIDES, "corner", 1),
    "py_faster_rcnn": (FURTHER, "corner", 0),
    "mmdetection_2_legacy": (COUNTED, "corner", 0),
}
# what is added to the anchors before the node
ADDED = {"py_faster_rcnn": (0, 0, 1, 1), "mmdetection_2_legacy": (-0.5, -0.5, 0.5, 0.5)}


def form_model(name: str, **arguments: Any) -> onnx.ModelProto:
    """Return a decode of a form."""
    given = NUMBERS | {"half": np.float32(0.5)}
    constants = {key: value.astype(arguments.get("dtype", np.float32)) for key, value in given.items()}
    return decode_model(FORMS[name][0], constants, **arguments)


def _constant(graph: Any, name: str, value: Any) -> str:
    node = graph.node.add(name=name, op="Const")
    node.attr["dtype"].type = number_of(value.dtype)
    set_tensor(node.attr["value"].tensor, value)
    return name


def _add(graph: Any, op: str, name: str, *inputs: str) -> str:
    node = graph.node.add(name=name, op=op, input=inputs)
    node.attr["T"].type = 1
    return name


def _replace(graph: Any, old: str, new: str) -> None:
    """Let every reader of a tensor read another one."""
    for node in graph.node:
        if node.name != new:
            node.input[:] = [new if name == old else name for name in node.input]


def _remove(graph: Any, *names: str) -> None:
    for node in [node for node in graph.node if node.name in {f"{SCOPE}/{name}" for name in names}]:
        graph.node.remove(node)


def _tensorpack() -> Any:
    return messages()["GraphDef"].FromString((DATA / "pos_concat_last_axis.pb").read_bytes())


def centered() -> Any:
    """Return tensorpack's graph for anchors in center form."""
    graph = _tensorpack()
    gone = {f"{SCOPE}/{name}": f"{SCOPE}/split_1{port}" for name, port in (("sub", ":1"), ("mul", ""))}
    for old, new in gone.items():
        _replace(graph, old, new)
    _remove(graph, "sub", "mul", "add", "mul/y")
    return graph


def counted() -> Any:
    """Return tensorpack's graph with the arithmetic of maskrcnn-benchmark."""
    graph = _tensorpack()
    one, half = _constant(graph, f"{SCOPE}/one", np.float32(1)), f"{SCOPE}/mul/y"
    _replace(graph, f"{SCOPE}/sub", _add(graph, "AddV2", f"{SCOPE}/counted", f"{SCOPE}/sub", one))
    reach = _add(graph, "Mul", f"{SCOPE}/reach", f"{SCOPE}/counted", half)
    _replace(graph, f"{SCOPE}/mul", _add(graph, "AddV2", f"{SCOPE}/further", f"{SCOPE}/split_1", reach))
    _replace(graph, f"{SCOPE}/add_2", _add(graph, "Sub", f"{SCOPE}/last", f"{SCOPE}/add_2", one))
    _remove(graph, "mul", "add")
    return graph


def tf_faster_rcnn() -> Any:
    """Return py-faster-rcnn's decode as ``bbox_transform_inv_tf`` has it in its TensorFlow version: by columns."""
    graph = messages()["GraphDef"]()
    for name in ("boxes", "deltas"):
        node = graph.node.add(name=name, op="Placeholder")
        node.attr["dtype"].type = 1
        for size in (-1, 4):
            node.attr["shape"].shape.dim.add(size=size)
    one, half = _constant(graph, "decode/one", np.float32(1)), _constant(graph, "decode/half", np.float32(0.5))

    def column(source: str, place: int) -> str:
        name = f"decode/{source}_{place}"
        bounds = [
            _constant(graph, f"{name}_{key}", np.array(value, np.int32))
            for key, value in (("begin", [0, place]), ("end", [0, place + 1]), ("step", [1, 1]))
        ]
        node = graph.node.add(name=name, op="StridedSlice", input=[source, *bounds])
        node.attr["T"].type, node.attr["Index"].type = 1, 3
        for mask, value in (("begin_mask", 1), ("end_mask", 1), ("shrink_axis_mask", 2)):
            node.attr[mask].i = value
        return name

    lows, highs = [], []
    for place, axis in enumerate("xy"):

        def step(op: str, name: str, *inputs: str, axis: str = axis) -> str:
            return _add(graph, op, f"decode/{name}_{axis}", *inputs)

        first, last = column("boxes", place), column("boxes", place + 2)
        size = step("Add", "size", step("Sub", "less", last, first), one)
        center = step("Add", "center", first, step("Mul", "reach", size, half))
        moved = step("Add", "moved", step("Mul", "shift", column("deltas", place), size), center)
        new = step("Mul", "new", step("Exp", "grown", column("deltas", place + 2)), size)
        halved = step("Mul", "halved", new, half)
        lows.append(step("Sub", "low", moved, halved))
        highs.append(step("Add", "high", moved, halved))
    _add(graph, "Pack", "decode/stacked", *lows, *highs)
    graph.node[-1].attr["N"].i, graph.node[-1].attr["axis"].i = 4, 1
    return graph


# name: what makes the graph, its inputs and output, the form of the anchors, and the offset
GRAPHS: dict[str, tuple[Callable[[], Any], tuple[str, str, str], str, int]] = {
    "centered": (centered, ("box_logits", "anchors", "boxes"), "center", 0),
    "counted": (counted, ("box_logits", "anchors", "boxes"), "corner", 1),
    "tf_faster_rcnn": (tf_faster_rcnn, ("deltas", "boxes", "decode/stacked"), "corner", 0),
}
