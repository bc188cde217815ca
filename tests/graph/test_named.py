"""Decodes of other forms are found and named, begin and end where they do, and are left alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from detops.cli.decodes import leave_alone
from detops.graph import find_decode_bbox, fuse_decode_bbox

from .models import DATA

# what exporters write: the form, the predictions, the other input, and the operator that makes the boxes
EXPORTS = {
    "form_fcos.ts": [("ltrb", "d", "p", "Concat")],
    "dist.ts": [("ltrb", "d", "b", "Concat")],
    "dist.dyn": [("ltrb", "d", "b", "Concat")],
    "form_yolov8.ts": [("dfl", "/Transpose_1_output_0", None, "Mul")],
    "form_yolov6.ts": [("dfl", "/Concat_19_output_0", None, "Concat")],
    "form_ppyoloe.ts": [("dfl", "/Reshape_4_output_0", None, "Mul")],
    "form_nanodet.ts": [("dfl", "/Reshape_1_output_0", None, "Concat"), ("dfl", "/Reshape_6_output_0", None, "Concat")],
    "form_tblr.ts": [("tblr", "d", "b", "Reshape")],
    "form_detr.ts": [("cxcywh", "/Sigmoid_output_0", None, "Concat")],
    "form_rtdetr.ts": [("cxcywh", "/Sigmoid_output_0", None, "Concat")],
    "form_yolov3.ts": [("yolo", f"/m.{level}/Conv_output_0", None, "Reshape") for level in (0, 1)],
    "form_yolov3_corners.ts": [("yolo", f"/m.{level}/Conv_output_0", None, "Reshape") for level in (0, 1)],
    "form_yolov3_in_place.ts": [("yolo", f"/m.{level}/Conv_output_0", None, "ScatterND") for level in (0, 1)],
    "form_yolov4.ts": [("yolo", "o", None, "Reshape")],
    "form_yolov7.ts": [
        ("yolo", "/Sigmoid_output_0", None, "Reshape"),
        ("yolo", "/Sigmoid_1_output_0", None, "Reshape"),
    ],
    "form_yolox.ts": [("yolo", "/Concat_4_output_0", None, "Concat")],
    "form_yolov5.ts": [
        ("yolo", "/Sigmoid_output_0", None, "Reshape"),
        ("yolo", "/Sigmoid_1_output_0", None, "Reshape"),
    ],
}
# what of a network a form has inside: the mean of a distribution, and the sigmoid that YOLOv3 has on centers alone
INSIDE = {"dfl": {"Conv", "MatMul", "Softmax"}, "yolo": {"Sigmoid"}}


@pytest.mark.parametrize("name", EXPORTS)
def test_exported_form_has_a_name(name: str) -> None:
    model = onnx.load(DATA / "exports" / f"{name}.onnx")
    fused, findings = fuse_decode_bbox(model)
    assert fused == model
    makers = {output: node for node in model.graph.node for output in node.output}
    found = [
        (each.form, each.box_predictions, each.anchors, makers[each.decoded_boxes or ""].op_type) for each in findings
    ]
    assert found == EXPORTS[name]
    for finding in findings:
        assert (finding.fused, finding.operator) == (False, None)
        assert "DecodeBbox" in finding.reason or finding.form == "cxcywh"
        held = {makers[label].op_type if label in makers else label for label in finding.nodes}
        assert not held & ({"Conv", "MatMul", "Sigmoid", "Softmax"} - INSIDE.get(finding.form, set()))
    assert set(leave_alone(findings)) == {label for finding in findings for label in finding.nodes}


def test_form_of_a_decode_that_is_fused() -> None:
    assert [finding.form for finding in find_decode_bbox(DATA / "pos_half.onnx")] == ["delta"]


COLUMNS = "c0, c1, c2, c3 = Split<axis=-1>(p)\n"
DISTANCES = (
    "x1 = Sub(px, c0)\ny1 = Sub(py, c1)\nx2 = Add(px, c2)\ny2 = Add(py, c3)\nout = Concat<axis=-1>(x1, y1, x2, y2)"
)
CENTERS = (
    "w = Mul(c2, half)\nh = Mul(c3, half)\nx1 = Sub(c0, w)\ny1 = Sub(c1, h)\nx2 = Add(c0, w)\ny2 = Add(c1, h)\n"
    "out = Concat<axis=-1>(x1, y1, x2, y2)"
)
GRID = (
    "mx = Add(c0, px)\nmy = Add(c1, py)\nx = Mul(mx, two)\ny = Mul(my, two)\nw = Exp(c2)\nh = Exp(c3)\n"
    "out = Concat<axis=-1>(x, y, w, h)"
)


def _forms(lines: str, opset: int = 17) -> list[str]:
    return [finding.form for finding in _found(lines, opset)]


def _found(lines: str, opset: int = 17) -> list[Any]:
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}]> g (float[N,4] p, float[N,1] px, float[N,1] py) '
        f"=> (float[N,4] out) {{ {COLUMNS}{lines} }}"
    )
    for name, value in (("half", 0.5), ("two", 2.0), ("five", 5.0), ("zero", 0.0)):
        model.graph.initializer.append(numpy_helper.from_array(np.float32(value), name))
    return find_decode_bbox(model)


BOUNDED = DISTANCES.replace("out = Concat<axis=-1>(x1, y1, x2, y2)", "{}\nout = Concat<axis=-1>(u1, v1, u2, v2)")


@pytest.mark.parametrize(
    "bounds",
    [
        "u1 = Clip(x1, zero, five)\nv1 = Clip(y1, zero, two)\nu2 = Clip(x2, zero, five)\nv2 = Clip(y2, zero, two)",
        "u1 = Max(x1, zero)\nv1 = Max(y1, zero)\nu2 = Min(x2, five)\nv2 = Min(y2, two)",
        "w = ReduceMax<keepdims=0>(px)\nu1 = Clip(x1, zero, w)\nv1 = Clip(y1, zero, w)\nu2 = Clip(x2, zero, w)\n"
        "v2 = Clip(y2, zero, w)",
    ],
    ids=["numbers", "minimum and maximum", "a tensor"],
)
def test_distances_that_are_bounded_by_the_image_have_their_name(bounds: str) -> None:
    """As ``distance2bbox`` does, where it is told the shape of the image; the bounds are no part of the decode."""
    (finding,) = _found(BOUNDED.format(bounds))
    assert (finding.form, finding.box_predictions, finding.decoded_boxes) == ("ltrb", "p", "out")
    assert len(finding.nodes) == 5


@pytest.mark.parametrize(
    ("form", "lines", "change"),
    [
        ("ltrb", DISTANCES, ("x1 = Sub(px, c0)", "x1 = Sub(px, c0)")),
        ("ltrb", DISTANCES, ("x1 = Sub(px, c0)\n", "s0 = Mul(c0, five)\nx1 = Sub(px, s0)\n")),
        ("ltrb", DISTANCES, ("x1 = Sub(px, c0)\n", "s0 = Exp(c0)\nx1 = Sub(px, s0)\n")),
        ("cxcywh", CENTERS, ("half", "half")),
        ("yolo", GRID, ("two", "five")),
        ("yolo", GRID, ("w = Exp(c2)", "s2 = Mul(c2, five)\nw = Mul(s2, s2)")),
    ],
)
def test_what_has_a_name(form: str, lines: str, change: tuple[str, str]) -> None:
    """One distance may be scaled only if its opposite is; a factor of all does no harm."""
    one_sided = form == "ltrb" and change[0] != change[1]
    assert _forms(lines.replace(*change)) == ([] if one_sided else [form])


@pytest.mark.parametrize(
    ("lines", "change"),
    [
        (DISTANCES, ("Sub(px, c0)", "Add(px, c0)")),
        (DISTANCES, ("Sub(px, c0)", "Sub(px, c1)")),
        (DISTANCES, ("Sub(py, c1)", "Sub(px, c1)")),
        (DISTANCES, ("Concat<axis=-1>(x1, y1", "Concat<axis=-1>(y1, x1")),
        (DISTANCES, ("axis=-1>(x1", "axis=0>(x1")),
        (CENTERS, ("w = Mul(c2, half)", "w = Mul(c2, two)")),
        (CENTERS, ("Add(c0, w)", "Add(c1, w)")),
        (CENTERS, ("Sub(c1, h)", "Sub(c1, w)")),
        (GRID, ("w = Exp(c2)", "w = Mul(c2, five)")),
        (GRID, ("h = Exp(c3)", "h = Exp(c2)")),
        (GRID, ("mx = Add(c0, px)", "mx = Mul(c0, c0)")),
    ],
)
def test_what_has_none(lines: str, change: tuple[str, str]) -> None:
    assert change[0] in lines
    assert _forms(lines.replace(*change)) == []


def test_named_decodes_don_t_hide_others() -> None:
    """What a decode holds that is found or refused has no second name: SSD joins centers and sizes on the way."""
    findings: list[Any] = find_decode_bbox(DATA / "exports" / "ssd_center.ts.onnx")
    assert [(finding.form, finding.fused) for finding in findings] == [("delta", True)]


def test_a_refused_decode_hides_what_it_joins_on_the_way() -> None:
    model = onnx.load(DATA / "exports" / "ssd_center.ts.onnx")
    (half,) = [node for node in model.graph.node if "/Constant_26_output_0" in node.output]
    half.attribute[0].t.CopyFrom(numpy_helper.from_array(np.float32(3)))
    (finding,) = find_decode_bbox(model)
    assert (finding.form, finding.fused, finding.decoded_boxes) == ("", False, "out")


def test_a_mean_with_weights_that_do_not_grow_evenly_is_part_of_the_network() -> None:
    model = onnx.load(DATA / "exports" / "form_yolov8.ts.onnx")
    (weight,) = [tensor for tensor in model.graph.initializer if tensor.name == "d.weight"]
    values = numpy_helper.to_array(weight).copy()
    values.flat[-1] += 1
    weight.CopyFrom(numpy_helper.from_array(values, "d.weight"))
    (finding,) = find_decode_bbox(model)
    assert (finding.form, finding.box_predictions) == ("ltrb", "/d/Conv_output_0")


def test_corners_of_centers_that_are_no_sigmoids_have_no_name() -> None:
    """They are DecodeBbox's own form, with anchors that were folded into numbers."""
    corners = (
        "\nh2 = Mul(h, half)\nw2 = Mul(w, half)\nx1 = Sub(x, w2)\ny1 = Sub(y, h2)\nx2 = Add(x, w2)\ny2 = Add(y, h2)\n"
    )
    lines = GRID.replace("out = Concat<axis=-1>(x, y, w, h)", f"{corners}out = Concat<axis=-1>(x1, y1, x2, y2)")
    assert _forms(lines) == [""]
    assert _forms(lines.replace("mx = Add(c0, px)\nmy = Add(c1, py)", GATED)) == ["yolo"]


GATED = "s0 = Sigmoid(c0)\ns1 = Sigmoid(c1)\nmx = Add(s0, px)\nmy = Add(s1, py)"
