"""Decodes whose output has x and y in another order than their inputs: a Gather follows the node."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from detops.graph import find_decode_bbox, fuse_decode_bbox
from detops.graph.model._tf_tensors import set_tensor

from .models import boxes, check_valid, golden, operators, predictions, run
from .test_tensorflow import execute as execute
from .test_tensorflow import graph_def, parse


def efficientdet(order: str = "xyxy", *, shape: str = "[B,N,4]", anchors: str = "[N,4]", names: str = "yxyx") -> Any:
    """Return the decode of EfficientDet: ty, tx, th, tw against y1, x1, y2, x2, without a bound, column by column."""
    columns = {
        name: place
        for place, name in enumerate(("y1", "x1", "y2", "x2") if names == "yxyx" else ("x1", "y1", "x2", "y2"))
    }
    lines = []
    for place, name in enumerate(("ty", "tx", "th", "tw")):
        lines.append(f"{name} = Gather<axis=-1>(d, at{place})")
    for name, place in columns.items():
        lines.append(f"{name} = Gather<axis=-1>(b, at{place})")
    for axis, size in (("y", "h"), ("x", "w")):
        lines += [
            f"sum_{axis} = Add({axis}1, {axis}2)",
            f"center_{axis} = Div(sum_{axis}, two)",
            f"{size}_a = Sub({axis}2, {axis}1)",
            f"grown_{size} = Exp(t{size})",
            f"{size} = Mul(grown_{size}, {size}_a)",
            f"offset_{axis} = Mul(t{axis}, {size}_a)",
            f"moved_{axis} = Add(offset_{axis}, center_{axis})",
            f"half_{size} = Div({size}, two)",
            f"{axis}_min = Sub(moved_{axis}, half_{size})",
            f"{axis}_max = Add(moved_{axis}, half_{size})",
        ]
    ends = {"xyxy": "x_min y_min x_max y_max", "yxyx": "y_min x_min y_max x_max", "xxyy": "x_min x_max y_min y_max"}
    ends |= {"xyyx": "x_min y_min y_max x_max", "yxxy": "y_min x_min x_max y_max", "max": "x_max y_max x_min y_min"}
    for name in ends[order].split():
        lines.append(f"{name}_column = Unsqueeze({name}, last)")
    joined = ", ".join(f"{name}_column" for name in ends[order].split())
    lines.append(f"out = Concat<axis=-1>({joined})")
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> decode (float{shape} d, float{anchors} b) => (float{shape} out) '
        f"{{ {chr(10).join(lines)} }}"
    )
    values: dict[str, Any] = {f"at{place}": np.array(place) for place in range(4)}
    values |= {"two": np.array(2, np.float32), "last": np.array([-1])}
    model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in values.items())
    onnx.checker.check_model(model)
    return model


@pytest.mark.parametrize("names", ["yxyx", "xyxy"])
@pytest.mark.parametrize("order", ["xyxy", "yxyx", "xxyy", "xyyx", "yxxy", "max"])
def test_order_of_the_output(order: str, names: str) -> None:
    """Anchors must have the order of the predictions; both may have either, and the output too."""
    model = efficientdet(order, names=names)
    fused, (finding,) = fuse_decode_bbox(model)
    assert finding.fused == (order in ("xyxy", "yxyx") and names == "yxyx")
    if finding.fused:
        assert operators(fused)[0] == "DecodeBbox"
        assert ("Gather" in operators(fused)) == (order == "xyxy")
        check_valid(fused)
    for count in (1, 9):
        feeds = {"d": predictions((3, count, 4)) / 4, "b": boxes((count, 4))}
        np.testing.assert_allclose(*(run(each, feeds)[0] for each in (model, fused)), rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize(("shape", "anchors"), [("[N,4]", "[N,4]"), ("[1,N,4]", "[1,N,4]"), ("[2,77,4]", "[1,77,4]")])
def test_swapped_output_of_any_rank(shape: str, anchors: str) -> None:
    model = efficientdet(shape=shape, anchors=anchors)
    fused, (finding,) = fuse_decode_bbox(model)
    assert (finding.fused, finding.checked) == (True, "onnxruntime")
    sizes = [[77 if dim == "N" else int(dim) for dim in each[1:-1].split(",")] for each in (shape, anchors)]
    feeds = {"d": predictions(sizes[0]) / 4, "b": boxes(sizes[1])}
    np.testing.assert_allclose(*(run(each, feeds)[0] for each in (model, fused)), rtol=1e-4, atol=1e-2)


def test_order_that_only_some_boxes_have_is_refused() -> None:
    """The first of seven boxes is swapped, and the others are not."""
    model = efficientdet(shape="[7,4]", anchors="[7,4]")
    model.graph.node[-1].output[0] = "swapped"
    picked = np.arange(28).reshape(7, 4)
    picked[1:] = picked[1:, [1, 0, 3, 2]]
    values = {"flat": np.array([-1]), "picked": picked}
    model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in values.items())
    model.graph.node.append(helper.make_node("Reshape", ["swapped", "flat"], ["row"]))
    model.graph.node.append(helper.make_node("Gather", ["row", "picked"], ["out"]))
    (finding,) = find_decode_bbox(model)
    assert finding.decoded_boxes != "out" or not finding.fused


@pytest.mark.parametrize("end", ["Reshape_2", "boxes"])
def test_swapped_output_of_a_graph_def(end: str, execute: Any) -> None:
    """The corners are swapped before the last Reshape, so that the graph holds no boxes in the other order."""
    before = graph_def("pos_concat_last_axis")
    scope = "rpn/decode_bbox_target"
    last = next(node for node in before.node if node.name == f"{scope}/Reshape_2")
    for key, value in (("order", [1, 0, 3, 2]), ("axis", 2)):
        node = before.node.add(name=f"{scope}/swap/{key}", op="Const")
        node.attr["dtype"].type = 3
        set_tensor(node.attr["value"].tensor, np.array(value, np.int32))
    swap = before.node.add(name=f"{scope}/swap", op="GatherV2")
    swap.input.extend([last.input[0], f"{scope}/swap/order", f"{scope}/swap/axis"])
    for key, kind in (("Tparams", 1), ("Tindices", 3), ("Taxis", 3)):
        swap.attr[key].type = kind
    last.input[0] = swap.name
    if end != "boxes":
        del before.node[[node.name for node in before.node].index("boxes")]
    data, (finding,) = fuse_decode_bbox(before.SerializeToString())
    assert (finding.fused, finding.decoded_boxes) == (True, f"{scope}/Reshape_2:0")
    after = parse(data)
    (gather,) = (node for node in after.node if node.op == "GatherV2")
    assert gather.name == last.name
    output = "boxes" if end == "boxes" else last.name
    feeds, _ = golden("pos_concat_last_axis")
    left, right = (execute(each, feeds, [output])[0] for each in (before, after))
    np.testing.assert_array_equal(left, right)
