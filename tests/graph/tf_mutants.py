"""Mutants of TensorFlow graphs, run before and after fusion in the NumPy interpreter.

`python -m tests.graph.tf_mutants --mutants 2000 --seed 1` runs many and prints the counts.
"""

from __future__ import annotations

import sys
from collections import Counter
from functools import cache
from typing import Any

import numpy as np

from detops.graph import fuse_decode_bbox
from detops.graph._tf_schema import messages

from . import interpreter
from .models import DATA, index
from .mutants import SIZES, Random, Verdict, difference, from_command_line

BASES = (*sorted(name for name, entry in index().items() if entry["fuse"]), "neg_maximum", "neg_concat_order")
KINDS = (("AddV2", "Sub", "Mul", "RealDiv"), ("Minimum", "Maximum", "AddV2"), ("Exp", "Identity"))


@cache
def base(name: str) -> bytes:
    return (DATA / f"{name}.pb").read_bytes()


def parse(data: bytes) -> Any:
    return messages()["GraphDef"].FromString(data)


def mutant(seed: int, number: int) -> tuple[Any, str, list[str]]:
    """Return mutant `number` of a seed, what was done to it, and the outputs to compare."""
    random = np.random.default_rng([seed, number])
    name = BASES[number % len(BASES)]
    graph = parse(base(name))
    done = []
    for _ in range(random.choice([1, 1, 2])):
        what = ""
        for _ in range(20):
            with np.errstate(all="ignore"):
                what = what or MUTATIONS[random.integers(len(MUTATIONS))](graph, random)
        done.append(what)
    return graph, f"{name}.pb: {'; '.join(done)}", index()[name]["outputs"]


def judge(graph: Any, what: str, outputs: list[str]) -> Verdict:
    """Fuse a graph, and run it before and after at three sizes."""
    try:
        data, findings = fuse_decode_bbox(graph.SerializeToString())
    except ValueError:
        return Verdict("invalid", what)  # a cycle
    if not any(finding.fused for finding in findings):
        return Verdict("refused", what, "; ".join(finding.reason for finding in findings))
    ran = 0
    for number, size in enumerate(SIZES):
        feeds = _feeds(graph, size, np.random.default_rng(number))
        with np.errstate(all="ignore"):
            try:
                expected = interpreter.run(graph, feeds, outputs)
            except Exception:
                continue  # the mutant itself cannot run at this size
            ran += 1
            try:
                problem = difference(expected, interpreter.run(parse(data), feeds, outputs), feeds)
            except Exception as error:
                problem = f"the fused graph fails: {error!r}"
        if problem:
            return Verdict("wrong", what, f"at {size}: {problem}; {findings}")
    return Verdict("right" if ran else "invalid", what)


def _feeds(graph: Any, size: tuple[int, int], random: Random) -> dict[str, Any]:
    feeds: dict[str, Any] = {}
    for node in graph.node:
        if node.op == "Placeholder":
            free = iter(size)
            shape = [dim.size if dim.size >= 0 else next(free) for dim in node.attr["shape"].shape.dim]
            boxes = random.uniform(-50, 300, shape)
            logits = random.normal(0, 1, shape) * random.choice([0.3, 1.0, 4.0, 5.0], shape)
            values = logits if node.name.startswith("box") else boxes
            feeds[node.name] = values.astype(interpreter.TYPES[node.attr["dtype"].type])
    return feeds


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


def run(seed: int, count: int) -> tuple[Counter[str], list[Verdict]]:
    """Judge `count` mutants; return how many were what, and all that were accepted wrongly."""
    verdicts = [judge(*mutant(seed, number)) for number in range(count)]
    return Counter(verdict.kind for verdict in verdicts), [verdict for verdict in verdicts if verdict.kind == "wrong"]


if __name__ == "__main__":
    sys.exit(from_command_line(run))
