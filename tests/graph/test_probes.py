"""Aimed probes: graphs that are almost decodes, of the kinds that random mutation misses. None may be fused."""

from typing import Any

import numpy as np
import onnx
import pytest

from detops.graph import fuse_decode_bbox

from .models import CLIP, LINES, boxes, check_valid, decode_model, insert, operators, predictions, run

END = np.iinfo(np.int64).max
BUT_LAST = {"zero": np.array([0]), "hundred": np.array([100]), "end": np.array([END]), "axis": np.array([0])}
NEXT = np.nextafter(np.float32(0.5), np.float32(1))
FREE = {"inputs": "float[N,M] d, float[N,4] b", "outputs": "float[N,K] out"}

# without Reshapes, by columns
COLUMNS = {
    "rows": "",
    "halves": "t = Slice(d, zero, two, one)\ns = Slice(d, two, four, one)",
    "boxes": "",
    "corners": "lo = Slice(b, zero, two, one)\nhi = Slice(b, two, four, one)",
    "shape": "",
    "joined": "out = Concat<axis=1>(low, high)",
    "out": "",
}
BOUNDS = {name: np.array([value]) for name, value in (("zero", 0), ("one", 1), ("two", 2), ("four", 4))}
OPEN = "which the model leaves open"

# name: lines, constants, other arguments, and what the reason must say
PROBES: dict[str, tuple[dict[str, str], dict[str, Any], dict[str, Any], str]] = {
    "from row 100 on, the other sign": (
        {
            "low": "low_all = Sub(moved, halved)\nlow_rest = Add(moved, halved)\n"
            "low_a = Slice(low_all, zero, hundred, axis)\nlow_b = Slice(low_rest, hundred, end, axis)\n"
            "low = Concat<axis=0>(low_a, low_b)",
        },
        BUT_LAST,
        {},
        "low_a cuts an axis whose size is open",
    ),
    "from row 100 on, the first anchor": (
        {
            "size": "size_all = Sub(hi, lo)\nsize_a = Slice(size_all, zero, hundred, axis)\n"
            "one_row = Slice(size_all, zero, one, axis)\nrest = Slice(size_all, hundred, end, axis)\n"
            "rest_shape = Shape(rest)\nsize_b = Expand(one_row, rest_shape)\nsize = Concat<axis=0>(size_a, size_b)",
        },
        BUT_LAST | {"one": np.array([1])},
        {},
        "",
    ),
    "anchors of the first 100 only": (
        {"boxes": "some = Slice(b, zero, hundred, axis)\nboxes = Reshape(some, form)"},
        BUT_LAST,
        {},
        "",
    ),
    "rows in reverse": (
        {"t": "", "offset": "back = Slice(t, minus, least, axis, minus)\noffset = Mul(back, size)"},
        {"minus": np.array([-1]), "least": np.array([-END]), "axis": np.array([0])},
        {},
        "back cuts an axis whose size is open",
    ),
    "classes that match at one size": (
        {
            "rows": "",
            "halves": "t = Slice(d, zero, two, one)\ns = Slice(d, two, four, one)",
            "boxes": "",
            "corners": "lo, hi = Split<axis=1>(b)",
            "shape": "",
            "joined": "out = Concat<axis=1>(low, high)",
            "out": "",
        },
        {"zero": np.array([0]), "two": np.array([2]), "four": np.array([4]), "one": np.array([1])},
        FREE,
        "the model leaves open",
    ),
    "classes of the first two anchors": (
        {
            "rows": "",
            "halves": "grouped = Reshape(d, groups)\nt = Slice(grouped, zero, two, axis)\n"
            "s = Slice(grouped, two, four, axis)",
            "boxes": "boxes = Unsqueeze(b, one)",
            "corners": "lo, hi = Split<axis=2>(boxes)",
            "joined": "joined = Concat<axis=2>(low, high)",
            "shape": "shape = Shape(d)",
        },
        {
            "groups": np.array([-1, 2, 4]),
            "zero": np.array([0]),
            "two": np.array([2]),
            "four": np.array([4]),
            "axis": np.array([2]),
            "one": np.array([1]),
        },
        {"inputs": "float[N,M] d, float[N,4] b", "outputs": "float[N,M] out"},
        "",
    ),
    "right only when square": (
        {
            "shape": "whole = Shape(b)\nturned = Gather<axis=0>(whole, order)",
            "out": "out = Reshape(joined, turned)",
        },
        {"order": np.array([1, 0, 2])},
        {"inputs": "float[H,W,4] d, float[H,W,4] b", "outputs": "float[P,Q,4] out"},
        "shape",
    ),
    "anchors transposed, right only for one row": (
        {"boxes": "turned = Transpose<perm=[1, 0, 2]>(b)\nboxes = Reshape(turned, form)"},
        {},
        {"inputs": "float[H,W,4] d, float[H,W,4] b", "outputs": "float[H,W,4] out"},
        "boxes are mixed",
    ),
    "Min after Exp": (
        {"clip": "grown_all = Exp(s)", "exp": "grown = Min(grown_all, clip)"},
        {},
        {},
        "after the exponential",
    ),
    "Max for Min": ({"clip": "bounded = Max(s, clip)"}, {}, {}, "Maximum in place of Minimum"),
    "clip of another sign of t": (
        {"clip": "minus = Neg(s)\nleast = Min(minus, clip)\nbounded = Neg(least)"},
        {},
        {},
        "tw or th",
    ),
    "clips that differ in the last place": (
        {},
        {"clip": np.array([CLIP, np.nextafter(CLIP, np.float32(0))], np.float32)},
        {},
        "different bounds",
    ),
    "clip per box": (
        {},
        {"clip": np.full((6, 1, 2), 4, np.float32) + np.arange(6, dtype=np.float32)[:, None, None]},
        {"inputs": "float[6,4] d, float[6,4] b", "outputs": "float[6,4] out"},
        "",
    ),
    "clip that is an input": ({}, {}, {"inputs": "float[N,4] d, float[N,4] b, float clip"}, "not a constant"),
    "half that is nearly a half": ({}, {"half": NEXT}, {}, "0.5000000596"),
    "half in one place only": (
        {"center": "center = Mul(sum, nearly)"},
        {"nearly": NEXT},
        {},
        "isn't what a decode gives",
    ),
    "clip finer than a float32": (
        {},
        {"clip": np.log(1333 / 16)},
        {"inputs": "double[N,4] d, double[N,4] b", "outputs": "double[N,4] out", "dtype": np.float64},
        "no float32",
    ),
    "plus two": ({"size": "less = Sub(hi, lo)\nsize = Add(less, two)"}, {"two": np.float32(2)}, {}, "legacy +1"),
    "a little more than the size": ({"new": "new = Mul(grown, sum)"}, {}, {}, ""),
    "lower bound above the upper": (
        {"clip": "raised = Max(s, high_bound)\nbounded = Min(raised, clip)"},
        {"high_bound": np.float32(5)},
        {},
        "",
    ),
    "clip before the scale": (
        {"clip": "least = Min(s, clip)\nbounded = Mul(least, two)"},
        {"two": np.float32(2)},
        {},
        "tw or th",
    ),
    "x and y swapped in the anchors": (
        {"boxes": "swapped = Gather<axis=1>(b, order)\nboxes = Reshape(swapped, form)"},
        {"order": np.array([1, 0, 3, 2])},
        {},
        "both axes are mixed",
    ),
    "tx and ty swapped": (
        {"offset": "swapped = Gather<axis=2>(t, order)\noffset = Mul(swapped, size)"},
        {"order": np.array([1, 0])},
        {},
        "both axes are mixed",
    ),
    "tw for tx": ({"offset": "offset = Mul(s, size)"}, {}, {}, "doesn't reach"),
    "two exponentials": ({"new": "again = Mul(grown, grown)\nnew = Mul(again, size)"}, {}, {}, ""),
    "a third input": (
        {"moved": "shifted = Add(offset, extra)\nmoved = Add(shifted, center)"},
        {},
        {"inputs": "float[N,4] d, float[N,4] b, float[1] extra"},
        "also depends on 'extra'",
    ),
    "a bound whose default can be replaced": (
        {},
        {},
        {"inputs": "float[N,4] d, float[N,4] b, float clip = {4.0}"},
        "not a constant",
    ),
    # (N, 4) against (1, N, 4) comes out as (1, N, 4)
    "anchors of any rank": (
        {
            "boxes": "index = Reshape(flat, form_of_index)\npicked = Gather(b, index)\nboxes = Reshape(picked, form)",
            "shape": "shape = Shape(picked)",
        },
        {},
        {
            "inputs": "float[M,4] d, float[N,4] b, int64[K] flat, int64[R] form_of_index",
            "outputs": "float[A,B] out",
        },
        f"if picked has the right rank, {OPEN}",
    ),
    "both of any rank": (
        {
            "rows": "shaped = Reshape(d, form_of_d)\nrows = Reshape(shaped, form)",
            "boxes": "picked = Reshape(b, form_of_b)\nboxes = Reshape(picked, form)",
            "shape": "shape = Shape(picked)",
        },
        {},
        {"inputs": "float[K] d, float[L] b, int64[R] form_of_d, int64[S] form_of_b", "outputs": "float[A,B] out"},
        OPEN,
    ),
    "anchors that may have more columns": (
        COLUMNS,
        BOUNDS,
        {"inputs": "float[N,4] d, float[N,M] b"},
        f"if b has the right number of columns, {OPEN}",
    ),
    "even sizes only": (
        {
            "offset": "whole = Shape(t)\nrow_count = Slice(whole, zero, one)\n"
            "half_count = Div(row_count, two)\neven = Mul(half_count, two)\n"
            "kept = Slice(t, zero, even, zero)\nfirst = Slice(t, zero, one, zero)\nodd = Sub(row_count, even)\n"
            "tail = Shape(t)\ntail_end = Slice(tail, one, three)\n"
            "fill_shape = Concat<axis=0>(odd, tail_end)\nfill = Expand(first, fill_shape)\n"
            "padded = Concat<axis=0>(kept, fill)\noffset = Mul(padded, size)",
        },
        {"zero": np.array([0]), "one": np.array([1]), "two": np.array([2]), "three": np.array([3])},
        {},
        "",
    ),
}
CASTS = [
    (tensor, kind)
    for tensor in ("d", "b", "rows", "t", "s", "size", "bounded", "grown", "moved", "low", "joined")
    for kind in (10, 7, 11)
]


@pytest.mark.parametrize("name", PROBES)
def test_probe_is_not_fused(name: str) -> None:
    lines, constants, arguments, reason = PROBES[name]
    model = decode_model(lines, constants, **arguments)
    fused, findings = fuse_decode_bbox(model)
    assert findings, "a probe looks like a decode, and there must be a finding that says what is wrong"
    assert [finding.fused for finding in findings] == [False] * len(findings), findings
    assert reason in findings[0].reason
    assert fused == model


@pytest.mark.parametrize(("tensor", "kind"), CASTS)
def test_cast_and_back_is_no_identity(tensor: str, kind: int) -> None:
    model = insert(decode_model(), tensor, ("Cast", {"to": kind}), ("Cast", {"to": 1}))
    _, (finding,) = fuse_decode_bbox(model)
    if tensor in ("d", "b", "rows"):  # the decode of what was cast, and the casts stay outside
        assert finding.fused
        assert f"{tensor}_2" in (finding.box_predictions, finding.anchors)
    else:
        assert not finding.fused


def test_cast_of_an_input_is_left_outside() -> None:
    model = insert(decode_model(), "d", ("Cast", {"to": 10}), ("Cast", {"to": 1}))
    fused, (finding,) = fuse_decode_bbox(model)
    assert (finding.fused, finding.box_predictions) == (True, "d_2")
    feeds = {"d": predictions((130, 4)), "b": boxes((130, 4))}
    np.testing.assert_array_equal(run(model, feeds)[0], run(fused, feeds)[0])


def test_predictions_of_any_rank_are_fused_from_their_rows_on() -> None:
    """(1, N, 4) against (N, 4) comes out as (N, 4): the Reshape to rows stays, and the node reads those."""
    lines = {"rows": "shaped = Reshape(d, form_of_d)\nrows = Reshape(shaped, form)"}
    model = decode_model(lines, inputs="float[K] d, float[N,4] b, int64[R] form_of_d")
    fused, (finding,) = fuse_decode_bbox(model)
    assert (finding.fused, finding.box_predictions, finding.anchors) == (True, "rows", "b")
    assert operators(fused) == ["Reshape", "Reshape", "Constant", "Reshape", "DecodeBbox"]
    check_valid(fused)
    for shape in ((1, 5, 4), (5, 4), (5, 2, 2), (20,), (0, 4), (1, 4)):
        count = int(np.prod(shape)) // 4
        feeds = {"d": predictions((count * 4,)), "b": boxes((count, 4)), "form_of_d": np.array(shape)}
        np.testing.assert_array_equal(run(model, feeds)[0], run(fused, feeds)[0])


def test_value_read_twice_is_not_computed_twice() -> None:
    for tensor in ("grown", "new", "halved", "low", "high"):
        model = decode_model(outputs=f"float[N,4] out, float[N,P,2] {tensor}")
        _, (finding,) = fuse_decode_bbox(model)
        assert not finding.fused
        assert f"{tensor} (inside the decode) is read outside it" in finding.reason


def test_output_that_is_cut_later_is_a_decode_still() -> None:
    model = decode_model(
        {"out": "all = Reshape(joined, shape)\nout = Slice(all, zero, hundred, axis)"},
        BUT_LAST,
        outputs="float[M,4] out",
    )
    fused, (finding,) = fuse_decode_bbox(model)
    assert (finding.fused, finding.decoded_boxes) == (True, "all")
    feeds = {"d": predictions((130, 4)), "b": boxes((130, 4))}
    np.testing.assert_array_equal(run(model, feeds)[0], run(fused, feeds)[0])
    assert run(fused, feeds)[0].shape == (100, 4)


def test_old_opset_is_refused_with_the_version() -> None:
    model = decode_model(opset=9, ir_version=4)
    fused, (finding,) = fuse_decode_bbox(model)
    assert (finding.fused, "opset 9" in finding.reason) == (False, True)
    assert fused == model


def test_shapes_that_only_a_reshape_makes_alike() -> None:
    """Predictions of (4, 3, 1, 1) and anchors of (1, 1, 3, 4) have as many elements, and a Reshape hides the rest."""
    shapes = {"inputs": "float[4,3,W,H] d, float[U,V,3,4] b", "outputs": "float[P,Q,R,S] out"}
    _, (finding,) = fuse_decode_bbox(decode_model(**shapes))
    assert not finding.fused
    assert "if d has the right number of columns, which the model leaves open" in finding.reason


def test_stale_shape_of_an_inner_tensor_is_not_believed() -> None:
    """The file says that the predictions have four columns; they have eight, of which the last four are not read."""
    lines = {
        "rows": "all = Concat<axis=1>(d, d)\nread = Identity(all)",
        "halves": "t = Slice(read, zero, two, one)\ns = Slice(read, two, four, one)",
        "boxes": "",
        "corners": "lo, hi = Split<axis=1>(b)",
        "shape": "",
        "joined": "out = Concat<axis=1>(low, high)",
        "out": "",
    }
    numbers = {name: np.array([value]) for name, value in (("zero", 0), ("one", 1), ("two", 2), ("four", 4))}
    model = decode_model(lines, numbers)
    for name in ("all", "read"):
        model.graph.value_info.append(onnx.helper.make_tensor_value_info(name, 1, ["N", 4]))
    _, findings = fuse_decode_bbox(model)
    assert not any(finding.box_predictions in ("all", "read") and finding.fused for finding in findings)


def test_split_of_the_graph_is_not_taken_for_one_of_the_function() -> None:
    """A Split of the anchors in four stays beside the node, and ONNX Runtime must not merge it with the function's."""
    lines = {"out": LINES["out"] + "\nx1, y1, x2, y2 = Split<axis=1>(b)\nleft = Identity(x1)"}
    model = decode_model(lines, outputs="float[N,4] out, float[N,1] left")
    fused, (finding,) = fuse_decode_bbox(model)
    assert finding.fused
    feeds = {"d": predictions((5, 4)), "b": boxes((5, 4))}
    for left, right in zip(run(model, feeds), run(fused, feeds), strict=True):
        np.testing.assert_array_equal(left, right)


def test_two_layouts_of_v2_in_one_model_are_not_given_one_function() -> None:
    """A function is known by its name, and the two layouts need different bodies."""
    first = "\n".join(line for line in LINES.values() if line)
    for old in (
        "rows",
        "t",
        "s",
        "boxes",
        "lo",
        "hi",
        "size",
        "sum",
        "center",
        "bounded",
        "grown",
        "new",
        "halved",
        "offset",
        "moved",
        "low",
        "high",
        "joined",
        "shape",
    ):
        first = first.replace(f"{old} = ", f"{old}_2 = ")
    scale = {"scale": np.array([10, 10, 5, 5], np.float32)}
    turned = {
        "rows": "turned = Transpose<perm=[1, 2, 0]>(d)\nscaled = Div(turned, scale)\nrows = Reshape(scaled, form)",
        "boxes": "turned_b = Transpose<perm=[1, 2, 0]>(b)\nboxes = Reshape(turned_b, form)",
        "shape": "shape = Shape(turned_b)",
        "out": "flat = Reshape(joined, shape)\nout = Transpose<perm=[2, 0, 1]>(flat)",
    }
    one = decode_model(turned, scale, inputs="float[4,H,W] d, float[4,H,W] b", outputs="float[4,H,W] out")
    other = decode_model({"rows": "scaled = Div(d, scale)\nrows = Reshape(scaled, form)"}, scale)
    for side, model in (("one_", one), ("other_", other)):
        model.CopyFrom(onnx.compose.add_prefix(model, side))
    both = onnx.compose.merge_graphs(one.graph, other.graph, io_map=[])
    model = onnx.helper.make_model(both, opset_imports=one.opset_import, ir_version=8)
    fused, findings = fuse_decode_bbox(model)
    assert sorted(finding.fused for finding in findings) == [False, True]
    assert any("another function" in finding.reason for finding in findings)
    onnx.checker.check_model(fused, full_check=True)
