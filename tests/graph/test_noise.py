"""Harmless variations of one decode are still found, and the fused model gives the same boxes."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from detops.graph import fuse_decode_bbox

from .models import CLIP, LINES, boxes, check_valid, decode_model, insert, operators, predictions, run, torchvision_head

# each: the lines to change, the constants to add, and other arguments of decode_model
MERGED = {
    "moved": "shifted = Add(t, half)\nmoved_by = Mul(shifted, size)\nmoved = Add(moved_by, lo)",
    "offset": "",
    "center": "",
    "sum": "",
}
NOISE: dict[str, tuple[dict[str, str], dict[str, Any], dict[str, Any]]] = {
    "as it is": ({}, {}, {}),
    "Clip for Min": ({"clip": "bounded = Clip(s, , clip)"}, {}, {}),
    "Clip with an idle lower bound": (
        {"clip": "bounded = Clip(s, low_bound, clip)"},
        {"low_bound": np.finfo(np.float32).min},
        {},
    ),
    "Min with the constant first": ({"clip": "bounded = Min(clip, s)"}, {}, {}),
    "Min of three": ({"clip": "bounded = Min(clip, s, other)"}, {"other": np.float32(9)}, {}),
    "two bounds, the tighter one counts": (
        {"clip": "wide = Min(s, other)\nbounded = Min(wide, clip)"},
        {"other": np.float32(9)},
        {},
    ),
    "rank-1 constants": ({}, {"half": np.array([0.5], np.float32), "clip": np.array([CLIP], np.float32)}, {}),
    "full constants": ({}, {"half": np.full((1, 1, 2), 0.5, np.float32)}, {}),
    "Div by 2": ({"halved": "halved = Div(new, two)", "center": "center = Div(sum, two)"}, {"two": np.float32(2)}, {}),
    "commuted operands": (
        {
            "sum": "sum = Add(lo, hi)",
            "new": "new = Mul(size, grown)",
            "moved": "moved = Add(center, offset)",
            "high": "high = Add(halved, moved)",
        },
        {},
        {},
    ),
    "merged multiplications": (MERGED, {}, {}),
    "halves first": ({"new": "half_of = Mul(size, half)", "halved": "halved = Mul(grown, half_of)"}, {}, {}),
    "corner from corner": ({"high": "high = Add(low, new)"}, {}, {}),
    "negated width": ({"size": "less = Sub(lo, hi)\nsize = Neg(less)"}, {}, {}),
    "Sum for Add": ({"moved": "moved = Sum(offset, center)"}, {}, {}),
    "Split with sizes": ({"halves": "t, s = Split<axis=1>(rows, ones)"}, {"ones": np.array([1, 1])}, {}),
    "negative axes": (
        {
            "halves": "t, s = Split<axis=-2>(rows)",
            "corners": "lo, hi = Split<axis=-2>(boxes)",
            "joined": "joined = Concat<axis=-2>(low, high)",
        },
        {},
        {},
    ),
    "Slice for Split": (
        {"halves": "t = Slice(rows, zero, one, one)\ns = Slice(rows, one, end, one)"},
        {"zero": np.array([0]), "one": np.array([1]), "end": np.array([np.iinfo(np.int64).max])},
        {},
    ),
    "Gather for Split": (
        {
            "halves": "first = Gather<axis=1>(rows, zero)\nt = Unsqueeze(first, one)\n"
            "last = Gather<axis=1>(rows, minus)\ns = Unsqueeze(last, one)"
        },
        {"zero": np.array(0), "one": np.array([1]), "minus": np.array(-1)},
        {},
    ),
    "constants as nodes": (
        {"form": "form = Constant<value = int64[3] {-1, 2, 2}>()\nhalf = Constant<value_float = 0.5>()"},
        {},
        {},
    ),
    "size computed from the shape": (
        {
            "shape": "whole = Shape(d)\nrow_count = Gather(whole, zero)\n"
            "row_list = Unsqueeze(row_count, zero_list)\nshape = Concat<axis=0>(row_list, four)"
        },
        {"zero": np.array(0), "zero_list": np.array([0]), "four": np.array([4])},
        {},
    ),
    "Reshape to -1, 4": ({"shape": ""}, {"shape": np.array([-1, 4])}, {}),
    "an axis of one in and out": (
        {"out": "wide = Unsqueeze(joined, ones)\nnarrow = Squeeze(wide, ones)\nout = Reshape(narrow, shape)"},
        {"ones": np.array([1])},
        {},
    ),
    "two dimensions of boxes": ({}, {}, {"inputs": "float[N,M,4] d, float[N,M,4] b", "outputs": "float[N,M,4] out"}),
    "static shape": ({}, {}, {"inputs": "float[6,4] d, float[6,4] b", "outputs": "float[6,4] out"}),
    "static anchors": ({}, {}, {"inputs": "float[N,4] d, float[6,4] b", "outputs": "float[6,4] out"}),
    "no clip": ({"clip": "bounded = Identity(s)"}, {}, {}),
    "clip of zero": ({}, {"clip": np.float32(0)}, {}),
    "opset 18": (
        {
            "halves": "t, s = Split<axis=1, num_outputs=2>(rows)",
            "corners": "lo, hi = Split<axis=1, num_outputs=2>(boxes)",
        },
        {},
        {"opset": 18},
    ),
    "opset 14": ({}, {}, {"opset": 14}),
    "opset 13": ({}, {}, {"opset": 13}),
    "opset 11": ({}, {}, {"opset": 11, "ir_version": 6}),
    "opset 11, Split with sizes": (
        {"halves": "t, s = Split<axis=1, split=[1, 1]>(rows)"},
        {},
        {"opset": 11, "ir_version": 6},
    ),
    "scales per coordinate": (
        {"rows": "scaled = Div(d, scale)\nrows = Reshape(scaled, form)"},
        {"scale": np.array([10, 10, 5, 5], np.float32)},
        {},
    ),
    "scales and means, opset 11": (
        {"rows": "scaled = Mul(d, scale)\nmeant = Add(scaled, mean)\nrows = Reshape(meant, form)"},
        {"scale": np.array([0.1, 0.1, 0.2, 0.2], np.float32), "mean": np.array([0, 0.25, 0, -0.5], np.float32)},
        {"opset": 11, "ir_version": 6},
    ),
    "two-sided clip": ({"clip": "bounded = Clip(s, low_bound, clip)"}, {"low_bound": np.float32(-1.5)}, {}),
    "two-sided clip, the other way round": (
        {"clip": "wide = Min(s, clip)\nbounded = Max(wide, low_bound)"},
        {"low_bound": np.float32(-1.5)},
        {},
    ),
}


def feeds_of(model: onnx.ModelProto, size: int = 6) -> dict[str, Any]:
    def shape(value: Any) -> list[int]:
        return [dim.dim_value or size for dim in value.type.tensor_type.shape.dim]

    d, b = model.graph.input[:2]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(d.type.tensor_type.elem_type)
    return {d.name: predictions(shape(d), dtype=dtype), b.name: boxes(shape(b), dtype=dtype)}


def assert_same(model: onnx.ModelProto, fused: onnx.ModelProto) -> None:
    feeds = feeds_of(model)
    for left, right in zip(run(model, feeds), run(fused, feeds), strict=True):
        atol = 16 * float(np.finfo(left.dtype).eps) * np.abs(left.astype(np.float64)).max()
        np.testing.assert_allclose(left.astype(np.float64), right.astype(np.float64), rtol=0, atol=atol)


@pytest.mark.parametrize("name", NOISE)
def test_variation_is_found(name: str) -> None:
    lines, constants, arguments = NOISE[name]
    model = decode_model(lines, constants, **arguments)
    fused, findings = fuse_decode_bbox(model)
    assert [(finding.fused, finding.reason) for finding in findings] == [(True, "")]
    assert operators(fused) == [findings[0].operator]
    assert (findings[0].box_predictions, findings[0].anchors, findings[0].decoded_boxes) == ("d", "b", "out")
    check_valid(fused)
    assert_same(model, fused)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_other_dtypes_are_found(dtype: Any) -> None:
    kind = {np.float16: "float16", np.float64: "double"}[dtype]
    clip = np.array(4.125, dtype)
    model = decode_model(
        {}, {"clip": clip}, inputs=f"{kind}[N,4] d, {kind}[N,4] b", outputs=f"{kind}[N,4] out", dtype=dtype
    )
    fused, (finding,) = fuse_decode_bbox(model)
    assert (finding.fused, finding.decode_clip) == (True, 4.125)
    check_valid(fused)
    feeds = feeds_of(model)
    np.testing.assert_array_equal(run(model, feeds)[0], run(fused, feeds)[0])


@pytest.mark.parametrize(
    "tensor", ["d", "b", "rows", "t", "s", "lo", "size", "center", "bounded", "grown", "moved", "low", "joined"]
)
@pytest.mark.parametrize(("op", "attributes"), [("Identity", {}), ("Dropout", {}), ("Cast", {"to": 1})])
def test_operator_that_changes_nothing_is_found_anywhere(tensor: str, op: str, attributes: dict[str, Any]) -> None:
    model = insert(decode_model(), tensor, (op, attributes))
    fused, (finding,) = fuse_decode_bbox(model)
    assert finding.fused, finding.reason
    assert operators(fused) == ["DecodeBbox"]
    feeds = feeds_of(model)
    np.testing.assert_array_equal(run(model, feeds)[0], run(fused, feeds)[0])


def test_what_was_read_off() -> None:
    lines, constants, arguments = NOISE["scales and means, opset 11"]
    _, (finding,) = fuse_decode_bbox(decode_model(lines, constants, **arguments))
    assert finding.operator == "DecodeBboxV2"
    assert finding.scales == (10, 10, 5, 5)
    assert finding.means == (0, 0.25, 0, -0.5)
    _, (finding,) = fuse_decode_bbox(decode_model(*NOISE["two-sided clip"][:2]))
    assert (finding.operator, finding.decode_clip, finding.lower_clip) == ("DecodeBboxV2", float(CLIP), -1.5)
    _, (finding,) = fuse_decode_bbox(decode_model(*NOISE["no clip"][:2]))
    assert (finding.operator, finding.decode_clip) == ("DecodeBbox", None)
    _, (finding,) = fuse_decode_bbox(decode_model(*NOISE["clip of zero"][:2]))
    assert (finding.operator, finding.decode_clip) == ("DecodeBbox", 0.0)


def test_offset_from_the_corner_is_a_mean_of_minus_a_half() -> None:
    model = decode_model({"sum": "", "center": "", "moved": "moved = Add(offset, lo)"})
    fused, (finding,) = fuse_decode_bbox(model)
    assert (finding.fused, finding.means) == (True, (-0.5, -0.5, 0, 0))
    assert_same(model, fused)


def test_scales_finer_than_an_attribute_stay_outside() -> None:
    shape = "double[N,4]"
    model = decode_model(
        {"rows": "scaled = Mul(d, scale)\nrows = Reshape(scaled, form)"},
        {"clip": np.float64(4), "scale": np.array([0.1, 0.1, 0.2, 0.2])},
        inputs=f"{shape} d, {shape} b",
        outputs=f"{shape} out",
        dtype=np.float64,
    )
    fused, (finding,) = fuse_decode_bbox(model)
    assert (finding.fused, finding.box_predictions) == (True, "scaled")
    feeds = feeds_of(model)
    np.testing.assert_array_equal(run(model, feeds)[0], run(fused, feeds)[0])


def test_one_factor_for_all_coordinates_stays_outside() -> None:
    model = decode_model({"rows": "scaled = Mul(d, three)\nrows = Reshape(scaled, form)"}, {"three": np.float32(3)})
    fused, (finding,) = fuse_decode_bbox(model)
    assert (finding.operator, finding.box_predictions) == ("DecodeBbox", "scaled")
    assert operators(fused) == ["Mul", "DecodeBbox"]
    feeds = feeds_of(model)
    np.testing.assert_array_equal(run(model, feeds)[0], run(fused, feeds)[0])


def test_coordinates_first_with_scales() -> None:
    lines = {
        "rows": "turned = Transpose<perm=[1, 2, 0]>(d)\nscaled = Div(turned, scale)\nrows = Reshape(scaled, form)",
        "boxes": "turned_b = Transpose<perm=[1, 2, 0]>(b)\nboxes = Reshape(turned_b, form)",
        "shape": "shape = Shape(turned_b)",
        "out": "flat = Reshape(joined, shape)\nout = Transpose<perm=[2, 0, 1]>(flat)",
    }
    shapes = {"inputs": "float[4,H,W] d, float[4,H,W] b", "outputs": "float[4,H,W] out"}
    for opset in (17, 11):
        model = decode_model(lines, {"scale": np.array([10, 10, 5, 5], np.float32)}, opset=opset, **shapes)
        fused, (finding,) = fuse_decode_bbox(model)
        assert (finding.operator, finding.axis, finding.scales) == ("DecodeBboxV2", 0, (10, 10, 5, 5))
        assert operators(fused) == ["DecodeBboxV2"]
        check_valid(fused)
        assert_same(model, fused)


def _twice(second_anchors: str = "b") -> onnx.ModelProto:
    """Return two decodes in one graph, the second with names of its own."""
    again = {key: line for key, line in LINES.items() if line}
    model = decode_model(
        inputs="float[N,4] d, float[N,4] b, float[N,4] e",
        outputs="float[N,4] out, float[N,4] out2",
        lines={"out": LINES["out"] + "\n" + "\n".join(_renamed(line, second_anchors) for line in again.values())},
    )
    return model


def _renamed(line: str, anchors: str) -> str:
    target, _, call = line.partition(" = ")
    op, _, arguments = call.rstrip(")").rpartition("(")
    fixed = {"d": "e", "b": anchors, "form": "form", "half": "half", "clip": "clip"}
    new = [fixed.get(name, f"{name}2") for name in arguments.split(", ")]
    return f"{', '.join(name + '2' for name in target.split(', '))} = {op}({', '.join(new)})"


def test_decodes_that_share_anchors_and_constants() -> None:
    model = _twice()
    fused, findings = fuse_decode_bbox(model)
    assert [finding.fused for finding in findings] == [True, True]
    assert operators(fused) == ["DecodeBbox", "DecodeBbox"]
    feeds = feeds_of(model) | {"e": predictions((6, 4), 9)}
    for left, right in zip(run(model, feeds), run(fused, feeds), strict=True):
        np.testing.assert_array_equal(left, right)


def test_decode_whose_anchors_are_decoded_boxes() -> None:
    """A cascade: the second stage refines the boxes of the first one, with nothing in between."""
    model = _twice("out")
    fused, findings = fuse_decode_bbox(model)
    assert [(each.fused, each.box_predictions, each.anchors) for each in findings] == [
        (True, "d", "b"),
        (True, "e", "out"),
    ]
    feeds = feeds_of(model) | {"e": predictions((6, 4), 9) / 4}
    for left, right in zip(run(model, feeds), run(fused, feeds), strict=True):
        np.testing.assert_array_equal(left, right)


def test_constant_anchors() -> None:
    model = decode_model({}, {"b": boxes((6, 4), 3)}, inputs="float[6,4] d", outputs="float[6,4] out")
    fused, (finding,) = fuse_decode_bbox(model)
    assert (finding.fused, finding.anchors) == (True, "b")
    assert [tensor.name for tensor in fused.graph.initializer] == ["b"]
    check_valid(fused)
    feeds = {"d": predictions((6, 4))}
    np.testing.assert_array_equal(run(model, feeds)[0], run(fused, feeds)[0])


@pytest.mark.parametrize("anchors", ["1,N", "N", "1,9", "M,9"])
def test_anchors_broadcast_over_a_batch(anchors: str) -> None:
    lines = {
        "rows": "",
        "halves": "t, s = Split<axis=2>(d)",
        "boxes": "",
        "corners": "lo, hi = Split<axis=-1>(b)",
        "joined": "out = Concat<axis=2>(low, high)",
        "shape": "",
        "out": "",
    }
    model = decode_model(lines, inputs=f"float[B,{anchors[-1]},4] d, float[{anchors},4] b", outputs="float[B,N,4] out")
    fused, (finding,) = fuse_decode_bbox(model)
    assert (finding.fused, finding.box_predictions, finding.anchors) == (True, "d", "b")
    assert operators(fused) == ["DecodeBbox"]
    check_valid(fused)
    shape = [1] * anchors.count(",") + [9, 4]
    feeds = {"d": predictions((2, 9, 4)), "b": boxes(shape)}
    np.testing.assert_array_equal(run(model, feeds)[0], run(fused, feeds)[0])


def test_anchors_broadcast_along_an_inner_axis_are_refused() -> None:
    """Four coordinates of every box of a batch, and of one class for all of them: DecodeBbox has no such thing."""
    lines = {
        "rows": "",
        "halves": "t, s = Split<axis=2>(d)",
        "boxes": "",
        "corners": "lo, hi = Split<axis=2>(b)",
        "joined": "out = Concat<axis=2>(low, high)",
        "shape": "",
        "out": "",
    }
    model = decode_model(lines, inputs="float[B,3,4] d, float[B,1,4] b", outputs="float[B,3,4] out")
    _, (finding,) = fuse_decode_bbox(model)
    assert (finding.fused, "along an inner axis" in finding.reason) == (False, True)


@pytest.mark.parametrize("shapes", [((1, 6), (6, 1)), ((6, 1), (1, 6)), ((2, 3), (3, 2)), ((1, 3), (2, 3))])
def test_unequal_shapes_end_in_an_error(shapes: tuple[tuple[int, int], ...]) -> None:
    """A graph that flattens would pair the boxes of (1, 6) with those of (6, 1)."""
    for lines in ({}, {"rows": "scaled = Div(d, ten)\nrows = Reshape(scaled, form)"}):
        model = decode_model(
            lines,
            {"ten": np.array([10, 10, 5, 5], np.float32)},
            inputs="float[A,B,4] d, float[P,Q,4] b",
            outputs="float[X,Y,4] out",
        )
        fused, (finding,) = fuse_decode_bbox(model)
        assert finding.fused
        left, right = shapes
        with pytest.raises(Exception, match=r"Reshape|broadcast"):
            run(fused, {"d": predictions((*left, 4)), "b": boxes((*right, 4))})


@pytest.mark.parametrize("opset", [17, 12])
def test_classes_on_an_axis_of_their_own(opset: int) -> None:
    """torchvision stacks the corners, and what comes after reads (N, classes, 4); the node gives (N, 4 * classes)."""
    lines = {
        "rows": "grouped = Reshape(d, groups)\nscaled = Div(grouped, scale)",
        "halves": "t, s = Split<axis=2>(scaled)",
        "boxes": "boxes = Unsqueeze(b, one)" if opset > 12 else "boxes = Unsqueeze<axes=[1]>(b)",
        "corners": "lo, hi = Split<axis=2>(boxes)",
        "joined": "out = Concat<axis=2>(low, high)",
        "shape": "",
        "out": "",
    }
    constants = {"groups": np.array([-1, 3, 4]), "one": np.array([1]), "scale": np.array([10, 10, 5, 5], np.float32)}
    model = decode_model(
        lines, constants, inputs="float[N,12] d, float[N,4] b", outputs="float[N,P,4] out", opset=opset
    )
    fused, (finding,) = fuse_decode_bbox(model)
    assert (finding.fused, finding.box_predictions, finding.classes) == (True, "d", 3)
    assert operators(fused) == ["DecodeBboxV2", "Constant", "Reshape"]
    check_valid(fused)
    for rows in (0, 1, 7):
        feeds = {"d": predictions((rows, 12)), "b": boxes((rows, 4))}
        left, right = run(model, feeds)[0], run(fused, feeds)[0]
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-3)


def test_as_many_anchors_are_asked_for_where_the_graph_groups_by_them() -> None:
    model = torchvision_head()
    fused, (finding,) = fuse_decode_bbox(model)
    assert (finding.fused, finding.box_predictions, finding.anchors, finding.classes) == (True, "d", "b", 3)
    assert "DecodeBboxV2" in operators(fused)
    check_valid(fused)
    for rows in (1, 7):
        feeds = {"d": predictions((rows, 12)), "b": boxes((rows, 4))}
        np.testing.assert_allclose(run(model, feeds)[0], run(fused, feeds)[0], rtol=1e-5, atol=1e-3)
    feeds = {"d": predictions((6, 12)), "b": boxes((1, 4))}
    assert run(model, feeds)[0].shape == (1, 18, 4)  # six boxes of three classes against one anchor
    with pytest.raises(Exception, match="Reshape"):
        run(fused, feeds)


def test_body_of_an_if_is_fused() -> None:
    inner = decode_model()
    body = onnx.GraphProto(name="then")
    body.node.extend(inner.graph.node)
    body.output.extend(inner.graph.output)
    other = onnx.helper.make_graph(
        [onnx.helper.make_node("Identity", ["d"], ["same"])],
        "else",
        [],
        [onnx.helper.make_tensor_value_info("same", 1, ["N", 4])],
    )
    node = onnx.helper.make_node("If", ["yes"], ["out"], then_branch=body, else_branch=other)
    yes = onnx.helper.make_tensor_value_info("yes", 9, [])
    graph = onnx.helper.make_graph(
        [node], "main", [*inner.graph.input, yes], inner.graph.output, inner.graph.initializer
    )
    model = onnx.helper.make_model(graph, opset_imports=inner.opset_import, ir_version=8)
    onnx.checker.check_model(model)
    fused, (finding,) = fuse_decode_bbox(model)
    assert finding.fused
    branch = next(attribute for attribute in fused.graph.node[0].attribute if attribute.name == "then_branch")
    assert [inner.op_type for inner in branch.g.node] == ["DecodeBbox"]
    check_valid(fused)
    feeds = feeds_of(inner) | {"yes": np.array(True)}
    np.testing.assert_array_equal(run(model, feeds)[0], run(fused, feeds)[0])


def test_what_others_read_stays() -> None:
    """The width and the reshaped predictions are outputs, and the half is read by another node."""
    model = decode_model(
        {"out": LINES["out"] + "\nother = Mul(size, half)"},
        outputs="float[N,4] out, float[N,1,2] size, float[N,2,2] rows, float[N,1,2] other",
    )
    model.metadata_props.add(key="author", value="somebody")
    model.graph.doc_string = "a graph"
    fused, (finding,) = fuse_decode_bbox(model)
    assert finding.fused
    assert operators(fused) == ["Reshape", "Reshape", "Split", "Sub", "DecodeBbox", "Mul"]
    assert sorted(tensor.name for tensor in fused.graph.initializer) == ["form", "half"]
    assert fused.metadata_props == model.metadata_props
    assert fused.graph.doc_string == "a graph"
    check_valid(fused)
    feeds = feeds_of(model)
    for left, right in zip(run(model, feeds), run(fused, feeds), strict=True):
        np.testing.assert_array_equal(left, right)


def test_nodes_that_were_dead_before_stay() -> None:
    model = decode_model({"out": LINES["out"] + "\nunused = Relu(d)"})
    fused, _ = fuse_decode_bbox(model)
    assert operators(fused) == ["DecodeBbox", "Relu"]


def test_value_infos_of_what_is_gone_go() -> None:
    model = onnx.shape_inference.infer_shapes(decode_model())
    assert len(model.graph.value_info) > 5
    fused, _ = fuse_decode_bbox(model)
    assert list(fused.graph.value_info) == []


def test_weights_in_another_file_are_left_there() -> None:
    model = decode_model(
        {"rows": "added = Add(d, weight)\nrows = Reshape(added, form)"}, {"weight": np.zeros((6, 4), np.float32)}
    )
    tensor = next(tensor for tensor in model.graph.initializer if tensor.name == "weight")
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights.bin")
    fused, (finding,) = fuse_decode_bbox(model)
    assert (finding.fused, finding.box_predictions) == (True, "added")
    assert next(kept for kept in fused.graph.initializer if kept.name == "weight") == tensor


def test_numpy_helper_reads_what_the_node_carries_below_opset_15() -> None:
    fused, _ = fuse_decode_bbox(decode_model(opset=13))
    attributes = {attribute.name: attribute for attribute in fused.graph.node[0].attribute}
    numbers = numpy_helper.to_array(attributes["constants"].t)
    assert numbers.tolist() == [0.5, float(CLIP), -np.inf, 1, 1, 1, 1, 0, 0, 0, 0, 0]
