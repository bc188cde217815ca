"""What a model says of itself is not a fact: what can be replaced at run time, and names that mean two things."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from detops.graph import find_decode_bbox, fuse_decode_bbox
from detops.graph.model._onnx_io import read_graphs

from .models import boxes, decode_model, predictions, run


def _as_input(model: onnx.ModelProto, name: str, shape: list[Any]) -> onnx.ModelProto:
    """Make a default of an initializer."""
    tensor = next(tensor for tensor in model.graph.initializer if tensor.name == name)
    model.graph.input.append(helper.make_tensor_value_info(name, tensor.data_type, shape))
    return model


def test_shape_of_a_default_may_be_another() -> None:
    """Anchors that can be replaced by others, of any number."""
    model = _as_input(decode_model({}, {"b": boxes((6, 4))}, inputs="float[N,4] d"), "b", ["M", 4])
    (graph,) = read_graphs(model, None)
    assert (graph.info("b").shape, graph.constant("b")) == ((None, 4), None)
    fused, (finding,) = fuse_decode_bbox(model)
    assert (finding.fused, finding.anchors) == (True, "b")
    feeds = {"d": predictions((9, 4)), "b": boxes((9, 4))}
    np.testing.assert_array_equal(run(model, feeds)[0], run(fused, feeds)[0])
    assert not find_decode_bbox(
        _as_input(decode_model({}, {"b": boxes((6, 4))}, inputs="float[N,4] d"), "b", ["M", "K"])
    )[0].fused


@pytest.mark.parametrize("name", ["form", "clip", "half"])
def test_value_of_a_default_is_no_constant(name: str) -> None:
    tensor = {"form": [3], "clip": [], "half": []}
    model = _as_input(decode_model(), name, tensor[name])
    assert not any(finding.fused for finding in find_decode_bbox(model))


def test_shape_inference_does_not_read_a_default() -> None:
    """The form of the predictions is one, and ONNX's data propagation would take its value for granted."""
    lines = {"rows": "shaped = Reshape(d, form_of_d)\nrows = Reshape(shaped, form)"}
    model = decode_model(lines, {"form_of_d": np.array([-1, 4])}, inputs="float[K] d, float[N,4] b")
    assert [finding.fused for finding in find_decode_bbox(model)] == [True]
    model = _as_input(model, "form_of_d", ["R"])
    (graph,) = read_graphs(model, None)
    assert graph.info("shaped").shape is None
    assert [finding.box_predictions for finding in find_decode_bbox(model)] == ["rows"]


def test_below_ir_version_4_an_initializer_is_a_constant() -> None:
    model = _as_input(decode_model(opset=11), "clip", [])
    model.ir_version = 3
    for tensor in model.graph.initializer:
        if tensor.name != "clip":
            model.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
    assert [finding.fused for finding in find_decode_bbox(model)] == [True]


def _in_a_branch(outer: dict[str, Any]) -> onnx.ModelProto:
    """Return a model with the decode, and its constants, in a branch; some of them are outside as well."""
    inner = decode_model()
    body = onnx.GraphProto(name="then")
    body.CopyFrom(inner.graph)
    del body.input[:]
    body.output[0].name = "result"
    body.node[-1].output[0] = "result"
    same = helper.make_node("Identity", ["d"], ["same"])
    other = helper.make_graph([same], "else", [], [helper.make_tensor_value_info("same", 1, ["N", 4])])
    node = helper.make_node("If", ["yes"], ["out"], then_branch=body, else_branch=other)
    yes = helper.make_tensor_value_info("yes", 9, [])
    constants = [numpy_helper.from_array(np.asarray(value), name) for name, value in outer.items()]
    graph = helper.make_graph([node], "main", [*inner.graph.input, yes], inner.graph.output, constants)
    return helper.make_model(graph, opset_imports=inner.opset_import, ir_version=8)


def test_name_that_hides_an_outer_one_is_not_believed() -> None:
    """ONNX Runtime has taken the outer one, and the inner one; neither is for us to choose."""
    assert [finding.fused for finding in find_decode_bbox(_in_a_branch({}))] == [True]
    model = _in_a_branch({"clip": np.float32(1)})
    fused, findings = fuse_decode_bbox(model)
    assert findings == []
    assert fused == model
    main = read_graphs(model, None)[0]
    assert main.info("out").shape is None
    assert main.readers["clip"], "what a body of the same name reads must not be taken for unread"


def test_constant_with_an_attribute_of_another_type_is_none() -> None:
    model = decode_model({"form": "clip = Constant<value_float = 4.0>()"})
    assert [finding.fused for finding in find_decode_bbox(model)] == [True]
    (attribute,) = model.graph.node[0].attribute
    attribute.CopyFrom(helper.make_attribute("value_float", 4))
    assert not any(finding.fused for finding in find_decode_bbox(model))
    attribute.CopyFrom(helper.make_attribute("value_float", 4.0))
    attribute.type = onnx.AttributeProto.INT
    assert not any(finding.fused for finding in find_decode_bbox(model))
