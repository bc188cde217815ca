"""Anchors that were folded into constants: the corners are rebuilt, and the node reads them."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from detops.graph import fuse_decode_bbox
from detops.graph.model._tf_schema import messages
from detops.graph.model._tf_tensors import number_of, set_tensor

from . import interpreter
from .models import boxes, check_valid, decode_model, operators, predictions, run

ROWS = 30
# of a decode by columns; t0 to t3 are the predictions, w, h, x, y the sizes and centers
TAKE = "t0, t1, t2, t3 = Split<axis=-1>(d)"
BY_COLUMN = """{take}
dx = Mul(t0, w) px = Add(dx, x) dy = Mul(t1, h) py = Add(dy, y)
bw = Min(t2, clip) gw = Exp(bw) pw = Mul(gw, w) hw = Mul(pw, half)
bh = Min(t3, clip) gh = Exp(bh) ph = Mul(gh, h) hh = Mul(ph, half)
x1 = Sub(px, hw) y1 = Sub(py, hh) x2 = Add(px, hw) y2 = Add(py, hh)
out = Concat<axis=-1>(x1, y1, x2, y2)"""
BY_PAIR = """t, s = Split<axis=-1>(d)
shift = Mul(t, size) moved = Add(shift, center)
bounded = Min(s, clip) grown = Exp(bounded) new = Mul(grown, size) halved = Mul(new, half)
low = Sub(moved, halved) high = Add(moved, halved)
out = Concat<axis=-1>(low, high)"""
BY_HALVES = BY_PAIR.replace("new = Mul(grown, size) halved = Mul(new, half)", "halved = Mul(grown, half_size)").replace(
    "shift = Mul(t, size)", "twice = Mul(half_size, two) shift = Mul(t, twice)"
)
SCALED = BY_COLUMN.replace("{take}", "scaled = Div(d, scale)\n" + TAKE.replace("(d)", "(scaled)"))


def columns(corners: Any) -> dict[str, Any]:
    """Return the constants that folding leaves of anchors, as the graph would have computed them."""
    half = corners.dtype.type(0.5)
    size, center = corners[:, 2:] - corners[:, :2], corners[:, :2] + half * (corners[:, 2:] - corners[:, :2])
    tables = {"w": size[:, :1], "h": size[:, 1:], "x": center[:, :1], "y": center[:, 1:]}
    return tables | {
        "size": size,
        "center": center,
        "half_size": size * half,
        "two": np.float32(2),
        "scale": np.array([10, 10, 5, 5], np.float32),
    }


def folded(text: str, corners: Any, shape: str = "30,4", **more: Any) -> onnx.ModelProto:
    """Return a decode whose anchors are constants."""
    lines = dict.fromkeys(decode_lines(), "") | {"all": text.format(take=TAKE)}
    return decode_model(lines, columns(corners) | more, inputs=f"float[{shape}] d", outputs=f"float[{shape}] out")


def decode_lines() -> list[str]:
    from .models import LINES

    return list(LINES)


HALF_SIZES = BY_PAIR.replace("new = Mul(grown, size) halved = Mul(new, half)", "halved = Mul(grown, half_size)")


@pytest.mark.parametrize("text", [BY_COLUMN, BY_PAIR, BY_HALVES, SCALED, HALF_SIZES])
@pytest.mark.parametrize("shape", ["30,4", "1,30,4", "B,30,4"])
@pytest.mark.parametrize("kind", ["whole numbers", "normalized"])
def test_corners_are_rebuilt(text: str, shape: str, kind: str) -> None:
    corners = boxes((ROWS, 4))
    corners = np.round(corners) if kind == "whole numbers" else (corners / 700).astype(np.float32)
    model = folded(text, corners, shape)
    fused, (finding,) = fuse_decode_bbox(model)
    assert (finding.fused, finding.box_predictions, finding.anchors) == (True, "d", "out_anchors"), finding.reason
    assert operators(fused) == [finding.operator] == ["DecodeBboxV2" if text == SCALED else "DecodeBbox"]
    (tensor,) = fused.graph.initializer
    anchors = numpy_helper.to_array(tensor)
    if kind == "whole numbers":
        np.testing.assert_array_equal(anchors, corners)
    np.testing.assert_allclose(anchors, corners, rtol=0, atol=2 * np.spacing(np.abs(corners).max()))
    np.testing.assert_array_equal(anchors[:, 2:] - anchors[:, :2], corners[:, 2:] - corners[:, :2])
    check_valid(fused)
    feeds = {"d": predictions([2 if dim == "B" else int(dim) for dim in shape.split(",")])}
    left, right = run(model, feeds)[0], run(fused, feeds)[0]
    scale = np.abs(corners).max() + np.abs(left)
    assert (np.abs(left - right) <= 8 * np.finfo(np.float32).eps * scale).all()


def test_corners_that_were_cut_apart_are_put_together() -> None:
    text = BY_COLUMN.format(take=TAKE)
    text = (
        f"w = Sub(c2, c0) h = Sub(c3, c1) sx = Add(c0, c2) sy = Add(c1, c3) x = Mul(sx, half) y = Mul(sy, half)\n{text}"
    )
    corners = boxes((ROWS, 4))
    parts = {f"c{place}": corners[:, place : place + 1] for place in range(4)}
    model = decode_model(
        dict.fromkeys(decode_lines(), "") | {"all": text}, parts, inputs="float[30,4] d", outputs="float[30,4] out"
    )
    fused, (finding,) = fuse_decode_bbox(model)
    assert finding.fused
    np.testing.assert_array_equal(numpy_helper.to_array(fused.graph.initializer[0]), corners)
    feeds = {"d": predictions((ROWS, 4))}
    np.testing.assert_array_equal(run(model, feeds)[0], run(fused, feeds)[0])


def test_corners_are_rebuilt_in_a_graph_def() -> None:
    corners = boxes((ROWS, 4))
    tables = columns(corners)
    graph = messages()["GraphDef"]()
    node = graph.node.add(name="d", op="Placeholder")
    node.attr["dtype"].type = 1
    for size in (ROWS, 4):
        node.attr["shape"].shape.dim.add(size=size)
    constants = {"size": tables["size"], "center": tables["center"], "half": np.float32(0.5), "clip": np.float32(4)}
    for name, value in (constants | {"axis": np.array(1, np.int32)}).items():
        node = graph.node.add(name=f"head/{name}", op="Const")
        node.attr["dtype"].type = number_of(value.dtype)
        set_tensor(node.attr["value"].tensor, np.asarray(value))
    listed = """parts Split axis d; shift Mul parts:0 size; moved Add shift center; bounded Minimum parts:1 clip;
        grown Exp bounded; new Mul grown size; halved Mul new half; low Sub moved halved; high Add moved halved;
        out ConcatV2 low high axis"""
    for line in listed.split(";"):
        name, op, *inputs = line.split()
        node = graph.node.add(name=f"head/{name}", op=op)
        node.input.extend(each if each == "d" else f"head/{each}" for each in inputs)
        node.attr["T"].type = 1
    graph.node[-1].attr["N"].i = 2
    next(node for node in graph.node if node.op == "Split").attr["num_split"].i = 2
    data, (finding,) = fuse_decode_bbox(graph.SerializeToString())
    assert (finding.fused, finding.anchors) == (True, "head/out_anchors:0"), finding.reason
    after = messages()["GraphDef"].FromString(data)
    assert [node.op for node in after.node if node.name.startswith("head/out")] == ["DecodeBbox", "Const"]
    feeds = {"d": predictions((ROWS, 4))}
    left, right = (interpreter.run(each, feeds, ["head/out"])[0] for each in (graph, after))
    np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-3)


def test_constants_that_are_no_anchors_are_refused() -> None:
    corners = np.round(boxes((ROWS, 4)))
    other = columns(corners + np.array([0, 0, 1, 0], np.float32))["w"]
    for text, constants in (
        (BY_COLUMN.replace("pw = Mul(gw, w)", "pw = Mul(gw, other)"), {"other": other}),  # another size
        (BY_COLUMN.replace("dx = Mul(t0, w)", "dx = Mul(t0, other)"), {"other": other}),
        (BY_COLUMN.replace("bw = Min(t2, clip)", "bw = Min(t2, other)"), {"other": other}),  # a bound for each box
        (BY_COLUMN.replace("px = Add(dx, x)", "qx = Add(dx, x) px = Add(qx, other)"), {"other": other}),
        (BY_COLUMN.replace("y1 = Sub(py, hh)", "y1 = Sub(py, hw)"), {}),
    ):
        model = folded(text, corners, **constants)
        fused, findings = fuse_decode_bbox(model)
        assert [finding.fused for finding in findings] == [False]
        assert fused == model


@pytest.mark.parametrize(
    "tables",
    [{"x": 1e6, "w": 1 / 3}, {"x": 3e38}],
    ids=["no two floats lie so far apart", "twice is too much"],
)
def test_where_no_floats_are_the_corners_the_anchors_are_rebuilt_in_center_form(tables: dict[str, float]) -> None:
    corners = np.round(boxes((ROWS, 4)))
    model = folded(BY_COLUMN, corners, **{key: np.full((ROWS, 1), value, np.float32) for key, value in tables.items()})
    fused, (finding,) = fuse_decode_bbox(model)
    assert (finding.fused, finding.anchor_form, finding.reason) == (True, "center", "")
    feeds = {"d": predictions((ROWS, 4))}
    left, right = run(model, feeds)[0], run(fused, feeds)[0]
    np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-3)


SSD = """t, s = Split<axis=-1>(d)
varied = Mul(t, tenth) shift = Mul(varied, size) moved = Add(center, shift)
growth = Mul(s, fifth) grown = Exp(growth) new = Mul(size, grown) halved = Div(new, two)
low = Sub(moved, halved) high = Add(new, low)
out = Concat<axis=-1>(low, high)"""


def test_priors_are_kept_to_the_bit() -> None:
    """Small boxes beside coordinates up to 1: corners would round their sizes."""
    random = np.random.default_rng(0)
    priors = np.concatenate([random.uniform(0, 1, (ROWS, 2)), random.uniform(0.02, 0.3, (ROWS, 2))], 1).astype("f")
    tables = {"center": priors[:, :2], "size": priors[:, 2:], "tenth": np.float32(0.1), "fifth": np.float32(0.2)}
    model = folded(SSD, priors, **tables)
    fused, (finding,) = fuse_decode_bbox(model)
    assert (finding.fused, finding.anchor_form, finding.scales) == (True, "center", (10, 10, 5, 5)), finding.reason
    np.testing.assert_array_equal(numpy_helper.to_array(fused.graph.initializer[0]), priors)
    check_valid(fused)
    feeds = {"d": predictions((ROWS, 4))}
    np.testing.assert_allclose(run(model, feeds)[0], run(fused, feeds)[0], rtol=1e-5, atol=1e-6)


def test_pixels_that_were_counted_before_folding() -> None:
    """maskrcnn-benchmark's sizes and centers as constants: the graph takes 1 from the decoded ends."""
    text = BY_PAIR.replace("high = Add(moved, halved)", "beyond = Add(moved, halved) high = Sub(beyond, one)")
    corners = np.round(boxes((ROWS, 4)))
    size = corners[:, 2:] - corners[:, :2] + 1
    tables = {"size": size, "center": corners[:, :2] + np.float32(0.5) * size, "one": np.float32(1)}
    model = folded(text, corners, **tables)
    fused, (finding,) = fuse_decode_bbox(model)
    assert (finding.fused, finding.anchor_form, finding.offset) == (True, "center", 1), finding.reason
    feeds = {"d": predictions((ROWS, 4))}
    np.testing.assert_allclose(run(model, feeds)[0], run(fused, feeds)[0], rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("number", [np.inf, np.nan])
@pytest.mark.parametrize("name", ["w", "x"])
def test_tables_of_what_is_no_number_are_refused(name: str, number: float) -> None:
    corners = np.round(boxes((ROWS, 4)))
    table = columns(corners)[name].copy()
    table[3] = number
    _, findings = fuse_decode_bbox(folded(BY_COLUMN, corners, **{name: table}))
    assert [finding.fused for finding in findings] == [False]


def test_a_hundred_thousand_static_anchors_are_no_trouble() -> None:
    """One box stands for all, also where the model says how many there are."""
    count = 268_569
    model = decode_model({}, {}, inputs=f"float[{count},4] d, float[{count},4] b", outputs=f"float[{count},4] out")
    _, (finding,) = fuse_decode_bbox(model)
    assert finding.fused
