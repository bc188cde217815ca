"""Mutants of TensorFlow graphs, run before and after fusion: in TensorFlow where it is installed, else in NumPy.

`python -m tests.graph.tf_mutants --mutants 2000 --seed 1` runs many and prints the counts.
"""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

from detops.graph import fuse_decode_bbox
from detops.graph.model._tf_schema import messages

from . import feeds as feeding
from . import interpreter
from .anchor_forms import GRAPHS
from .feeds import FORM, INDEX, Declared, Random
from .models import DATA, index
from .mutants import Verdict, compared, from_command_line

BASES = (*sorted(name for name, entry in index().items() if entry["fuse"]), "neg_maximum", "neg_concat_order", *GRAPHS)
KINDS = (("AddV2", "Sub", "Mul", "RealDiv"), ("Minimum", "Maximum", "AddV2"), ("Exp", "Identity"))


@cache
def base(name: str) -> bytes:
    return GRAPHS[name][0]().SerializeToString() if name in GRAPHS else (DATA / f"{name}.pb").read_bytes()


def parse(data: bytes) -> Any:
    return messages()["GraphDef"].FromString(data)


def mutant(seed: int, number: int) -> tuple[Any, str, str]:
    """Return mutant `number` of a seed, what was done to it, and the name of its base."""
    random = np.random.default_rng([seed, number])
    name = BASES[number % len(BASES)]
    graph = parse(base(name))
    done = []
    kinds = [MUTATIONS] * random.choice([0, 1, 1, 2]) + [DISGUISES] * random.choice([0, 0, 0, 0, 0, 1, 2])
    for mutations in kinds or [DISGUISES, DISGUISES]:
        what = ""
        for _ in range(20):
            with np.errstate(all="ignore"):
                what = what or mutations[random.integers(len(mutations))](graph, random)
        done.append(what)
    return graph, f"{name}.pb: {'; '.join(done)}", name


def judge(graph: Any, what: str, name: str) -> Verdict:
    """Fuse a graph, and run it before and after in every shape that it permits."""
    try:
        data, findings = fuse_decode_bbox(graph.SerializeToString())
    except ValueError:
        return Verdict("invalid", what)  # a cycle
    if not any(finding.fused for finding in findings):
        return Verdict("refused", what, "; ".join(finding.reason for finding in findings))
    after, outputs = parse(data), [GRAPHS[name][1][2]] if name in GRAPHS else index()[name]["outputs"]
    with np.errstate(all="ignore"):
        return compared(
            what,
            runner(graph, outputs),
            runner(after, outputs),
            _feeds(graph, parse(base(name))),
            findings,
        )


def runner(graph: Any, outputs: list[str]) -> Callable[[dict[str, Any]], list[Any]]:
    """Return what runs a graph: a session of TensorFlow where there is one, made when it is asked for."""
    if importlib.util.find_spec("tensorflow") is None:
        return lambda feeds: interpreter.run(graph, feeds, outputs)
    made = cache(lambda: _session(graph))

    def run(feeds: dict[str, Any]) -> list[Any]:
        return made().run([f"{name}:0" for name in outputs], {f"{name}:0": value for name, value in feeds.items()})

    return run


def _session(graph: Any) -> Any:
    import tensorflow

    made = tensorflow.Graph()
    with made.as_default():
        tensorflow.import_graph_def(tensorflow.compat.v1.GraphDef.FromString(graph.SerializeToString()), name="")
    return tensorflow.compat.v1.Session(graph=made)


def _inputs(graph: Any) -> dict[str, Any]:
    return {node.name: node for node in graph.node if node.op == "Placeholder"}


def _declared(node: Any) -> Declared:
    shape = node.attr["shape"].shape
    return None if shape.unknown_rank else tuple(dim.size if dim.size >= 0 else None for dim in shape.dim)


def _feeds(graph: Any, original: Any) -> Iterator[dict[str, Any]]:
    now, before = _inputs(graph), _inputs(original)
    boxes = [
        feeding.Input(name, interpreter.TYPES[node.attr["dtype"].type], _declared(now[name]), _declared(node))
        for name, node in before.items()
    ]
    boxes.sort(key=lambda each: not each.name.startswith(("box_", "deltas")))
    return feeding.feeds(boxes[0], boxes[1], [name for name in now if name not in before], np.random.default_rng(0))


def _pick(random: Random, items: list[Any]) -> Any:
    return items[random.integers(len(items))] if items else None


def _change_constant(graph: Any, random: Random) -> str:
    node = _pick(random, [node for node in graph.node if node.op == "Const"])
    tensor = node.attr["value"].tensor
    value = np.array(interpreter.tensor_value(tensor))
    was = value.tolist()
    place = tuple(random.integers(size) for size in value.shape)
    if value.dtype.kind == "f":
        value[place] = _pick(
            random,
            [value[place] * 2, -value[place], np.nextafter(value[place], value.dtype.type(9)), value[place] + 1, 1],
        )
    elif random.random() < 0.5 and value.ndim:
        value = random.permutation(value)
    else:
        value[place] += _pick(random, [-2, -1, 1, 2, 100])
    for field in ("float_val", "int_val", "int64_val", "half_val", "double_val"):
        tensor.ClearField(field)
    tensor.tensor_content = value.tobytes()
    return f"constant {node.name.rpartition('/')[2]} {was} -> {value.tolist()}"


def _swap_inputs(graph: Any, random: Random) -> str:
    node = _pick(random, [node for node in graph.node if len(node.input) > 1])
    first, second = random.choice(len(node.input), 2, replace=False)
    node.input[first], node.input[second] = node.input[second], node.input[first]
    return f"{node.op} inputs {first} and {second} swapped"


def _change_operator(graph: Any, random: Random) -> str:
    node = _pick(random, [node for node in graph.node if any(node.op in kind for kind in KINDS) and "/" in node.name])
    was = node.op
    node.op = str(random.choice(next(kind for kind in KINDS if was in kind)))
    return f"{was} -> {node.op}" if node.op != was else ""


def _rewire(graph: Any, random: Random) -> str:
    node = _pick(random, [node for node in graph.node if node.input])
    other = _pick(random, [node for node in graph.node if node.op != "Const"])
    port = int(random.integers(2)) if other.op == "Split" else 0
    at = random.integers(len(node.input))
    node.input[at] = f"{other.name}:{port}"
    return f"input {at} of {node.op} -> {node.input[at]}"


def _other_port(graph: Any, random: Random) -> str:
    splits = {node.name for node in graph.node if node.op in ("Split", "Unpack")}
    choices = [(node, at) for node in graph.node for at, name in enumerate(node.input) if name.split(":")[0] in splits]
    if not choices:
        return ""
    node, at = _pick(random, choices)
    source = node.input[at].split(":")[0]
    node.input[at] = f"{source}:{random.integers(2)}"
    return f"input {at} of {node.op} -> {node.input[at]}"


def _insert(graph: Any, random: Random) -> str:
    node = _pick(random, [node for node in graph.node if node.input and node.op not in ("Shape", "NoOp")])
    at = 1 if node.op == "Split" else 0
    kind = _pick(random, ["Identity", "Identity", "Cast", "Transpose", "ClipByValue", "StridedSlice"])
    new = graph.node.add(name=f"{node.name}/through_{random.integers(1 << 30)}", op=kind)
    new.input.append(node.input[at])
    dtype = next(other.attr["dtype"].type for other in graph.node if other.op == "Placeholder")
    if kind == "Cast":
        new.attr["DstT"].type = _pick(random, [dtype, 1, 19])
    elif kind == "Transpose":
        new.input.append(_constant(graph, new.name + "/perm", np.array(_pick(random, [[1, 0], [0, 2, 1]]), np.int32)))
    elif kind == "ClipByValue":
        for name, bound in (("least", -1000.0), ("most", float(_pick(random, [3, 4, 1000])))):
            value = np.array(bound, interpreter.TYPES[dtype])
            new.input.append(_constant(graph, f"{new.name}/{name}", value))
    elif kind == "StridedSlice":
        start, stop, step = _pick(random, [(0, 100, 1), (1, 1000, 1), (0, 1000, 1), (-1, -1000, -1)])
        for name, number in (("start", start), ("stop", stop), ("step", step)):
            new.input.append(_constant(graph, f"{new.name}/{name}", np.array([number], np.int32)))
    node.input[at] = new.name
    return f"{kind} before {node.op}"


def _constant(graph: Any, name: str, value: Any) -> str:
    node = graph.node.add(name=name, op="Const")
    number = next(number for number, kind in interpreter.TYPES.items() if np.dtype(kind) == value.dtype)
    node.attr["dtype"].type = node.attr["value"].tensor.dtype = number
    node.attr["value"].tensor.tensor_shape.SetInParent()
    for size in value.shape:
        node.attr["value"].tensor.tensor_shape.dim.add(size=size)
    node.attr["value"].tensor.tensor_content = value.tobytes()
    return name


def _open_sizes(graph: Any, random: Random) -> str:
    """Leave sizes of an input open."""
    node = _pick(random, [node for node in _inputs(graph).values() if "_of_" not in node.name])
    for dim in node.attr["shape"].shape.dim:
        if random.random() < 0.5:
            dim.size = -1
    return f"{node.name} has the shape {_declared(node)}"


def _open_rank(graph: Any, random: Random) -> str:
    node = _pick(random, [node for node in _inputs(graph).values() if "_of_" not in node.name])
    node.attr["shape"].shape.unknown_rank = True
    del node.attr["shape"].shape.dim[:]
    return f"{node.name} has any rank"


def _claim(graph: Any, random: Random) -> str:
    """Say of an inner tensor that it has a shape."""
    node = _pick(random, [node for node in graph.node if node.op not in ("Const", "Placeholder", "NoOp", "Split")])
    shape = _pick(random, [[-1, 4], [1, -1, 4], [6, 4], [-1]])
    del node.attr["_output_shapes"].list.shape[:]
    stated = node.attr["_output_shapes"].list.shape.add()
    for size in shape:
        stated.dim.add(size=size)
    return f"the output of {node.op} is said to be {shape}"


def _hide(graph: Any, random: Random) -> str:
    """Let an input through an operator whose result has a rank that another input decides."""
    source = _pick(random, [node for node in _inputs(graph).values() if "_of_" not in node.name])
    hidden, way = f"hidden_{source.name}", _pick(random, [INDEX, FORM])
    if any(node.name == hidden for node in graph.node):
        return ""
    for node in graph.node:
        node.input[:] = [hidden if name.split(":")[0] == source.name else name for name in node.input]
    other = graph.node.add(name=f"{way}{source.name}", op="Placeholder")
    other.attr["dtype"].type = 3
    other.attr["shape"].shape.SetInParent()
    if way == INDEX:
        other.attr["shape"].shape.unknown_rank = True
    else:
        other.attr["shape"].shape.dim.add(size=-1)
    node = graph.node.add(name=hidden, op={INDEX: "GatherV2", FORM: "Reshape"}[way], input=[source.name, other.name])
    node.attr["T"].type = source.attr["dtype"].type
    if way == INDEX:
        node.input.append(_constant(graph, f"{hidden}_axis", np.array(0, np.int32)))
    return f"{source.name} passes through {node.op} by {other.name}"


MUTATIONS = [
    _change_constant,
    _change_constant,
    _swap_inputs,
    _swap_inputs,
    _change_operator,
    _rewire,
    _other_port,
    _insert,
    _insert,
]
# What hides knowledge without changing what a graph computes on the usual shapes.
DISGUISES = [_open_sizes, _open_rank, _claim, _hide]


def run(seed: int, count: int) -> tuple[Counter[str], list[Verdict]]:
    """Judge `count` mutants; return how many were what, and all that were accepted wrongly."""
    verdicts = [judge(*mutant(seed, number)) for number in range(count)]
    return Counter(verdict.kind for verdict in verdicts), [verdict for verdict in verdicts if verdict.kind == "wrong"]


if __name__ == "__main__":
    sys.exit(from_command_line(run))
