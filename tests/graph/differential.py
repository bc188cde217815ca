"""The proof's operators against the runtimes: what a rule says must be what ONNX Runtime and TensorFlow compute.

`python -m tests.graph.differential --cases 20000 --seed 1` runs many random nodes. A rule may refuse what it doesn't
follow; it must not give another result than the runtime, nor say that a node cannot run that does.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper

from detops.graph._finding import CannotRunError, Refusal
from detops.graph.model._graph import Node
from detops.graph.model._onnx_io import _attributes
from detops.graph.ops._ops import Run, Symbolic
from detops.graph.ops._ops_onnx import ONNX
from detops.graph.symbols import _sizes

from .mutants import session

Random = np.random.Generator


@dataclass
class Case:
    """One node with its inputs; those in `data` may be boxes, the others are sizes, axes and bounds."""

    op: str
    inputs: list[Any]
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1
    opset: int = 17
    data: Sequence[int] = (0,)

    def __str__(self) -> str:
        shown = [None if value is None else value.tolist() if value.size < 9 else value.shape for value in self.inputs]
        return f"{self.op}-{self.opset}{shown} {self.attributes}"


GENERATORS: dict[str, Callable[[Random], Case]] = {}


def _generator(make: Callable[[Random], Case]) -> Callable[[Random], Case]:
    GENERATORS[make.__name__.strip("_")] = make
    return make


def _shape(random: Random, most: int = 4, least: int = 0) -> list[int]:
    return [int(dim) for dim in random.choice([0, 1, 1, 2, 3, 4, 6], random.integers(least, most + 1))]


def _data(random: Random, shape: Sequence[int], dtype: Any = None) -> Any:
    dtype = dtype or random.choice([np.float32, np.float32, np.int64, np.int32])
    count = int(np.prod(shape))
    return (np.arange(count).reshape(shape) - count // 3).astype(dtype)


def _axis(random: Random, rank: int) -> int:
    return int(random.integers(-rank - 1, rank + 1))


def _axes(random: Random, rank: int) -> list[int]:
    return [_axis(random, rank) for _ in range(random.integers(0, rank + 1))]


def _ints(values: Any) -> Any:
    return np.array(values, np.int64)


def _listed(op: str, data: Any, name: str, values: Any, opset: int, since: int, **attributes: Any) -> Case:
    """Return a case whose list is an attribute in older opsets."""
    if opset >= since:
        return Case(op, [data, None if values is None else _ints(values)], attributes, opset=opset)
    return Case(op, [data], attributes | ({} if values is None else {name: list(values)}), opset=opset)


@_generator
def _reshape(random: Random) -> Case:
    data = _data(random, _shape(random))
    wanted = _shape(random) if random.random() < 0.2 else [int(dim) for dim in random.permutation(data.shape)]
    if wanted and random.random() < 0.6:
        wanted[random.integers(len(wanted))] = int(random.choice([-1, -1, 0, 1, -2]))
    if random.random() < 0.3:
        wanted.insert(int(random.integers(len(wanted) + 1)), 1)
    if len(wanted) > 1 and random.random() < 0.4:
        wanted[:2] = [wanted[0] * wanted[1]]
    opset = int(random.choice([13, 14, 17]))
    attributes = {"allowzero": int(random.integers(2))} if opset >= 14 else {}
    return Case("Reshape", [data, _ints(wanted)], attributes, opset=opset)


@_generator
def _flatten(random: Random) -> Case:
    data = _data(random, _shape(random, least=1))
    return Case("Flatten", [data], {"axis": _axis(random, data.ndim)} if random.random() < 0.8 else {})


@_generator
def _transpose(random: Random) -> Case:
    data = _data(random, _shape(random))
    perm = [int(axis) for axis in random.permutation(data.ndim)]
    if random.random() < 0.1 and perm:
        perm[0] = 0
    return Case("Transpose", [data], {"perm": perm} if random.random() < 0.8 else {})


@_generator
def _squeeze(random: Random) -> Case:
    data = _data(random, _shape(random))
    axes = None if random.random() < 0.3 else _axes(random, data.ndim)
    if axes and random.random() < 0.7:
        axes = [place for place, dim in enumerate(data.shape) if dim == 1] or axes
    return _listed("Squeeze", data, "axes", axes, int(random.choice([11, 13])), 13)


@_generator
def _unsqueeze(random: Random) -> Case:
    data = _data(random, _shape(random))
    return _listed("Unsqueeze", data, "axes", _axes(random, data.ndim + 1), int(random.choice([11, 13])), 13)


@_generator
def _split(random: Random) -> Case:
    data = _data(random, _shape(random, least=1))
    axis = _axis(random, data.ndim)
    size = data.shape[axis] if -data.ndim <= axis < data.ndim else 4
    opset = int(random.choice([11, 13, 18]))
    if random.random() < 0.5:
        parts = int(random.integers(1, 4))
        attributes = {"axis": axis} | ({"num_outputs": parts} if opset >= 18 else {})
        return Case("Split", [data], attributes, outputs=parts, opset=opset)
    cuts = np.sort(random.integers(0, size + 1, random.integers(0, 3)))
    sizes = np.diff([0, *cuts, size + int(random.random() < 0.1)]).tolist()
    case = _listed("Split", data, "split", sizes, opset, 13, axis=axis)
    case.outputs = len(sizes)
    return case


@_generator
def _slice(random: Random) -> Case:
    data = _data(random, _shape(random, least=1))
    count = int(random.integers(1, data.ndim + 1))
    far = [-(1 << 62), -100, -7, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 7, 100, (1 << 31) - 1, (1 << 63) - 1]
    starts, ends = (_ints(random.choice(far, count)) for _ in range(2))
    axes = (
        None if random.random() < 0.3 else _ints(random.permutation(data.ndim)[:count] - data.ndim * random.integers(2))
    )
    steps = None if axes is None or random.random() < 0.4 else _ints(random.choice([1, 1, 2, 3, -1, -1, -2, 0], count))
    inputs = [data, starts, ends, axes, steps]
    while inputs[-1] is None:
        inputs.pop()
    return Case("Slice", inputs, opset=13)


@_generator
def _gather(random: Random) -> Case:
    data = _data(random, _shape(random, least=1))
    indices = random.integers(-3, 4, _shape(random, 2))
    if random.random() < 0.7:
        indices = np.clip(indices, -1, 0)
    return Case("Gather", [data, _ints(indices)], {"axis": _axis(random, data.ndim)} if random.random() < 0.8 else {})


@_generator
def _concat(random: Random) -> Case:
    shape = _shape(random, least=1)
    axis = _axis(random, len(shape))
    pieces = []
    for _ in range(random.integers(1, 4)):
        other = list(shape)
        place = axis if random.random() < 0.8 else _axis(random, len(shape))
        if -len(shape) <= place < len(shape):
            other[place] = int(random.integers(0, 4))
        pieces.append(_data(random, other, np.float32))
    return Case("Concat", pieces, {"axis": axis}, data=range(len(pieces)))


@_generator
def _expand(random: Random) -> Case:
    data = _data(random, _shape(random))
    wanted = [int(random.choice([dim, 1, 3])) if random.random() < 0.7 else dim for dim in data.shape]
    wanted = [int(random.integers(1, 3)), *wanted] if random.random() < 0.4 else wanted[random.integers(2) :]
    return Case("Expand", [data, _ints(wanted)])


@_generator
def _tile(random: Random) -> Case:
    data = _data(random, _shape(random, 3, least=1))
    return Case("Tile", [data, _ints(random.integers(0, 3, data.ndim - int(random.random() < 0.1)))])


@_generator
def _shape_of(random: Random) -> Case:
    data = _data(random, _shape(random))
    attributes = {name: int(random.integers(-5, 6)) for name in ("start", "end") if random.random() < 0.5}
    return Case("Shape", [data], attributes)


@_generator
def _size(random: Random) -> Case:
    return Case("Size", [_data(random, _shape(random))])


@_generator
def _constant_of_shape(random: Random) -> Case:
    value = {} if random.random() < 0.3 else {"value": helper.make_tensor("", random.choice([1, 7, 6]), [1], [3])}
    return Case("ConstantOfShape", [_ints(_shape(random, 3))], value, data=())


@_generator
def _reduce(random: Random) -> Case:
    op = str(random.choice(["ReduceProd", "ReduceSum", "ReduceMin", "ReduceMax"]))
    data = _data(random, _shape(random, 2), random.choice([np.int64, np.int32]))
    axes = None if random.random() < 0.2 else _axes(random, data.ndim)
    attributes = {"keepdims": int(random.integers(2))} if random.random() < 0.7 else {}
    opset = int(random.choice([13, 18]))
    if opset >= 18 and random.random() < 0.3:
        attributes["noop_with_empty_axes"] = int(random.integers(2))
    return _listed(op, data, "axes", axes, opset, 13 if op == "ReduceSum" else 18, **attributes)


@_generator
def _arithmetic(random: Random) -> Case:
    op = str(random.choice(["Add", "Sub", "Mul", "Div", "Min", "Max"]))
    dtype = random.choice([np.float32, np.int64, np.int32])
    shape = _shape(random)
    other = [int(random.choice([dim, dim, 1, 2])) for dim in shape][random.integers(2) :]
    pair = [_data(random, shape, dtype), _data(random, other, dtype)]
    if op == "Div":
        pair[1] = np.abs(pair[1]) * 2 + 1  # what integers give by zero differs from one processor to another
        pair[1] = pair[1] * dtype(random.choice([1, -1]))
    return Case(op, pair, data=(0, 1) if op in ("Add", "Sub", "Mul") else (0,))


@_generator
def _clip(random: Random) -> Case:
    bounds = [None if random.random() < 0.3 else np.float32(random.integers(-3, 4)) for _ in range(2)]
    inputs = [_data(random, _shape(random), np.float32), *bounds]
    while inputs[-1] is None:
        inputs.pop()
    return Case("Clip", inputs)


@_generator
def _equal(random: Random) -> Case:
    shape = _shape(random, 2)
    return Case(
        "Equal", [_data(random, shape, np.int64), _ints(random.integers(-1, 3, shape[random.integers(2) :]))], data=()
    )


@_generator
def _where(random: Random) -> Case:
    shape = _shape(random, 2)
    pair = [_data(random, shape[random.integers(2) :], np.int64), _data(random, shape, np.int64)]
    return Case("Where", [random.random(shape) < 0.5, *pair], data=())


@_generator
def _cast(random: Random) -> Case:
    data = _data(random, _shape(random, 2), random.choice([np.float32, np.int64, np.int32]))
    return Case("Cast", [data * 100], {"to": int(random.choice([1, 6, 7, 9, 11]))}, data=())


@_generator
def _range(random: Random) -> Case:
    return Case("Range", [_ints(value) for value in random.integers(-4, 5, 3)], data=())


@_generator
def _pow(random: Random) -> Case:
    shape = _shape(random, 3)
    exponent = np.array(random.choice([1, 2, 2, 3, 4, 0, -1, 0.5]), random.choice([np.float32, np.int64]))
    return Case("Pow", [_data(random, shape, random.choice([np.float32, np.int64])), exponent])


@_generator
def _scatter_nd(random: Random) -> Case:
    data = _data(random, _shape(random, 3, 1), np.float32)
    width = int(random.integers(1, data.ndim + 1))
    every = np.stack(np.meshgrid(*map(np.arange, data.shape[:width]), indexing="ij"), axis=-1).reshape(-1, width)
    picked = random.permutation(every)[: random.integers(len(every) + 1)]
    if random.random() < 0.2:
        picked = picked - data.shape[:width]
    if random.random() < 0.1 and picked.size:
        picked[0, 0] += random.choice([-9, 9])
    updates = _data(random, (len(picked), *data.shape[width:]), np.float32) + 100
    lead = [len(picked) // 2, 2] if random.random() < 0.3 and len(picked) % 2 == 0 else [len(picked)]
    if random.random() < 0.05:
        lead = [*lead, 1]
    opset = int(random.choice([11, 16]))
    attributes = {"reduction": str(random.choice(["none", "none", "add"]))} if opset > 11 else {}
    inputs = [data, _ints(picked).reshape(*lead, width), updates.reshape(*lead, *data.shape[width:])]
    return Case("ScatterND", inputs, attributes, opset=opset, data=(0, 2))


@_generator
def _dropout(random: Random) -> Case:
    return Case("Dropout", [_data(random, _shape(random), np.float32)])


Reference = Callable[[Case], list[Any]]
Rule = Callable[..., Any]  # of a case, its inputs and a run; a text says how it ended without a result


def judge(case: Case, random: Random, reference: Reference, rule: Rule) -> str:
    """Return what happened: "same", "refused", "neither", "ours only", or a description of what is wrong."""
    try:
        wanted = reference(case)
    except Exception:
        wanted = None
    got = rule(case, case.inputs)
    if isinstance(got, str):
        if got.startswith("cannot") and wanted is not None:
            if not any(value.size for value in wanted):
                return "cannot, but gives nothing"  # TensorFlow doesn't look at the arguments then
            return f"WRONG {case}: {got}, and the runtime gives {[value.shape for value in wanted]}"
        return "neither" if wanted is None else "refused"
    if wanted is None:
        return "ours only"  # where the graph itself fails, nothing is promised
    for left, right in zip(wanted, got, strict=True):
        if left.shape != right.shape or left.dtype != right.dtype or not np.array_equal(left, right, equal_nan=True):
            return f"WRONG {case}: {_shown(right)}, and the runtime gives {_shown(left)}"
    return _judge_symbols(case, wanted, random, rule)


def _shown(value: Any) -> str:
    return f"{value.dtype} {value.shape} {value.ravel()[:9]}"


def _node(case: Case, names: Sequence[str]) -> onnx.NodeProto:
    node = helper.make_node(case.op, list(names), [f"o{place}" for place in range(case.outputs)])
    for name, value in case.attributes.items():
        kind = onnx.AttributeProto.INTS if isinstance(value, list) else None
        node.attribute.append(helper.make_attribute(name, value, attr_type=kind))
    return node


def run_onnxruntime(case: Case) -> list[Any]:
    names = [f"i{place}" if value is not None else "" for place, value in enumerate(case.inputs)]
    node = _node(case, names)
    given = {name: np.asarray(value) for name, value in zip(names, case.inputs, strict=True) if name}
    types = {name: helper.np_dtype_to_tensor_dtype(value.dtype) for name, value in given.items()}
    inputs = [helper.make_tensor_value_info(name, types[name], value.shape) for name, value in given.items()]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output]
    graph = helper.make_graph([node], "one", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", case.opset)], ir_version=8)
    return session(model).run(None, given)


def run_rule(case: Case, inputs: list[Any], run: Run | None = None) -> Any:
    raw = _node(case, [""])
    node = Node("n", case.op, ("",) * len(inputs), tuple(raw.output), raw, _attributes, case.opset)
    try:
        with np.errstate(all="ignore"):
            results = ONNX[case.op].apply(run or Run(), node, inputs)
        return list(results)[: case.outputs]
    except CannotRunError as error:
        return f"cannot: {error}"
    except (Refusal, ValueError, LookupError, ArithmeticError, TypeError) as error:
        return f"refused: {error}"


def _judge_symbols(case: Case, wanted: list[Any], random: Random, rule: Rule) -> str:
    """Run the rule on symbols, with some sizes known but not enumerated and some open, and put the numbers in."""
    if not case.data or (case.inputs[case.data[0]].dtype.kind != "f" and case.op not in ("Shape", "Size")):
        return "same"
    run = Run()
    place = 0
    atoms: dict[Any, int] = {}
    inputs, numbers = list(case.inputs), {}
    for at in case.data:
        value = case.inputs[at]
        axes: list[Any] = []
        for dim in value.shape:
            twin = next((atom for atom, size in atoms.items() if size == dim and at and random.random() < 0.8), None)
            if twin is not None and all(twin not in axis for axis in axes):
                axes.append((twin,))
            elif dim > 1 and random.random() < 0.5 and len(atoms) < 3:
                atom = run.atom(place, dim if random.random() < 0.3 else None, int(random.integers(1, 3)))
                atoms[atom], place = dim, place + 1
                axes.append((atom,))
            else:
                axes.append(_sizes.axis_of([dim]))
        run.sizes.cells = 1 << 10
        ids = run.pool.symbols(tuple(_sizes.num_cells(axis) for axis in axes))
        symbols = np.array([run.pool.element(int(position))[1][0] for position in ids.ravel()], int).reshape(ids.shape)
        for index in np.ndindex(value.shape):
            cells, positions = _located(axes, index, atoms)
            numbers[symbols[cells], frozenset(positions.items())] = value[index]
        inputs[at] = Symbolic(ids, tuple(axes), np.dtype(np.float32))
    got = rule(case, inputs, run)
    if isinstance(got, str):
        return "same, refused for symbols" if got.startswith("refused") else f"WRONG {case}: on {atoms}, {got}"
    for value, right in zip(got, wanted, strict=True):
        left = instantiated(run, value, atoms, numbers)
        if left is None:
            return "same"
        if left.shape != right.shape or not np.allclose(left, right):
            return f"WRONG {case}: on symbols of {list(atoms.items())} {left}, and the runtime gives {right}"
    return "same for symbols"


def _located(
    axes: Sequence[Any], index: Sequence[int], atoms: dict[Any, int]
) -> tuple[tuple[int, ...], dict[Any, int]]:
    """Return the cell and the position of each atom that a full index means."""
    cells, positions = [], {}
    for axis, at in zip(axes, index, strict=True):
        cell, scale = 0, 1
        for factor in reversed(axis):
            size = factor if isinstance(factor, int) else atoms[factor]
            at, digit = divmod(at, size)
            if isinstance(factor, int):
                cell, scale = cell + digit * scale, scale * size
            else:
                positions[factor] = digit
        cells.append(cell)
    return tuple(cells), positions


def instantiated(run: Run, value: Any, atoms: dict[Any, int], numbers: dict[Any, Any]) -> Any:
    """Return the array that a tensor stands for at the given lengths of its atoms and values of its symbols."""
    if not isinstance(value, Symbolic):
        return value
    lengths = {atom.symbol: size for atom, size in atoms.items()}
    known = {}
    for (symbol, positions), number in numbers.items():
        known.setdefault(symbol, []).append((positions, number))
    shape = [
        int(np.prod([factor if isinstance(factor, int) else atoms[factor] for factor in axis], initial=1))
        for axis in value.axes
    ]
    result = np.empty(shape)
    for index in np.ndindex(*shape):
        cells, positions = _located(value.axes, index, atoms)
        poly, symbols = run.pool.element(int(value.ids[cells]))
        there = set(positions.items())
        slots = [
            lengths[symbol]
            if symbol in lengths and symbol not in known
            else next(number for wanted, number in known[symbol] if wanted <= there)
            for symbol in symbols
        ]
        result[index] = evaluated(poly, slots)
    return result


def evaluated(poly: Any, slots: Sequence[float]) -> float:
    """Return the value of a form."""
    total = 0.0
    for monomial, coefficient in poly:
        product = float(coefficient)
        for atom in monomial:
            if atom[0] == "x":
                product *= slots[atom[1]]
            elif atom[0] == "exp":
                product *= np.exp(evaluated(atom[1], slots))
            else:
                product *= (min if atom[0] == "min" else max)(evaluated(atom[1], slots), float(atom[2]))
        total += product
    return total


def run_many(
    seed: int,
    count: int,
    generators: Mapping[str, Callable[[Random], Case]] = GENERATORS,
    reference: Reference = run_onnxruntime,
    rule: Rule = run_rule,
) -> tuple[Counter[str], list[str]]:
    """Judge `count` random nodes; return how many were what, and what is wrong."""
    counts: Counter[str] = Counter()
    wrong = []
    names = sorted(generators)
    for number in range(count):
        random = np.random.default_rng([seed, number])
        verdict = judge(generators[names[number % len(names)]](random), random, reference, rule)
        counts[verdict.split()[0] if verdict.startswith("WRONG") else verdict] += 1
        if verdict.startswith("WRONG"):
            wrong.append(verdict)
    return counts, wrong


def main(*how: Any) -> int:
    """Run as many nodes as the command line says, and print what is wrong; return the exit code."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--cases", type=int, default=20000)
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    counts, wrong = run_many(given.seed, given.cases, *how)
    print(f"seed {given.seed}: " + ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
    print("\n".join(wrong[:40]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
