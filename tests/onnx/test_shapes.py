"""Shapes that the native library infers are those that runs give, whatever the sizes are."""

import numpy as np
import onnx
import onnx.parser
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

import detops.onnx
from detops.onnx._table import NodeType
from tests.onnx.models import feeds, model, run_native
from tests.onnx.nodes import NATIVE, nodes, typed
from tests.onnx.test_cases import find


def with_shapes(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the shape of each result as a result: ONNX Runtime computes from what it has inferred."""
    for output in list(proto.graph.output):
        proto.graph.node.append(helper.make_node("Shape", [output.name], [f"{output.name}_shape"]))
        proto.graph.output.append(helper.make_tensor_value_info(f"{output.name}_shape", onnx.TensorProto.INT64, None))
    return proto


def are_right(results: list[np.ndarray]) -> bool:
    """Whether the last half of the results are the shapes of the first half."""
    half = len(results) // 2
    return [list(each.shape) for each in results[:half]] == [each.tolist() for each in results[half:]]


@pytest.mark.parametrize("operator", NATIVE, ids=lambda each: f"{each.title}-{min(each.versions)}")
def test_inferred_shapes_are_those_of_the_results(operator: NodeType) -> None:
    @settings(max_examples=60)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        inputs, attributes = typed(operator, data.draw(nodes(operator)), operator.combinations[0])
        proto = with_shapes(model(operator, inputs, attributes, named=True))
        for value, array in zip(proto.graph.input, feeds(operator, inputs).values(), strict=True):
            for dim, length in zip(value.type.tensor_type.shape.dim, array.shape, strict=True):
                if data.draw(st.integers(0, 3)) == 0:
                    dim.dim_value = length
                elif data.draw(st.integers(0, 3)) == 0:
                    dim.Clear()
        assert are_right(run_native(proto, feeds(operator, inputs)))

    check()


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 20_000])
@pytest.mark.parametrize(
    "known", [{}, {"boxes": 1}, {"boxes": 3}, {"classes": 2}, {"batches": 2, "classes": 1}], ids=str
)
@pytest.mark.parametrize("domain", ["mmdeploy", "detops"])
def test_a_limit_does_not_pass_for_a_size(domain: str, known: dict[str, int], limit: int) -> None:
    """One session for all sizes: neither a limit nor a size is a constant because it looks so at some of them."""
    operator = find(domain, "NonMaxSuppression")
    batches, classes = known.get("batches", 1), known.get("classes", 1)
    boxes, scores = np.zeros((batches, 1, 4), np.float32), np.zeros((batches, classes, 1), np.float32)
    proto = with_shapes(model(operator, [boxes, scores], {"max_output_boxes_per_class": limit}, named=True))
    for value, names in zip(
        proto.graph.input, (("batches", "boxes", ""), ("batches", "classes", "boxes")), strict=True
    ):
        for dim, name in zip(value.type.tensor_type.shape.dim, names, strict=True):
            if name in known:
                dim.dim_value = known[name]
    session = detops.onnx.session(proto)
    for count in [known["boxes"]] if "boxes" in known else [*range(6), 20_001]:
        boxes, scores = np.zeros((batches, count, 4), np.float32), np.ones((batches, classes, count), np.float32)
        results = session.run(None, {"boxes": boxes, "scores": scores})
        assert are_right(results)
        assert len(results[0]) == batches * classes * (min(limit, count) if limit else count)


def test_names_and_numbers_go_through() -> None:
    """What follows from the names of inputs is inferred as a name, also where checks need a number."""
    proto = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17, "mmcv": 1]>
        agraph (float[N, 4, H, W] x, float[N, 18, P, Q] o, float[6, 2, 3, 3] w, float[N, P, Q, 2] g)
            => (float y, float z, float u) {
            y = mmcv.MMCVDeformConv2d <stride = [1, 1], padding = [1, 1], dilation = [1, 1], groups = 2,
                deform_groups = 1> (x, o, w)
            z = mmcv.grid_sampler <interpolation_mode = 0, padding_mode = 0, align_corners = 0> (x, g)
            u = mmcv.MMCVDeformConv2d <stride = [2, 2], padding = [0, 0], dilation = [1, 1], groups = 2,
                deform_groups = 1> (x, o, w)
        }"""
    )
    for output in proto.graph.output:
        output.type.tensor_type.ClearField("shape")
    shapes = [output.shape for output in detops.onnx.session(proto).get_outputs()]
    assert shapes == [["N", 6, "P", "Q"], ["N", 4, "P", "Q"], ["N", 6, "P", "Q"]]
