"""Mutants of box decodes: a few random changes to a model, some to what it says of itself, and what fusion makes of it.

`python -m tests.graph.mutants --mutants 5000 --seed 1` runs many and prints the counts.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from detops.graph import fuse_decode_bbox

from . import feeds as feeding
from . import models
from .anchor_forms import FORMS, form_model
from .feeds import CHOICE, FORM, INDEX, Declared, Random

DATA = Path(__file__).parents[1] / "data" / "graphs"
BASES = (
    "pos_concat_last_axis",
    "pos_fastrcnn_tf1_add",
    "pos_rpn_hwa4",
    "pos_transpose_4chw",
    "pos_with_clip_boxes",
    "pos_half",
    "v2_od_api_min80",
    "neg_maximum",
    "neg_concat_order",
    "exports/d2_stack.ts",
    "exports/tv_single_c3.ts",
    "exports/tv_single_c3.dyn",
    "exports/mm_plain.dyn",
    "exports/mm_plain.ts",
    "torchvision_head",
    "two_axes_of_boxes",
    "in_place",
    "exports/mmdeploy_rois.ts",
    "exports/ssd_center.ts",
    "exports/maskrcnn_benchmark.ts",
    *FORMS,
)
MADE = {
    **{name: partial(form_model, name) for name in FORMS},
    "torchvision_head": models.torchvision_head,
    "in_place": models.in_place,
    "two_axes_of_boxes": lambda: models.decode_model(
        inputs="float[H,W,4] d, float[H,W,4] b", outputs="float[P,Q,4] out"
    ),
}
ULPS = {2: 16, 4: 256, 8: 256}  # by the bytes of a number: 256 units of half precision would be a quarter of a box


@dataclass(frozen=True)
class Verdict:
    """What happened to one mutant."""

    kind: str  # "refused", "right", "wrong", "invalid"
    what: str  # the base and the mutations
    detail: str = ""


@cache
def base(name: str) -> bytes:
    if name in MADE:
        return MADE[name]().SerializeToString()
    return (DATA / f"{name}.onnx").read_bytes()


def mutant(seed: int, number: int) -> tuple[onnx.ModelProto, str, list[Declared]]:
    """Return mutant `number` of a seed, what was done to it, and the shapes that its inputs had before."""
    random = np.random.default_rng([seed, number])
    name = BASES[number % len(BASES)]
    model = onnx.load_model_from_string(base(name))
    usual = [declared(value) for value in model.graph.input]
    done = []
    kinds = [MUTATIONS] * random.choice([0, 1, 1, 1, 2]) + [DISGUISES] * random.choice([0, 0, 0, 0, 0, 1, 2])
    for mutations in kinds or [DISGUISES, DISGUISES]:
        for _ in range(20):
            with np.errstate(all="ignore"):
                what = mutations[random.integers(len(mutations))](model.graph, random)
            if what:
                done.append(what)
                break
    return model, f"{name}: {'; '.join(done)}", usual


def judge(model: onnx.ModelProto, what: str, usual: list[Declared]) -> Verdict:
    """Fuse a model, and run it before and after in every shape that it permits."""
    try:
        before = session(model)
    except Exception:
        return Verdict("invalid", what)  # ONNX Runtime doesn't take the mutant at all
    fused, findings = fuse_decode_bbox(model)
    if not any(finding.fused for finding in findings):
        return Verdict("refused", what, "; ".join(finding.reason for finding in findings))
    after = cache(lambda: session(fused))  # made in the comparison: a model that doesn't load is a wrong one
    return compared(
        what,
        lambda feeds: before.run(None, feeds),
        lambda feeds: after().run(None, feeds),
        feeds_of(model, usual),
        findings,
        lambda feeds: _unequal(model, findings, feeds),
        halves=_casts_to_half(fused),
    )


def _casts_to_half(model: onnx.ModelProto) -> bool:
    """Tell whether a model still casts to half precision: a gap of a few units may become one unit of those."""
    casts = [node for node in model.graph.node if node.op_type == "Cast"]
    return any(each.i == onnx.TensorProto.FLOAT16 for node in casts for each in node.attribute)


def _unequal(model: onnx.ModelProto, findings: Any, feeds: dict[str, Any]) -> bool:
    """Tell whether a node gets anchors that don't broadcast to the shape of its predictions: it fails, as is said.

    That is asked only where the fused model has failed. A failure gives no boxes, so none can be wrong; and the shapes
    are those that the mutant's own tensors have in ONNX Runtime, not those that the proof has made of them.
    """
    pairs = [(each.box_predictions, each.anchors) for each in findings if each.fused]
    seen = onnx.ModelProto()
    seen.CopyFrom(model)
    inner = {name for pair in pairs for name in pair} - set(feeds)
    seen.graph.output.extend(onnx.ValueInfoProto(name=name) for name in inner)
    names = [value.name for value in seen.graph.output]
    values = feeds | dict(zip(names, session(seen).run(None, feeds), strict=True))
    return any(not _fits(values[ours].shape, values[theirs].shape) for ours, theirs in pairs)


def _fits(predictions: tuple[int, ...], anchors: tuple[int, ...]) -> bool:
    """Tell whether anchors broadcast to predictions, which may have several classes where the coordinates come last."""
    if len(anchors) > len(predictions):
        return False
    padded = (1,) * (len(predictions) - len(anchors)) + anchors
    last = predictions[-1] if predictions[-1] % 4 else padded[-1]
    return all(dim in (1, whole) for dim, whole in zip(padded, (*predictions[:-1], last), strict=True))


Run = Callable[[dict[str, Any]], list[Any]]


def compared(
    what: str,
    before: Run,
    after: Run,
    feeds: Iterable[dict[str, Any]],
    findings: Any,
    may_fail: Callable[[dict[str, Any]], bool] = lambda feeds: False,
    *,
    halves: bool = False,
) -> Verdict:
    """Run a mutant and what fusion made of it.

    The usual shapes must run. At others the fused node may fail, where its inputs don't fit, but not give other boxes.
    """
    ran = 0
    for number, given in enumerate(feeds):
        try:
            expected = before(given)
        except Exception:
            continue  # the mutant itself cannot run on these shapes
        ran += number < len(feeding.SIZES)
        try:
            problem = difference(expected, after(given), given, halves=halves)
        except Exception as error:
            problem = f"the fused model fails: {error!r}" if number < len(feeding.SIZES) and not may_fail(given) else ""
        if problem:
            shapes = {name: value.shape for name, value in given.items()}
            return Verdict("wrong", what, f"at {shapes}: {problem}; {findings}")
    return Verdict("right" if ran else "invalid", what)


def difference(expected: list[Any], got: list[Any], feeds: dict[str, Any], *, halves: bool = False) -> str:
    """Say how the outputs differ by more than the order of the arithmetic explains; empty where they don't.

    Three things are let pass. Infinity counts as the largest number: that hides what is wrong only in boxes that
    overflow both before and after, and the same mutant has many that don't. So does NaN where the fused model has
    infinity: a graph that adds a size to its lower corner gives it where both overflow. And with `halves`, where the
    fused model casts to half precision outside the node, one unit of that is added: a cast inside a decode that was
    fused wrongly isn't in the fused model, so nothing is added for it.
    """
    for left, right in zip(expected, got, strict=True):
        if left.shape != right.shape or left.dtype != right.dtype:
            return f"{left.dtype} {left.shape} became {right.dtype} {right.shape}"
        left = np.where(np.isnan(left) & np.isinf(right), right, left)
        # what one order of the arithmetic rounds to the largest number, another one may round to infinity
        top = float(np.finfo(left.dtype).max)
        left, right = (np.clip(value.astype(np.float64), -top, top).astype(value.dtype) for value in (left, right))
        finite = np.isfinite(left.astype(np.float64))
        if not np.array_equal(finite, np.isfinite(right.astype(np.float64))):
            return "other elements are NaN"
        numbers = [value.astype(np.float64) for value in feeds.values() if value.dtype.kind == "f"]
        largest = max(np.abs(value).max(initial=1) for value in numbers)
        # exp(t) is as inexact as t is large, and every coordinate of a box holds the sum of the largest terms
        slack = ULPS[left.dtype.itemsize] * np.finfo(left.dtype).eps * (np.abs(left.astype(np.float64)) + largest)
        if halves:
            # twice that of half the number: the largest one has no neighbor above it
            slack += 2 * np.spacing(np.minimum(np.abs(left) / 2, np.finfo(np.float16).max / 2).astype(np.float16))
        with np.errstate(all="ignore"):
            gap = np.abs(left.astype(np.float64) - right.astype(np.float64))
        if (gap[finite] > slack[finite]).any():
            return f"{gap[finite].max()} apart"
    return ""


def session(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    """Return a session that does as ONNX says: optimized, a Reshape to a shape's own sizes never fails."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def declared(value: onnx.ValueInfoProto) -> Declared:
    """Return the shape that a graph input declares."""
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        return None
    return tuple(dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None for dim in tensor.shape.dim)


def feeds_of(model: onnx.ModelProto, usual: list[Declared]) -> Iterator[dict[str, Any]]:
    """Yield boxes for the second input and predictions, on both sides of the clip, for the first."""
    boxes = [
        feeding.Input(
            value.name, helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type), declared(value), shape
        )
        for value, shape in zip(model.graph.input, usual, strict=False)
    ]
    hiding = [value.name for value in model.graph.input[len(usual) :]]
    return feeding.feeds(boxes[0], boxes[1], hiding, np.random.default_rng(0))


# ---------------------------------------------------------------------------------------------------- mutations


def _pick(random: Random, items: list[Any]) -> Any:
    return items[random.integers(len(items))] if items else None


def _constants(graph: Any) -> list[Any]:
    """Return the TensorProtos that the graph computes with."""
    tensors = list(graph.initializer)
    for node in graph.node:
        tensors += [attribute.t for attribute in node.attribute if attribute.name == "value"]
    return tensors


def _set(tensor: Any, value: Any) -> None:
    name = tensor.name
    tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(value), name))


def _shown(tensor: Any) -> str:
    return f"{numpy_helper.to_array(tensor).tolist()}"[:60]


def _change_float(graph: Any, random: Random) -> str:
    tensor = _pick(random, [t for t in _constants(graph) if numpy_helper.to_array(t).dtype.kind == "f"])
    if tensor is None:
        return ""
    value = np.array(numpy_helper.to_array(tensor))
    was = _shown(tensor)
    way = random.integers(6)
    place = tuple(random.integers(size) for size in value.shape) if random.random() < 0.5 else ...
    if way == 0:
        value[place] = value[place] * value.dtype.type(random.choice([2, 0.5, -1, 1.01, 0.999]))
    elif way == 1:
        value[place] = np.nextafter(value[place], value.dtype.type(random.choice([-1000, 1000])))
    elif way == 2:
        value[place] = value[place] + value.dtype.type(random.choice([1, -1, 0.25]))
    elif way == 3:
        value = np.flip(value) if value.ndim else value
    elif way == 4:
        value = value.reshape(-1)  # a scalar becomes rank 1: harmless where it broadcasts
    else:
        value[place] = value.dtype.type(random.choice([0, 1, -1, 0.5, 2, 10, 1000]))
    _set(tensor, value)
    return f"constant {was} -> {_shown(tensor)}"


def _change_int(graph: Any, random: Random) -> str:
    tensor = _pick(random, [t for t in _constants(graph) if numpy_helper.to_array(t).dtype.kind == "i"])
    if tensor is None:
        return ""
    value = np.array(numpy_helper.to_array(tensor))
    was = _shown(tensor)
    if value.size == 0:
        return ""
    way = random.integers(3)
    place = tuple(random.integers(size) for size in value.shape)
    if way == 0:
        value[place] = value[place] + random.choice([-2, -1, 1, 2])
    elif way == 1:
        value[place] = random.choice([-1, 0, 1, 2, 3, 4, 5, 6, 8, 12, 100])
    else:
        value = random.permutation(value) if value.ndim else value
    _set(tensor, value)
    return f"constant {was} -> {_shown(tensor)}"


def _change_attribute(graph: Any, random: Random) -> str:
    node = _pick(random, [n for n in graph.node if any(a.name in ("axis", "perm") for a in n.attribute)])
    if node is None:
        return ""
    attribute = next(a for a in node.attribute if a.name in ("axis", "perm"))
    if attribute.name == "axis":
        attribute.i = int(random.choice([-2, -1, 0, 1, 2]))
        return f"{node.op_type} axis {attribute.i}"
    perm = random.permutation(list(attribute.ints))
    attribute.ints[:] = [int(axis) for axis in perm]
    return f"{node.op_type} perm {perm.tolist()}"


def _swap_operands(graph: Any, random: Random) -> str:
    node = _pick(random, [n for n in graph.node if len(n.input) > 1 and n.op_type not in ("Slice", "Clip")])
    if node is None:
        return ""
    first, second = random.choice(len(node.input), 2, replace=False)
    node.input[first], node.input[second] = node.input[second], node.input[first]
    return f"{node.op_type} operands {first} and {second} swapped"


def _swap_outputs(graph: Any, random: Random) -> str:
    node = _pick(random, [n for n in graph.node if len(n.output) > 1])
    if node is None:
        return ""
    first, second = random.choice(len(node.output), 2, replace=False)
    node.output[first], node.output[second] = node.output[second], node.output[first]
    return f"{node.op_type} outputs {first} and {second} swapped"


_KINDS = (("Add", "Sub", "Mul", "Div"), ("Min", "Max", "Add"), ("Exp", "Neg", "Identity", "Sigmoid"))


def _change_operator(graph: Any, random: Random) -> str:
    node = _pick(random, [n for n in graph.node if any(n.op_type in kind for kind in _KINDS)])
    if node is None:
        return ""
    was = node.op_type
    node.op_type = str(random.choice(next(kind for kind in _KINDS if was in kind)))
    return f"{was} -> {node.op_type}" if node.op_type != was else ""


def _rewire(graph: Any, random: Random) -> str:
    place = random.integers(len(graph.node))
    node = graph.node[place]
    earlier = [value.name for value in graph.input]
    earlier += [name for other in graph.node[:place] for name in other.output]
    if not node.input:
        return ""
    at = random.integers(len(node.input))
    node.input[at] = _pick(random, earlier)
    return f"input {at} of {node.op_type} -> {node.input[at]}"


def _insert(graph: Any, random: Random) -> str:
    """Put one operator, or a pair of them, on an edge (or before all readers of an input)."""
    place = int(random.integers(len(graph.node)))
    node = graph.node[place]
    data = [index for index, name in enumerate(node.input) if name and index == 0]
    if not data or node.op_type == "Shape":
        return ""
    name = node.input[0]
    what, made = _pick(random, INSERTIONS)(name, f"inserted_{place}_{random.integers(1 << 30)}", graph)
    node.input[0] = made[-1].output[0]
    for offset, new in enumerate(made):
        graph.node.insert(place + offset, new)
    return f"{what} before {node.op_type}"


def _integers(graph: Any, name: str, values: Any) -> str:
    graph.initializer.append(numpy_helper.from_array(np.array(values, np.int64), name))
    return name


def _one(op: str, **attributes: Any) -> Callable[[str, str, Any], tuple[str, list[Any]]]:
    def make(source: str, name: str, graph: Any) -> tuple[str, list[Any]]:
        return f"{op} {attributes or ''}", [helper.make_node(op, [source], [name], **attributes)]

    return make


def _slice(start: int, stop: int, axis: int, step: int = 1) -> Callable[[str, str, Any], tuple[str, list[Any]]]:
    def make(source: str, name: str, graph: Any) -> tuple[str, list[Any]]:
        inputs = [source]
        for part, value in (("a", start), ("b", stop), ("c", axis), ("d", step)):
            inputs.append(_integers(graph, f"{name}_{part}", [value]))
        return f"Slice [{start}:{stop}:{step}] on {axis}", [helper.make_node("Slice", inputs, [name])]

    return make


def _cast(*kinds: int) -> Callable[[str, str, Any], tuple[str, list[Any]]]:
    def make(source: str, name: str, graph: Any) -> tuple[str, list[Any]]:
        nodes = []
        for number, kind in enumerate(kinds):
            nodes.append(helper.make_node("Cast", [source], [f"{name}_{number}"], to=kind))
            source = f"{name}_{number}"
        return f"Cast through {kinds}", nodes

    return make


def _bound(op: str, bound: float) -> Callable[[str, str, Any], tuple[str, list[Any]]]:
    def make(source: str, name: str, graph: Any) -> tuple[str, list[Any]]:
        kind = graph.input[0].type.tensor_type.elem_type
        value = np.array(bound, helper.tensor_dtype_to_np_dtype(kind))
        graph.initializer.append(numpy_helper.from_array(value, f"{name}_bound"))
        return f"{op} {bound}", [helper.make_node(op, [source, f"{name}_bound"], [name])]

    return make


def _open_sizes(graph: Any, random: Random) -> str:
    """Leave sizes of an input open, by no name, by one of their own, or by one that both inputs have."""
    value = graph.input[random.integers(2)]
    dims = value.type.tensor_type.shape.dim
    if not dims:
        return ""
    for place in {int(random.integers(len(dims))), int(random.integers(len(dims)))}:
        dims[place].Clear()
        name = str(random.choice(["", f"{value.name}_{place}", f"open_{place}"]))
        if name:
            dims[place].dim_param = name
    return f"{value.name} has the shape {declared(value)}"


def _open_rank(graph: Any, random: Random) -> str:
    value = graph.input[random.integers(2)]
    value.type.tensor_type.ClearField("shape")
    return f"{value.name} has any rank"


def _forget(graph: Any, random: Random) -> str:
    """Drop what the file says of inner tensors and of its outputs' shapes."""
    for value in graph.output:
        value.type.tensor_type.ClearField("shape")
    del graph.value_info[:]
    return "shapes of inner tensors and outputs dropped"


def _claim(graph: Any, random: Random) -> str:
    """Say of an inner tensor that it has a shape."""
    node = _pick(random, [node for node in graph.node if node.op_type not in ("Constant", "Shape")])
    shape = _pick(random, [["N", 4], ["N", 12], [1, "N", 4], [6, 4], ["N"], [None, None, None]])
    kind = graph.input[0].type.tensor_type.elem_type
    stale = [value for value in graph.value_info if value.name == node.output[0]]
    for value in stale:
        graph.value_info.remove(value)
    graph.value_info.append(helper.make_tensor_value_info(node.output[0], kind, shape))
    return f"the output of {node.op_type} is said to be {shape}"


def _hide(graph: Any, random: Random) -> str:
    """Let an input through an operator whose result has a rank that another input decides."""
    source = graph.input[random.integers(2)]
    hidden = f"hidden_{source.name}"
    if any(hidden in node.output for node in graph.node):
        return ""
    for node in graph.node:
        for place, name in enumerate(node.input):
            if name == source.name:
                node.input[place] = hidden
    way = _pick(random, [INDEX, FORM, CHOICE])
    other = f"{way}{source.name}"
    if way == CHOICE:
        branches = {
            f"{side}_branch": helper.make_graph(
                [helper.make_node("Unsqueeze" if side == "else" else "Identity", inputs, [f"{side}_{hidden}"])],
                side,
                [],
                [helper.make_tensor_value_info(f"{side}_{hidden}", source.type.tensor_type.elem_type, None)],
            )
            for side, inputs in (
                ("then", [source.name]),
                ("else", [source.name, _integers(graph, f"{hidden}_axis", [0])]),
            )
        }
        graph.node.insert(0, helper.make_node("If", [other], [hidden], **branches))
        graph.input.append(helper.make_tensor_value_info(other, onnx.TensorProto.BOOL, []))
    else:
        graph.node.insert(0, helper.make_node({INDEX: "Gather", FORM: "Reshape"}[way], [source.name, other], [hidden]))
        shape = None if way == INDEX else [None]
        graph.input.append(helper.make_tensor_value_info(other, onnx.TensorProto.INT64, shape))
    return f"{source.name} passes through {graph.node[0].op_type} by {other}"


_END = np.iinfo(np.int64).max
INSERTIONS = [
    _one("Identity"),
    _one("Identity"),
    _one("Neg"),
    _one("Relu"),
    _one("Abs"),
    _one("Dropout"),
    _one("Transpose"),
    _one("Transpose", perm=[1, 0]),
    _one("Transpose", perm=[0, 2, 1]),
    _slice(0, 100, 0),
    _slice(1, _END, 0),
    _slice(0, _END, 0),
    _slice(_END, -_END, 0, -1),
    _slice(_END, -_END, -1, -1),
    _slice(0, 2, -1),
    _slice(0, 1, 1),
    _cast(1),
    _cast(10, 1),
    _cast(11, 1),
    _cast(7, 1),
    _bound("Min", 3.0),
    _bound("Max", 0.0),
    _bound("Mul", 1.0),
    _bound("Add", 0.0),
    _bound("Sub", 1.0),
    _bound("Div", 2.0),
]
MUTATIONS: list[Callable[[Any, Random], str]] = [
    _change_float,
    _change_float,
    _change_int,
    _change_int,
    _change_attribute,
    _swap_operands,
    _swap_operands,
    _swap_outputs,
    _change_operator,
    _rewire,
    _insert,
    _insert,
    _insert,
]
# What hides knowledge without changing what a model computes on the usual shapes.
DISGUISES: list[Callable[[Any, Random], str]] = [_open_sizes, _open_rank, _forget, _claim, _hide]


def run(seed: int, count: int) -> tuple[Counter[str], list[Verdict]]:
    """Judge `count` mutants; return how many were what, and all that were accepted wrongly."""
    verdicts = [judge(*mutant(seed, number)) for number in range(count)]
    return Counter(verdict.kind for verdict in verdicts), [verdict for verdict in verdicts if verdict.kind == "wrong"]


def from_command_line(judge_many: Callable[[int, int], tuple[Counter[str], list[Verdict]]]) -> int:
    """Run as many mutants as the command line says and print the counts; return the exit code."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--mutants", type=int, default=5000)
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    counts, wrong = judge_many(given.seed, given.mutants)
    print(f"seed {given.seed}: " + ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
    for verdict in wrong:
        print(f"WRONG {verdict.what}: {verdict.detail}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(from_command_line(run))
