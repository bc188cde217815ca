"""The evaluator's operators of ONNX's own domain."""

import numpy as np
import onnx
import pytest
from onnx import helper, parser
from onnx.reference import ReferenceEvaluator

import detops
import detops.onnx
from detops.onnx._table import OPERATORS, find
from tests.onnx.models import run_reference
from tests.onnx_nodes import arrays, node_cases

NAMES = sorted({operator.name for operator in OPERATORS if operator.domain == ""})


@pytest.mark.parametrize("case", [case for name in NAMES for case in node_cases(name)], ids=lambda case: case.name)
def test_onnx_node_cases(case) -> None:
    evaluator = ReferenceEvaluator(case.model, new_ops=detops.onnx.reference_ops())
    for inputs, outputs in arrays(case):
        feeds = dict(zip((each.name for each in case.model.graph.input), inputs, strict=True))
        for got, wanted in zip(evaluator.run(None, feeds), outputs, strict=True):
            assert got.dtype == wanted.dtype
            np.testing.assert_allclose(got, wanted, rtol=case.rtol, atol=max(case.atol, 1e-5))


def test_every_operator_is_there_once() -> None:
    classes = [(each.op_domain, each.__name__) for each in detops.onnx.reference_ops()]
    assert sorted(set(classes)) == sorted(classes)
    assert set(classes) == {(operator.domain, operator.name) for operator in OPERATORS}


def test_roi_align_means_its_opset() -> None:
    rng = np.random.default_rng(0)
    x, rois = rng.random((1, 1, 6, 6), np.float32), np.array([[1, 1, 4.5, 4.5]], np.float32)
    feeds = {"x": x, "r": rois, "b": np.zeros(1, np.int64)}
    for opset, aligned in ((10, False), (15, False), (16, True), (22, True)):
        text = "(float[1, 1, 6, 6] x, float[K, 4] r, int64[K] b) => (float[K, 1, 1, 1] y) { y = RoiAlign (x, r, b) }"
        model = parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> agraph {text}')
        wanted = detops.roi_align(x, rois, 1, aligned=aligned, batch_indices=feeds["b"])
        np.testing.assert_array_equal(run_reference(model, feeds)[0], wanted)


def test_max_roi_pool_runs() -> None:
    x, rois = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4), np.array([[0, 0, 0, 3, 3]], np.float32)
    text = "(float[1, 1, 4, 4] x, float[K, 5] r) => (float y) { y = MaxRoiPool <pooled_shape = [2, 2]> (x, r) }"
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> agraph {text}')
    assert run_reference(model, {"x": x, "r": rois})[0].tolist() == [[[[5, 7], [13, 15]]]]


def test_absent_inputs_in_the_middle() -> None:
    boxes = np.array([[[0, 0, 1, 1], [0, 0, 1, 1.1], [2, 2, 3, 3]]], np.float32)
    scores = np.array([[[0.9, 0.8, 0.1]]], np.float32)
    node = helper.make_node("NonMaxSuppression", ["b", "s", "n", "", "t"], ["y"])
    values = [helper.make_tensor_value_info(name, 1, None) for name in ("b", "s", "t")]
    values.append(helper.make_tensor_value_info("n", onnx.TensorProto.INT64, None))
    output = helper.make_tensor_value_info("y", onnx.TensorProto.INT64, None)
    model = helper.make_model(
        helper.make_graph([node], "g", values, [output]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    feeds = {"b": boxes, "s": scores, "n": np.array([3]), "t": np.array([0.5], np.float32)}
    assert run_reference(model, feeds)[0].tolist() == [[0, 0, 0]]


def test_scatter_nd_takes_text() -> None:
    operator = find("", "ScatterND", 18)
    from detops.onnx._reference import run

    (got,) = run(operator, [np.array(["a", "b"]), np.array([[1]]), np.array(["c"])], {})
    assert got.tolist() == ["a", "c"]


@pytest.mark.parametrize(
    ("text", "feeds", "error", "message"),
    [
        (
            "(float[N] x) => (float[N] y, int64[N] i) { y, i = mmcv.cummax (x) }",
            {"x": np.ones(2, np.float32)},
            ValueError,
            "mmcv::cummax: attribute dim: expected a value, got none",
        ),
        (
            "(float[N] x) => (float[N] y, int64[N] i) { y, i = mmcv.cummax <dim = 4> (x) }",
            {"x": np.ones(2, np.float32)},
            ValueError,
            "mmcv::cummax: axis: expected an axis from -1 to 0, got 4",
        ),
        (
            "(float[N, C, H, W] x, float g) => (float y) { y = mmcv.grid_sampler <padding_mode = 7> (x, g) }",
            {"x": np.ones((1, 1, 2, 2), np.float32), "g": np.ones((1, 1, 1, 2), np.float32)},
            ValueError,
            "mmcv::grid_sampler: attribute padding_mode: expected one of 0, 1, 2, got 7",
        ),
        (
            "(float[N] x, int64[K, 1] i, float[K] u) => (float[N] y) { y = ScatterND (x, i, u) }",
            {"x": np.ones(2, np.float32), "i": np.array([[5]]), "u": np.ones(1, np.float32)},
            IndexError,
            "ai.onnx::ScatterND: ",
        ),
    ],
)
def test_errors_name_the_operator(text: str, feeds, error, message: str) -> None:
    model = parser.parse_model('<ir_version: 8, opset_import: ["": 18, "mmcv": 1]> agraph ' + text)
    with pytest.raises(error) as caught:
        run_reference(model, feeds)
    assert str(caught.value).startswith(message)
