"""Corners that are bounded before they are joined: one node makes them, and the bounds stay as they were."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import onnx
import pytest

from detops.graph import fuse_decode_bbox

from .models import DATA, FLAT, boxes, check_valid, decode_model, operators, predictions, run

BOUNDS = {"zero": np.float32(0), "width": np.float32(150), "height": np.float32(100)}
COLUMNS = """x1, y1 = Split<axis=-1>(low)
x2, y2 = Split<axis=-1>(high)
a = Clip(x1, zero, width)
c = Clip(x2, zero, width)"""


@pytest.mark.parametrize(("name", "classes"), [("mmdeploy_image", 1), ("mmdeploy_scaled", 1), ("mmdeploy_rois", 3)])
def test_bounds_of_an_image_stay(name: str, classes: int) -> None:
    """MMDeploy bounds each coordinate by the size of its image, which is an input, before it stacks them."""
    model = onnx.load(DATA / "exports" / f"{name}.ts.onnx")
    fused, (finding,) = fuse_decode_bbox(model)
    assert (finding.fused, finding.classes, finding.checked) == (True, classes, "onnxruntime")
    assert (finding.box_predictions, finding.anchors) == ("d", "b")
    assert finding.decoded_boxes in {node.output[0] for node in model.graph.node if node.op_type == "Concat"}
    check_valid(fused)
    assert [operators(each).count("Clip") for each in (model, fused)] == [5, 4]
    assert "Exp" not in operators(fused)
    bounded = {node.name for node in fused.graph.node if node.op_type == "Clip"}
    assert bounded.isdisjoint(finding.nodes)
    lead = (7,) if name == "mmdeploy_rois" else (2, 7)
    feeds = {"d": predictions((*lead, 4 * classes)), "b": boxes((*lead, 4))}
    if len(model.graph.input) > 2:
        feeds["image"] = np.zeros((2, 3, 100, 150), np.float32)
    before, after = run(model, feeds)[0], run(fused, feeds)[0]
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-3)
    assert (before == 0).any()
    assert len(np.unique(before)) > 10


@pytest.mark.parametrize(
    "joined",
    [
        f"{COLUMNS}\nout = Concat<axis=-1>(a, y1, c, y2)",
        f"{COLUMNS}\ne = Min(y1, height)\nf = Max(e, zero)\nout = Concat<axis=-1>(a, f, c, y2)",
        "a = Max(low, zero)\nc = Min(high, width)\nout = Concat<axis=1>(a, c)",
        "a = Clip(low, zero, width)\nc = Mul(a, height)\ne = Mul(high, height)\nout = Concat<axis=1>(c, high)",
    ],
    ids=["two of four", "one more", "halves", "a factor"],
)
def test_bounds_of_some_corners(joined: str) -> None:
    model = decode_model(FLAT | {"joined": joined}, BOUNDS)
    fused, (finding,) = fuse_decode_bbox(model)
    assert (finding.fused, finding.decoded_boxes) == (True, "out")
    assert operators(fused)[0] == "DecodeBbox"
    check_valid(fused)
    for count in (0, 1, 9):
        feeds = {"d": predictions((count, 4)), "b": boxes((count, 4))}
        np.testing.assert_array_equal(run(fused, feeds)[0], run(model, feeds)[0])


def test_corners_that_something_else_reads_are_there() -> None:
    """The unbounded corners are an output, too."""
    lines = {"joined": "a = Clip(low, zero, width)\nout = Concat<axis=1>(a, high)"}
    model = decode_model(FLAT | lines, BOUNDS)
    model.graph.output.append(onnx.helper.make_tensor_value_info("low", 1, ["N", 2]))
    fused, (finding,) = fuse_decode_bbox(model)
    assert (finding.fused, finding.decoded_boxes) == (True, "out")
    check_valid(fused)
    feeds = {"d": predictions((9, 4)), "b": boxes((9, 4))}
    for left, right in zip(run(fused, feeds), run(model, feeds), strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize(
    "joined",
    [
        f"{COLUMNS}\nout = Concat<axis=-1>(a, y1, y2, c)",
        f"{COLUMNS}\nout = Concat<axis=-1>(a, y1, a, y2)",
        f"{COLUMNS}\nout = Concat<axis=-1>(c, y2, a, y1)",
        "a = Clip(low, zero, width)\nout = Concat<axis=0>(a, high)",
        "a = Mul(low, height)\nout = Concat<axis=1>(a, high)",
        "a = Mul(low, height)\nc = Clip(a, zero, width)\ne = Mul(high, height)\nout = Concat<axis=1>(c, e)",
    ],
    ids=["order", "twice", "ends", "rows", "no bound", "factor below"],
)
def test_other_corners_are_refused(joined: str) -> None:
    model = decode_model(FLAT | {"joined": joined}, BOUNDS)
    fused, findings = fuse_decode_bbox(model)
    if any(finding.fused for finding in findings):
        feeds = {"d": predictions((9, 4)), "b": boxes((9, 4))}
        np.testing.assert_allclose(run(fused, feeds)[0], run(model, feeds)[0], rtol=1e-5, atol=1e-3)
        raise AssertionError(findings)
    assert fused == model


@pytest.mark.parametrize("axes", [[1], [-1], [0], [[1]], 1, [1, 2]])
def test_axes_that_are_inserted_after_the_bounds(axes: Any) -> None:
    """One axis, the join's own, from the front or from the end; what is no list is an error of the model's."""
    columns = [f"c{place} = Squeeze(x{place}, last)" for place in range(4)]
    bounded = [f"e{place} = Clip(c{place}, zero, width)\nf{place} = Unsqueeze(e{place}, axes)" for place in range(4)]
    cut = ["x0, x1 = Split<axis=-1>(low)", "x2, x3 = Split<axis=-1>(high)"]
    joined = "\n".join([*cut, *columns, *bounded, "out = Concat<axis=-1>(f0, f1, f2, f3)"])
    model = decode_model(FLAT | {"joined": joined}, BOUNDS | {"axes": np.array(axes), "last": np.array([-1])})
    _, findings = fuse_decode_bbox(model)
    assert [finding.fused for finding in findings] == [axes in ([1], [-1])]


def test_nodes_without_inputs_and_outputs() -> None:
    joined = "a = Clip(low, zero, width)\nc = Identity(high)\nout = Concat<axis=1>(a, c)"
    for place in (-1, -2, -3):
        for entries in ("input", "output"):
            model = decode_model(FLAT | {"joined": joined}, BOUNDS)
            model.graph.node[place].ClearField(entries)
            with contextlib.suppress(ValueError):
                fuse_decode_bbox(model)


def test_corners_of_other_sizes() -> None:
    """One coordinate is joined with three: they are cut out as they were."""
    joined = "a, r = Split<axis=-1>(low)\nrest = Concat<axis=-1>(r, high)\nc = Clip(a, zero, width)"
    model = decode_model(FLAT | {"joined": f"{joined}\nout = Concat<axis=-1>(c, rest)"}, BOUNDS)
    fused, findings = fuse_decode_bbox(model)
    assert [finding.fused for finding in findings] == [True]
    feeds = {"d": predictions((9, 4)), "b": boxes((9, 4))}
    np.testing.assert_array_equal(run(fused, feeds)[0], run(model, feeds)[0])


def test_another_output_of_a_corner_s_node_stays() -> None:
    """What makes x1 makes y1, too, which is no corner of this join, but an output of the graph."""
    lines = """x1, y1 = Split<axis=-1>(low)
    x2, y2 = Split<axis=-1>(high)
    same = Gather<axis=-1>(low, second)
    a = Clip(x1, zero, width)
    out = Concat<axis=-1>(a, same, x2, y2)"""
    model = decode_model(FLAT | {"joined": lines}, BOUNDS | {"second": np.array([1])})
    model.graph.output.append(onnx.helper.make_tensor_value_info("y1", 1, ["N", 1]))
    fused, _ = fuse_decode_bbox(model)
    check_valid(fused)
    feeds = {"d": predictions((9, 4)), "b": boxes((9, 4))}
    for left, right in zip(run(fused, feeds), run(model, feeds), strict=True):
        np.testing.assert_array_equal(left, right)
