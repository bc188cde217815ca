"""Graphs by a grammar: layouts, arithmetic and sizes of a decode, put together at random, right and wrong alike.

Mutants change what exporters wrote; these are written as nobody would. `python -m tests.graph.grammar --mutants 5000`
judges many and prints the counts.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx

from detops.graph import fuse_decode_bbox

from .models import CLIP, boxes, decode_model, predictions
from .mutants import Verdict, compared, from_command_line, session

Random = np.random.Generator
NUM_SIZES = 12
CONSTANTS = (1, 2, 3, 4, 5, 7, 8, 12, 20, 100, 128, 255, 256, 400, 1000, 1024)


class Text:
    """Collects the lines of a graph, the constants that they read, and the integers that sizes may turn at."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.lines: list[str] = []
        self.constants: dict[str, Any] = {}
        self.integers: set[int] = set()
        self._count = 0

    def pick(self, *choices: Any) -> Any:
        return choices[self.random.integers(len(choices))]

    def chance(self, share: float) -> bool:
        return bool(self.random.random() < share)

    def add(self, call: str, outputs: int = 1) -> Any:
        """Add a line and return the names of its results."""
        names = [f"v{self._count + place}" for place in range(outputs)]
        self._count += outputs
        self.lines.append(f"{', '.join(names)} = {call}")
        return names[0] if outputs == 1 else names

    def constant(self, value: Any) -> str:
        """Add a constant; whole numbers are what sizes are compared with."""
        value = np.asarray(value)
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        if value.dtype.kind == "i":
            self.integers.update(int(abs(number)) for number in value.ravel())
        return name

    def list_of(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def number(self, value: int) -> str:
        return self.constant(np.array(value, np.int64))

    def single(self, value: float) -> str:
        return self.constant(np.float32(value))


def _size(text: Text, tensor: str, axis: int) -> str:
    """Return the size of a tensor along an axis, as a scalar."""
    form = text.add(f"Shape({tensor})")
    if text.chance(0.3):
        piece = text.add(f"Slice({form}, {text.list_of(axis)}, {text.list_of(axis + 1)}, {text.list_of(0)})")
        return text.add(f"Squeeze({piece}, {text.list_of(0)})")
    return text.add(f"Gather<axis=0>({form}, {text.number(axis)})")


def _rewritten(text: Text, size: str, other: str, depth: int = 2) -> str:
    """Return an integer that is the size, or looks like it, or is another one from some size on."""
    for _ in range(text.random.integers(0, depth + 1)):
        number = int(text.pick(*CONSTANTS))
        constant = text.number(number)
        way = text.random.integers(12)
        if way == 0:
            size = text.add(f"Sub({text.add(f'Add({size}, {constant})')}, {constant})")
        elif way == 1:
            size = text.add(f"Div({text.add(f'Mul({size}, {constant})')}, {constant})")
        elif way == 2:
            size = text.add(f"Mul({text.add(f'Div({size}, {constant})')}, {constant})")
        elif way == 3:
            size = text.add(f"Min({size}, {constant})")
        elif way == 4:
            size = text.add(f"Max({size}, {constant})")
        elif way == 5:
            at = text.add(f"Equal({size}, {text.pick(constant, text.number(-1), text.number(0), other)})")
            size = text.add(f"Where({at}, {text.pick(constant, size, other)}, {size})")
        elif way == 6:
            size = text.add(f"Cast<to=7>({text.add(f'Cast<to={text.pick(6, 6, 2, 3, 1, 9)}>({size})')})")
        elif way == 7:
            size = text.add(f"Neg({text.add(f'Neg({size})')})")
        elif way == 8:
            size = text.add(f"Div({text.add(f'Mul({size}, {other})')}, {other})")
        elif way == 9:
            pair = text.add(f"Concat<axis=0>({_listed(text, size)}, {_listed(text, text.pick(text.number(1), other))})")
            size = text.add(f"{text.pick('ReduceProd', 'ReduceMax', 'ReduceMin')}<keepdims=0>({pair})")
        elif way == 10:
            size = text.add(f"Add({text.add(f'Sub({size}, {other})')}, {other})")
        else:
            size = text.add(f"Identity({size})")
    return size


def _listed(text: Text, scalar: str) -> str:
    return text.add(f"Unsqueeze({scalar}, {text.list_of(0)})")


def _disturbed(text: Text, tensor: str, rows: str, other: str) -> str:
    """Do something to a tensor of rows (or to none of them, or to those beyond a size)."""
    zero, axis = text.list_of(0), text.list_of(0)
    end = text.list_of(np.iinfo(np.int64).max)
    way = text.random.integers(9)
    if way == 0:
        limit = _listed(text, _rewritten(text, text.pick(rows, text.number(int(text.pick(*CONSTANTS)))), other))
        first = text.add(f"Slice({tensor}, {zero}, {limit}, {axis})")
        rest = text.add(f"Slice({text.pick(tensor, tensor, text.add(f'Neg({tensor})'))}, {limit}, {end}, {axis})")
        return text.add(f"Concat<axis=0>({first}, {rest})")
    if way == 1:
        number = _rewritten(text, rows, other, 3)
        less = text.add(f"Sub({number}, {text.pick(rows, number)})")
        return text.add(f"Add({tensor}, {text.add(f'Cast<to=1>({less})')})")
    if way == 2:
        at = text.add(
            f"Equal({_rewritten(text, rows, other)}, {text.pick(other, text.number(int(text.pick(*CONSTANTS))))})"
        )
        return text.add(f"Add({tensor}, {text.add(f'Cast<to=1>({at})')})")
    if way == 3:
        form = text.add(f"Shape({tensor})")
        return text.add(f"Expand({tensor}, {form})")
    if way == 4:
        limit = _listed(text, _rewritten(text, rows, other))
        return text.add(
            f"Slice({tensor}, {zero}, {text.pick(limit, end, text.list_of(int(text.pick(*CONSTANTS))))}, {axis})"
        )
    if way == 5:
        one = text.add(f"Unsqueeze({tensor}, {zero})")
        turned = text.add(f"Squeeze({one}{text.pick('', f', {zero}')})")
        return turned
    if way == 6:
        step = text.list_of(int(text.pick(1, 1, -1, 2)))
        start, stop = text.pick(zero, text.list_of(-1)), text.pick(end, text.list_of(-(1 << 40)))
        return text.add(f"Slice({tensor}, {start}, {stop}, {axis}, {step})")
    if way == 7:
        form = text.add(f"Shape({tensor})")
        flat = text.add(f"Reshape({tensor}, {text.list_of(-1)})")
        return text.add(f"Reshape({flat}, {form})")
    return text.add(f"Identity({tensor})")


def _halves(text: Text, tensor: str, rank: int) -> list[str]:
    """Cut the last axis of four into two halves."""
    last = rank - 1
    way = text.random.integers(4)
    if way == 0:
        return text.add(f"Split<axis={text.pick(last, -1)}>({tensor})", 2)
    if way == 1:
        return text.add(f"Split<axis=-1>({tensor}, {text.list_of(2, 2)})", 2)
    if way == 2:
        axis = text.list_of(text.pick(last, -1))
        bounds = [text.list_of(bound) for bound in (0, 2, 4)]
        return [text.add(f"Slice({tensor}, {bounds[at]}, {bounds[at + 1]}, {axis})") for at in (0, 1)]
    pairs = [(0, 1), (2, 3)] if text.chance(0.9) else [(0, 2), (1, 3)]
    return [text.add(f"Gather<axis=-1>({tensor}, {text.list_of(*pair)})") for pair in pairs]


# what is added to a size, whether the center goes by it, and what is taken from both ends of what is decoded
PIXELS = (
    *((1, True, (0, 1)), (1, False, (0.5, 0.5)), (1, True, (0, 0))) * 3,
    *((1, False, (0, 0)), (2, True, (0, 1))),
)
TAKEN = ((0, 0), (0, 0), (0, 0), (0.5, 0.5), (0.5, 0.5), (0, 1))  # where sizes are given


def _anchor(text: Text, forms: Random, lo: str, hi: str, half: str) -> tuple[str, str, tuple[float, float]]:
    """Return the size and the center of anchors, and what is to be taken from both ends of what is decoded."""
    added, by_size, taken = 0, text.chance(0.3), (0, 0)
    way = forms.random()
    if way < 0.1:
        return hi, lo, TAKEN[forms.integers(len(TAKEN))]
    if way < 0.3:
        added, by_size, taken = PIXELS[forms.integers(len(PIXELS))]
    size = text.add(f"Sub({hi}, {lo})")
    if added:
        size = text.add(f"Add({size}, {text.single(added)})")
    if by_size:
        return size, text.add(f"Add({lo}, {text.add(f'Mul({size}, {half})')})"), taken
    return size, text.add(f"Mul({text.add(f'Add({hi}, {lo})')}, {half})"), taken


def graph(seed: int, number: int) -> tuple[onnx.ModelProto, str, list[int]]:
    """Return a random graph, its text, and the integers in it."""
    random = np.random.default_rng([seed, number])
    text = Text(random)
    layout = text.pick("N", "N", "H,W", "H,W", "B,N", "1,N", "9")
    rank = layout.count(",") + 2
    theirs = layout
    if layout == "B,N":
        theirs = text.pick("1,N", "N", "B,N", "B,M", "C,N")
    elif layout == "H,W" and text.chance(0.3):
        theirs = text.pick("P,Q", "W,H", "H,9")
    d, b = "d", "b"
    rows, other = _size(text, "d", 0), _size(text, text.pick("d", "b"), text.pick(0, theirs.count(",")))
    flat = theirs.count(",") == layout.count(",") and text.chance(0.5)
    inner = rank
    if flat:
        form = text.list_of(-1, 4) if text.chance(0.6) else text.list_of(-1, 2, 2)
        inner = 2 if len(text.constants[form]) == 2 else 3
        d, b = text.add(f"Reshape(d, {form})"), text.add(f"Reshape(b, {form})")
    if flat and inner == 3:
        t, s = text.add(f"Split<axis=1>({d})", 2)
        lo, hi = text.add(f"Split<axis=1>({b})", 2)
    else:
        t, s = _halves(text, d, inner)
        lo, hi = _halves(text, b, theirs.count(",") + 2 if not flat else inner)
    half, clip = text.single(0.5), text.single(CLIP)
    size, center, taken = _anchor(text, np.random.default_rng([seed, number, 2]), lo, hi, half)
    grown = text.add(f"Exp({text.add(text.pick(f'Min({s}, {clip})', f'Clip({s}, , {clip})', f'Identity({s})'))})")
    parts = {"t": t, "size": size, "center": center, "grown": grown}
    for _ in range(random.choice([0, 1, 1, 2])):
        name = str(random.choice(list(parts)))
        parts[name] = _disturbed(text, parts[name], rows, other)
    halved = text.add(f"Mul({text.add('Mul({grown}, {size})'.format(**parts))}, {half})")
    moved = text.add("Add({}, {})".format(text.add("Mul({t}, {size})".format(**parts)), parts["center"]))
    low, high = text.add(f"Sub({moved}, {halved})"), text.add(f"Add({moved}, {halved})")
    low, high = (
        text.add(f"{op}({part}, {text.single(number)})") if number else part
        for op, part, number in zip(("Add", "Sub"), (low, high), taken, strict=True)
    )
    if text.chance(0.05):
        low, high = high, low
    if text.chance(0.25):
        order = text.list_of(*text.pick((1, 0), (1, 0), (1, 0), (0, 0), (0, 1)))
        low, high = (
            text.add(f"Gather<axis=-1>({part}, {order})") if text.chance(0.9) else part for part in (low, high)
        )
    joined = text.add(f"Concat<axis={1 if flat else text.pick(-1, rank - 1)}>({low}, {high})")
    lead = [text.list_of(int(dim)) if dim.isdigit() else None for dim in layout.split(",")]
    if flat or text.chance(0.3):
        dims = [
            fixed if fixed and text.chance(0.7) else _listed(text, _rewritten(text, _size(text, "d", place), other, 1))
            for place, fixed in enumerate(lead)
        ]
        if text.chance(0.3):
            dims[random.integers(len(dims))] = text.list_of(-1)
        whole = text.add(f"Shape({text.pick('d', 'b')})") if text.chance(0.5) else ""
        joined = text.add(
            f"Reshape({joined}, {whole or text.add(f'Concat<axis=0>({chr(44).join(dims)}, {text.list_of(4)})')})"
        )
    body = "\n".join([*text.lines, f"out = Identity({joined})"])
    outputs = ",".join(["P", "Q", "R"][: rank - 1])
    model = decode_model(
        {"all": body} | dict.fromkeys(decode_keys(), ""),
        text.constants,
        inputs=f"float[{layout},4] d, float[{theirs},4] b",
        outputs=f"float[{outputs},4] out",
    )
    return model, f"{layout} and {theirs}: {body}", sorted(text.integers)


def decode_keys() -> list[str]:
    """Return the lines of the usual decode, none of which is wanted here."""
    from .models import LINES

    return list(LINES)


def sizes_of(names: list[str], integers: list[int], random: Random) -> Iterator[dict[str, int]]:
    """Yield lengths for the open axes: different, equal, one, and next to the integers of the graph."""
    usual = {name: 5 + 2 * place for place, name in enumerate(names)}
    yield usual
    yield dict.fromkeys(names, 3)
    yield dict.fromkeys(names, 1)
    large = [number + step for number in integers for step in (0, 1, -1) if 2 < number + step < 4000]
    for number in range(NUM_SIZES - 3):
        way = number % 3
        if way == 0 or not large:
            yield {name: int(random.integers(1, 40)) for name in names}
        elif way == 1:
            name = str(random.choice(names)) if names else ""
            yield {**dict.fromkeys(names, 2), **({name: int(random.choice(large))} if name else {})}
        else:
            name = str(random.choice(names)) if names else ""
            yield {
                **dict.fromkeys(names, int(random.integers(1, 5))),
                **({name: int(random.choice(large))} if name else {}),
            }


def judge(model: onnx.ModelProto, what: str, integers: list[int], random: Random) -> Verdict:
    """Fuse a graph, and run it before and after at many sizes."""
    try:
        before = session(model)
    except Exception:
        return Verdict("invalid", what)
    fused, findings = fuse_decode_bbox(model)
    if not any(finding.fused for finding in findings):
        return Verdict("refused", what, "; ".join(finding.reason for finding in findings))
    after = session(fused)
    return compared(
        what,
        lambda feeds: before.run(None, feeds),
        lambda feeds: after.run(None, feeds),
        _feeds(model, integers, random),
        findings,
        _unequal,
    )


def _unequal(feeds: dict[str, Any]) -> bool:
    """Tell whether anchors don't broadcast to the shape of the predictions, where the node fails."""
    ours, theirs = (feeds[name].shape[:-1] for name in "db")
    padded = (1,) * (len(ours) - len(theirs)) + theirs
    return any(dim not in (1, whole) for dim, whole in zip(padded, ours, strict=True))


def _feeds(model: onnx.ModelProto, integers: list[int], random: Random) -> Iterator[dict[str, Any]]:
    dims = [value.type.tensor_type.shape.dim for value in model.graph.input]
    names = list(dict.fromkeys(dim.dim_param for dims_of in dims for dim in dims_of if dim.dim_param))
    for number, sizes in enumerate(sizes_of(names, integers, random)):
        shapes = [[dim.dim_value or sizes[dim.dim_param] for dim in dims_of] for dims_of in dims]
        yield {"d": predictions(shapes[0], number), "b": boxes(shapes[1], number)}


def run(seed: int, count: int) -> tuple[Counter[str], list[Verdict]]:
    """Judge `count` graphs; return how many were what, and all that were accepted wrongly."""
    verdicts = [judge(*graph(seed, number), np.random.default_rng([seed, number, 1])) for number in range(count)]
    return Counter(verdict.kind for verdict in verdicts), [verdict for verdict in verdicts if verdict.kind == "wrong"]


if __name__ == "__main__":
    sys.exit(from_command_line(run))
