"""Sizes: what a graph decides by a size that its model leaves open isn't believed, however many sizes look right."""

from typing import Any

import numpy as np
import pytest

from detops.graph import fuse_decode_bbox

from .models import boxes, decode_model, predictions, run
from .mutants import difference

ONE = {name: np.array([value]) for name, value in (("zero", 0), ("one", 1), ("thousand", 1000))}
ROWS = "whole = Shape(d)\nn = Gather<axis=0>(whole, first)\n"
FIRST = {"first": np.array(0)}
# the last rows of the shifts are lost from row 1000 on, and those of the centers take their place
CUT = (
    "some = Slice(t, zero, limit, zero)\nend = Shape(t)\nlast = Slice(end, zero, one, zero)\n"
    "rest = Slice(center, limit, last, zero)\nt2 = Concat<axis=0>(some, rest)\noffset = Mul(t2, size)"
)
TABLE = np.zeros((1000, 2), np.float32)


def _added(of_size: str) -> dict[str, str]:
    """Add a number that a size decides to the shifts."""
    return {"offset": f"{ROWS}{of_size}\nt2 = Add(t, f)\noffset = Mul(t2, size)"}


def _cut(limit: str) -> dict[str, str]:
    return {"offset": f"{limit}\n{CUT}"}


GRID = {"inputs": "float[H,W,4] d, float[H,W,4] b", "outputs": "float[H,W,4] out"}
HEIGHT_AND_WIDTH = (
    "whole = Shape(d)\nh = Gather<axis=0>(whole, first)\nw = Gather<axis=0>(whole, second)\n"
    "square = Equal(h, w)\nflat = Equal(h, one)\na = Cast<to=1>(square)\nc = Cast<to=1>(flat)\n"
    "f = Sub(a, c)\nt2 = Add(t, f)\noffset = Mul(t2, size)"
)
POLYNOMIAL = "\n".join(
    ["p0 = Identity(n)"]
    + [f"m{number} = Sub(n, k{number})\np{number} = Mul(p{number - 1}, m{number})" for number in range(1, 7)]
    + ["zero_or_not = Equal(p6, first)\nis_zero = Cast<to=1>(zero_or_not)\nf = Sub(float_one, is_zero)"]
)
# name: lines, constants, other arguments, shapes of both inputs at which a proof by trials would be wrong
PROBES: dict[str, tuple[dict[str, str], dict[str, Any], dict[str, Any], Any]] = {
    "equal to 100": (
        _added("at = Equal(n, hundred)\nf = Cast<to=1>(at)"),
        FIRST | {"hundred": np.array(100)},
        {},
        ((100, 4),) * 2,
    ),
    "square": (
        {"offset": HEIGHT_AND_WIDTH},
        FIRST | {"second": np.array(1), "one": np.array(1)},
        GRID,
        ((5, 5, 4),) * 2,
    ),
    "cut at a thousand of a float": (
        _cut("limit = Cast<to=7>(thousand_float)"),
        ONE | {"thousand_float": np.array([1000.0], np.float32)},
        {},
        ((1009, 4),) * 2,
    ),
    "cut at a product": (
        _cut("limit = Mul(twenty, fifty)"),
        ONE | {"twenty": np.array([20]), "fifty": np.array([50])},
        {},
        ((1009, 4),) * 2,
    ),
    "cut at a filled constant": (
        _cut("limit = ConstantOfShape<value = int64[1] {1000}>(one)"),
        ONE,
        {},
        ((1009, 4),) * 2,
    ),
    "cut at the length of a table": (
        _cut("form_of = Shape(table)\nlimit = Slice(form_of, zero, one, zero)"),
        ONE | {"table": TABLE},
        {},
        ((1009, 4),) * 2,
    ),
    "cut at the size of a table": (
        _cut("count = Size(table)\nlimit = Reshape(count, one)"),
        ONE | {"table": TABLE[:, :1]},
        {},
        ((1009, 4),) * 2,
    ),
    "cut at the size of another input": (
        _cut("form_of = Shape(other)\nlimit = Slice(form_of, zero, one, zero)"),
        ONE,
        {"inputs": "float[N,4] d, float[N,4] b, float[1000] other"},
        ((1009, 4),) * 2,
    ),
    "a size through a byte": (
        _added("byte = Cast<to=2>(n)\nback = Cast<to=7>(byte)\nless = Sub(n, back)\nf = Cast<to=1>(less)"),
        FIRST,
        {},
        ((300, 4),) * 2,
    ),
    "a size divided": (
        _added("area = Mul(twenty, twenty)\ntimes = Div(n, area)\nf = Cast<to=1>(times)"),
        FIRST | {"twenty": np.array(20)},
        {},
        ((401, 4),) * 2,
    ),
    "a minimum of sizes": (
        _added("least = Min(n, limit)\nless = Sub(n, least)\nf = Cast<to=1>(less)"),
        FIRST | {"limit": np.array(2000)},
        {},
        ((2001, 4),) * 2,
    ),
    "chosen by a size": (
        _added("at = Equal(n, hundred)\nf = Where(at, float_one, float_zero)"),
        FIRST | {"hundred": np.array(100), "float_one": np.float32(1), "float_zero": np.float32(0)},
        {},
        ((100, 4),) * 2,
    ),
    "a polynomial of a size": (
        _added(POLYNOMIAL),
        FIRST
        | {f"k{place}": np.array(size) for place, size in enumerate((1, 2, 8, 11, 5, 13), start=1)}
        | {"float_one": np.float32(1)},
        {},
        ((7, 4),) * 2,
    ),
    "a range": (
        _added("steps = Range(first, n, one)\nstep = Cast<to=1>(steps)\nf = Reshape(step, column)"),
        FIRST | {"one": np.array(1), "column": np.array([-1, 1, 1])},
        {},
        ((7, 4),) * 2,
    ),
    "axes of one dropped": (
        {
            "rows": "",
            "halves": "t, s = Split<axis=-1>(d)",
            "boxes": "",
            "corners": "lo, hi = Split<axis=-1>(b)",
            "moved": "narrow = Squeeze(center)\nmoved = Add(offset, narrow)",
            "joined": "out = Concat<axis=-1>(low, high)",
            "shape": "",
            "out": "",
        },
        {},
        {"inputs": "float[A,B,4] d, float[A,B,4] b", "outputs": "float[P,Q,4] out"},
        ((5, 1, 4),) * 2,
    ),
    "a sum that overflows": (
        _added(
            "small = Cast<to=6>(n)\nmore = Add(small, most)\nat = Equal(more, least)\nf = Cast<to=1>(at)",
        ),
        FIRST | {"most": np.array(2**31 - 8, np.int32), "least": np.array(-(2**31) + 1, np.int32)},
        {},
        ((9, 4),) * 2,
    ),
    "a power that overflows": (
        _added(
            "small = Cast<to=6>(n)\nn2 = Mul(small, small)\nn4 = Mul(n2, n2)\nn5 = Mul(n4, small)\n"
            "at = Equal(n5, wrapped)\nf = Cast<to=1>(at)",
        ),
        FIRST | {"wrapped": np.array([1000**5], np.int64).astype(np.int32)[0]},
        {},
        ((1000, 4),) * 2,
    ),
    "a product that overflows": (
        _added("small = Cast<to=6>(n)\nmore = Mul(small, many)\nat = Equal(more, least)\nf = Cast<to=1>(at)"),
        FIRST | {"many": np.array(1 << 15, np.int32), "least": np.array(-(2**31), np.int32)},
        {},
        ((1 << 16, 4),) * 2,
    ),
    "an overflow": (
        _added("big = Mul(n, huge)\nmore = Mul(big, huge)\nat = Equal(more, first)\nf = Cast<to=1>(at)"),
        FIRST | {"huge": np.array(1 << 32)},
        {},
        ((7, 4),) * 2,
    ),
}


@pytest.mark.parametrize("name", PROBES)
def test_what_a_size_decides_is_not_fused(name: str) -> None:
    lines, constants, arguments, shapes = PROBES[name]
    model = decode_model(lines, constants, **arguments)
    fused, findings = fuse_decode_bbox(model)
    assert [finding.fused for finding in findings] == [False]
    assert fused == model
    feeds = {"d": predictions(shapes[0]), "b": boxes(shapes[1]), "other": np.zeros(1000, np.float32)}
    run(model, {value.name: feeds[value.name] for value in model.graph.input})  # it is a graph that runs


def test_what_is_cut_before_the_decode_is_fused_after_the_cut() -> None:
    """A realistic top-k: the node takes the rows that are left, and the shape is theirs."""
    lines = {
        "rows": "d1 = Slice(d, zero, limit, zero)\nrows = Reshape(d1, form)",
        "boxes": "b1 = Slice(b, zero, limit, zero)\nboxes = Reshape(b1, form)",
        "shape": "shape = Shape(b1)",
    }
    limit = {"zero": np.array([0]), "limit": np.array([1000])}
    model = decode_model(lines, limit)
    fused, (finding,) = fuse_decode_bbox(model)
    assert (finding.fused, finding.box_predictions, finding.anchors) == (True, "d1", "b1")
    for rows in (999, 1000, 1001, 1009):
        feeds = {"d": predictions((rows, 4)), "b": boxes((rows, 4))}
        np.testing.assert_array_equal(run(model, feeds)[0], run(fused, feeds)[0])
        assert len(run(fused, feeds)[0]) == min(rows, 1000)


@pytest.mark.parametrize(
    "lines",
    [
        "four_n = Mul(n, four)\nagain = Div(four_n, four)\nlist = Unsqueeze(again, zero)",
        "least = Neg(n)\nagain = Neg(least)\nlist = Unsqueeze(again, zero)",
        "at = Equal(n, minus)\nagain = Where(at, one, n)\nlist = Unsqueeze(again, zero)",
        "small = Cast<to=6>(n)\nagain = Cast<to=7>(small)\nlist = Unsqueeze(again, zero)",
        "more = Add(n, one)\nagain = Sub(more, one)\nlist = Unsqueeze(again, zero)",
        "again = Max(n, minus)\nlist = Unsqueeze(again, zero)",
        "both = Slice(whole, zero, one_list, zero)\nlist = ReduceProd(both)",
    ],
)
def test_sizes_that_are_the_same_at_all_sizes_are_followed(lines: str) -> None:
    constants = FIRST | {"four": np.array(4), "four_list": np.array([4]), "zero": np.array([0]), "one": np.array(1)}
    constants |= {"minus": np.array(-1), "one_list": np.array([1])}
    model = decode_model({"shape": f"{ROWS}{lines}\nshape = Concat<axis=0>(list, four_list)"}, constants)
    fused, (finding,) = fuse_decode_bbox(model)
    assert (finding.fused, finding.decoded_boxes) == (True, "out")
    for rows in (0, 1, 7):
        feeds = {"d": predictions((rows, 4)), "b": boxes((rows, 4))}
        assert not difference(run(model, feeds), run(fused, feeds), feeds)
