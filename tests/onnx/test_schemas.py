"""The operators as onnx knows them once they are registered."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import detops.onnx
from detops.demo import DATA
from detops.graph import _schema, fuse_decode_bbox
from detops.onnx._schemas import deregister_schemas
from detops.onnx._table import OPERATORS, NodeType, attribute_arguments, find
from docs import exported_nodes
from tests.graph.models import decode_model
from tests.onnx.models import feeds, model, run_reference
from tests.onnx.nodes import nodes, typed
from tests.onnx.test_report import opened

OURS = [operator for operator in OPERATORS if operator.domain]


@pytest.fixture(autouse=True)
def _registered() -> None:
    detops.onnx.register_schemas()
    detops.onnx.register_schemas()  # again: nothing changes


def checked(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the types and shapes that follow from its inputs, checked in full."""
    for output in proto.graph.output:
        output.ClearField("type")
    inferred = onnx.shape_inference.infer_shapes(proto, strict_mode=True)
    onnx.checker.check_model(inferred, full_check=True)
    return inferred


@pytest.mark.parametrize("operator", OURS, ids=lambda each: each.title)
def test_types_and_shapes_are_those_of_the_results(operator: NodeType) -> None:
    by_data = operator.family in ("nms", "non_max_suppression_padded", "soft_nms")  # how many boxes are selected

    @settings(max_examples=40)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        dtype = data.draw(st.sampled_from(["float16", "float32"]))
        types = data.draw(st.sampled_from([types for types in operator.combinations if dtype in types[0]]))
        inputs, attributes = typed(operator, data.draw(nodes(operator)), types)
        named = data.draw(st.booleans())
        proto = model(operator, inputs, attributes, named=named)
        inferred = checked(proto).graph.output
        with np.errstate(all="ignore"):
            results = run_reference(proto, feeds(operator, inputs))
        for said, result in zip(inferred, results, strict=True):
            tensor = said.type.tensor_type
            assert tensor.elem_type == onnx.helper.np_dtype_to_tensor_dtype(result.dtype)
            assert len(tensor.shape.dim) == result.ndim
            for dim, length in zip(tensor.shape.dim, result.shape, strict=True):
                assert dim.dim_value == length if dim.HasField("dim_value") else named or by_data

    check()


def has_schema(row: dict[str, Any]) -> bool:
    """Whether a node is one of an operator, and no composition."""
    return bool(row["domain"]) and find(row["domain"], row["operator"], 1) is not None


RUN = [row for row in exported_nodes.rows() if has_schema(row) and exported_nodes.runs(row)]


@pytest.mark.parametrize("row", RUN, ids=exported_nodes.title)
def test_what_exporters_write_is_valid(row: dict[str, Any]) -> None:
    inferred = checked(exported_nodes.model(row)).graph.output
    types = [onnx.helper.tensor_dtype_to_np_dtype(each.type.tensor_type.elem_type).name for each in inferred]
    assert types == row["outputs"]


def found_in(path: Path) -> list[int]:
    """The labels of the digits on the page of the demo."""
    image_module = pytest.importorskip("PIL.Image")
    session = opened(str(path))
    assert session is not None
    page = np.asarray(image_module.open(DATA / "page.png").convert("L"), np.float32)[None, None]
    boxes, scores, labels = session.run(["boxes", "scores", "labels"], {"image": page})
    assert len(boxes) == len(scores) == len(labels)
    return sorted(labels.tolist())


def test_a_detector_is_quantized(tmp_path: Path) -> None:
    from onnxruntime.quantization import quantize_dynamic

    quantize_dynamic(DATA / "digits.onnx", tmp_path / "quantized.onnx")
    operators = {node.op_type for node in onnx.load(tmp_path / "quantized.onnx").graph.node}
    assert operators & {"MatMulInteger", "ConvInteger", "DynamicQuantizeLinear"}
    assert found_in(tmp_path / "quantized.onnx") == found_in(DATA / "digits.onnx")


def test_a_detector_is_converted_to_half_precision(tmp_path: Path) -> None:
    from onnxruntime.transformers.float16 import convert_float_to_float16

    half = convert_float_to_float16(onnx.load(DATA / "digits.onnx"), keep_io_types=True)
    onnx.save(half, tmp_path / "half.onnx")
    assert onnx.TensorProto.FLOAT16 in {tensor.data_type for tensor in half.graph.initializer}
    assert found_in(tmp_path / "half.onnx") == found_in(DATA / "digits.onnx")


def test_the_fusion_has_the_attributes_of_the_table() -> None:
    plain = _schema.Parameters()
    wanted = {
        "decode_clip": plain.upper_bound,
        "lower_clip": plain.lower_bound,
        "scales": plain.scales,
        "means": plain.means,
        "anchor_form": plain.anchor_form,
        "offset": plain.offset,
        "axis": plain.axis,
    }
    few = ("decode_clip", "anchor_form", "offset", "axis")
    for name, names in ((_schema.DECODE_BBOX, few), (_schema.DECODE_BBOX_V2, tuple(wanted))):
        operator = find(_schema.DOMAIN, name, _schema.VERSION)
        assert operator is not None
        assert attribute_arguments(operator.attributes, {}) == {each: wanted[each] for each in names}
        assert tuple(each.name for each in operator.inputs) == _schema.INPUTS
        assert [result for result, _ in operator.outputs] == [_schema.OUTPUT]


def test_they_may_come_before_everything_else() -> None:
    """ONNX's evaluator, when it is imported, takes no name in two domains."""
    code = "import detops.onnx; detops.onnx.register_schemas(); import onnx.reference, onnxruntime.quantization"
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


def test_without_schemas_a_quantizer_knows_no_types(tmp_path: Path) -> None:
    """What the schemas are for."""
    from onnxruntime.quantization import quantize_dynamic

    deregister_schemas()
    with pytest.raises(RuntimeError, match="Unable to find data type"):
        quantize_dynamic(DATA / "digits.onnx", tmp_path / "quantized.onnx")


@pytest.mark.parametrize("opset", [17, 14])
def test_fused_models_are_valid(opset: int) -> None:
    """With old operator sets the node has an attribute that only the model's own function reads."""
    fused, (finding,) = fuse_decode_bbox(decode_model(opset=opset))
    assert finding.fused
    onnx.checker.check_model(fused, full_check=True)
