"""Anchors in center form, and widths that count pixels: what is a node with these attributes, and what isn't quite."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import detops.onnx
from detops.graph import find_decode_bbox, fuse_decode_bbox

from . import interpreter
from .anchor_forms import (
    ADDED,
    CENTERED,
    COUNTED,
    FORMS,
    FURTHER,
    GRAPHS,
    LESS_AT_THE_END,
    LESS_ON_BOTH_SIDES,
    NUMBERS,
    form_model,
)
from .models import DATA, FLAT, boxes, check_valid, decode_model, operators, predictions, run

COUNTS = (0, 1, 2, 9)


def _agree(before: Any, after: Any, dtype: Any = np.float32) -> None:
    """Compare two functions of predictions and anchors."""
    for count in COUNTS:
        given = predictions((count, 4), dtype=dtype), boxes((count, 4), dtype=dtype)
        wanted = before(*given)
        slack = 32 * float(np.finfo(dtype).eps) * np.abs(wanted).max(initial=1)
        np.testing.assert_allclose(after(*given), wanted, rtol=0, atol=slack)


@pytest.mark.parametrize("opset", [17, 13])
@pytest.mark.parametrize("name", FORMS)
def test_forms_are_fused(name: str, opset: int) -> None:
    """Below opset 15 the function reads its numbers in another way."""
    model = form_model(name, opset=opset)
    fused, (finding,) = fuse_decode_bbox(model)
    assert (finding.fused, finding.reason) == (True, "")
    assert (finding.anchor_form, finding.offset) == FORMS[name][1:]
    assert (finding.box_predictions, finding.anchors, finding.decoded_boxes) == ("d", "b", "out")
    assert finding.operator == ("DecodeBboxV2" if name == "ssd" else "DecodeBbox")
    kept = ["Constant", "Add"] if name in ADDED else []
    assert finding.added == ADDED.get(name, (0, 0, 0, 0))
    assert operators(fused) == [*kept, finding.operator]
    check_valid(fused)
    _agree(lambda d, b: run(model, {"d": d, "b": b})[0], lambda d, b: run(fused, {"d": d, "b": b})[0])


@pytest.mark.parametrize("name", FORMS)
def test_forms_are_fused_with_scales_on_another_axis_and_of_half_precision(name: str) -> None:
    lines = FORMS[name][0] | {
        "form": "scaled = Div(d, scale)",
        "rows": "",
        "halves": "t, s = Split<axis=0>(scaled)",
        "boxes": "",
        "corners": FORMS[name][0].get("corners", "lo, hi = Split<axis=0>(boxes)").replace("axis=1>(boxes", "axis=0>(b"),
        "joined": "out = Concat<axis=0>(low, high)",
        "shape": "",
        "out": "",
    }
    lines["corners"] = lines["corners"].replace("(boxes)", "(b)")
    constants = {key: value.astype(np.float16) for key, value in NUMBERS.items()}
    constants["scale"] = np.array([[4], [4], [2], [2]], np.float16)
    model = decode_model(
        lines,
        constants,
        inputs="float16[4,N] d, float16[4,N] b",
        outputs="float16[4,N] out",
        dtype=np.float16,
    )
    fused, (finding,) = fuse_decode_bbox(model)
    assert (finding.fused, finding.axis, finding.operator) == (True, 0, "DecodeBboxV2")
    assert (finding.anchor_form, finding.offset) == FORMS[name][1:]

    def turned(proto: onnx.ModelProto) -> Any:
        return lambda d, b: run(proto, {"d": d.T.copy(), "b": b.T.copy()})[0].T.astype(np.float32)

    _agree(turned(model), turned(fused), np.float16)


@pytest.mark.parametrize("name", FORMS)
def test_the_kernels_read_the_nodes_as_their_functions_do(name: str) -> None:
    fused, _ = fuse_decode_bbox(form_model(name))
    feeds = {"d": predictions((9, 4)), "b": boxes((9, 4))}
    wanted = run(fused, feeds)[0]
    del fused.functions[:]
    evaluator = ReferenceEvaluator(fused, new_ops=detops.onnx.reference_ops())
    for got in (detops.onnx.session(fused).run(None, feeds)[0], evaluator.run(None, feeds)[0]):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=8 * np.finfo(np.float32).eps * np.abs(wanted).max())


@pytest.mark.parametrize("name", ["maskrcnn_benchmark.ts", "plus1.ts", "ssd_center.ts"])
def test_exports_are_fused(name: str) -> None:
    """RetinaFace's decode is that of ssd.pytorch, word by word."""
    model = onnx.load(DATA / "exports" / f"{name}.onnx")
    fused, (finding,) = fuse_decode_bbox(model)
    assert (finding.fused, finding.box_predictions, finding.anchors) == (True, "d", "b")
    form = ("center", 0, (10, 10, 5, 5)) if name.startswith("ssd") else ("corner", 1, finding.scales)
    assert (finding.anchor_form, finding.offset, finding.scales) == form
    assert operators(fused) == ["DecodeBboxV2"]
    check_valid(fused)
    width = model.graph.input[0].type.tensor_type.shape.dim[1].dim_value
    for count in COUNTS:
        feeds = {"d": predictions((count, width)) / 4, "b": boxes((count, 4))}
        wanted = run(model, feeds)[0]
        slack = 32 * np.finfo(np.float32).eps * np.abs(wanted).max(initial=1)
        np.testing.assert_allclose(run(fused, feeds)[0], wanted, rtol=0, atol=slack)


@pytest.mark.parametrize("name", GRAPHS)
def test_graph_defs_are_fused(name: str) -> None:
    make, (left, right, output), form, offset = GRAPHS[name]
    graph = make()
    data, (finding,) = fuse_decode_bbox(graph.SerializeToString())
    assert (finding.fused, finding.reason) == (True, "")
    assert (finding.anchor_form, finding.offset, finding.operator) == (form, offset, "DecodeBbox")
    after = type(graph).FromString(data)
    assert not any(node.op == "Exp" for node in after.node)
    assert any(node.op in ("Add", "AddV2") for node in after.node) == (name == "tf_faster_rcnn")

    def runner(each: Any) -> Any:
        return lambda d, b: interpreter.run(each, {left: d, right: b}, [output])[0]

    with np.errstate(over="ignore"):
        _agree(runner(graph), runner(after))


def _column_of_ones(*numbers: float) -> dict[str, Any]:
    return {"one": np.array([[numbers]], np.float32)}


# lines, constants, and what the reason must say
NEAR: dict[str, tuple[dict[str, str], dict[str, Any], str]] = {
    "a pixel in the size alone, and half of it taken": (
        COUNTED | {"high": "beyond = Add(moved, halved)\nhigh = Sub(beyond, half)"},
        {},
        "legacy +1",
    ),
    "a pixel at the end alone": (LESS_AT_THE_END, {}, "DecodeBbox does"),
    "half a pixel on both sides alone": (LESS_ON_BOTH_SIDES, {}, "DecodeBbox does"),
    "a center that is moved": ({"center": "mean = Mul(sum, half)\ncenter = Add(mean, one)"}, {}, "DecodeBbox does"),
    "the center of one, the sides of the other": (FURTHER | LESS_ON_BOTH_SIDES, {}, "DecodeBbox does"),
    "the end of one, the center of the other": (COUNTED | LESS_AT_THE_END, {}, "DecodeBbox does"),
    "two pixels": (FURTHER | LESS_AT_THE_END, {"one": np.float32(2)}, "DecodeBbox does"),
    "almost a pixel": (FURTHER | LESS_AT_THE_END, {"one": np.nextafter(np.float32(1), np.float32(2))}, "DecodeBbox"),
    "a pixel of x alone": (FURTHER | LESS_AT_THE_END, _column_of_ones(1, 0), "otherwise than"),
    "the last pixel of x alone": (FURTHER, _column_of_ones(1, 0), "otherwise than"),
    "a pixel that is added to the decoded size": (
        COUNTED | {"new": "grew = Mul(grown, size)\nnew = Add(grew, one)"},
        {},
        "DecodeBbox does",
    ),
    "a pixel in the given size": (
        CENTERED | {"corners": "center, given = Split<axis=1>(boxes)\nsize = Add(given, one)"},
        {},
        "center form",
    ),
    "a given center that is moved": (
        CENTERED | {"corners": "given, size = Split<axis=1>(boxes)\ncenter = Add(given, one)"},
        {},
        "DecodeBbox does",
    ),
    "whole sizes": (CENTERED | {"halved": "halved = Identity(new)"}, {}, "multiplied by"),
    "half sizes": (CENTERED | {"corners": "center, whole = Split<axis=1>(boxes)\nsize = Mul(whole, half)"}, {}, ""),
    "a center by the size": (
        CENTERED | {"moved": "scaled = Mul(center, size)\nmoved = Add(offset, scaled)"},
        {},
        "",
    ),
    "sizes before centers": (CENTERED | {"corners": "size, center = Split<axis=1>(boxes)"}, {}, ""),
    "one center form, one corner form": (
        FLAT
        | {
            "corners": "lo, hi = Split<axis=-1>(b)\nx1, y1 = Split<axis=-1>(lo)\nx2, y2 = Split<axis=-1>(hi)\n"
            "less = Sub(y2, y1)\nmore = Add(y2, y1)\nmiddle = Mul(more, half)",
            "size": "size = Concat<axis=-1>(x2, less)",
            "sum": "",
            "center": "center = Concat<axis=-1>(x1, middle)",
            "joined": "out = Concat<axis=-1>(low, high)",
        },
        {},
        "center form along one axis",
    ),
}


@pytest.mark.parametrize("name", NEAR)
def test_near_misses_are_refused(name: str) -> None:
    lines, constants, reason = NEAR[name]
    model = decode_model(lines, NUMBERS | constants)
    fused, (finding,) = fuse_decode_bbox(model)
    assert not finding.fused
    assert reason in finding.reason
    assert fused == model


def test_anchors_that_the_graph_itself_turns_into_corners_are_taken_as_they_are() -> None:
    lines = CENTERED | {
        "corners": "middle, whole = Split<axis=1>(boxes)\nreach = Mul(whole, half)\n"
        "lo = Sub(middle, reach)\nhi = Add(middle, reach)",
        "size": "size = Sub(hi, lo)",
        "sum": "sum = Add(hi, lo)",
        "center": "center = Mul(sum, half)",
    }
    (finding,) = find_decode_bbox(decode_model(lines))
    assert (finding.fused, finding.anchors, finding.anchor_form) == (True, "b", "center")


def test_a_model_holds_one_form_of_a_function() -> None:
    """A function's body is for one form, so the second decode stays as it is."""
    first, second = form_model("center").graph, form_model("maskrcnn_benchmark")
    for node in first.node:
        node.input[:] = [f"first_{name}" if name not in ("d", "b", "") else name for name in node.input]
        node.output[:] = [f"first_{name}" for name in node.output]
    for tensor in first.initializer:
        tensor.name = f"first_{tensor.name}"
    first.output[0].name = "first_out"
    second.graph.node.extend(first.node)
    second.graph.initializer.extend(first.initializer)
    second.graph.output.extend(first.output)
    fused, findings = fuse_decode_bbox(second)
    assert [finding.fused for finding in findings] == [True, False]
    assert "another function" in findings[1].reason
    check_valid(fused)
