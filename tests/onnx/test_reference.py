"""The evaluator's operators of ONNX's own domain."""

import numpy as np
import onnx
import pytest
from onnx import helper, parser
from onnx.reference import ReferenceEvaluator

import detops
import detops.onnx
from detops.onnx._compositions import COMPOSITIONS
from detops.onnx._table import OPERATORS, find
from tests.onnx.models import run_reference
from tests.support.onnx_nodes import arrays, node_cases

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
    assert set(classes) == {(operator.domain, operator.name) for operator in (*OPERATORS, *COMPOSITIONS)}


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


def test_a_result_without_a_name_is_nowhere() -> None:
    node = helper.make_node("cummax", ["x"], ["", "i"], domain="mmcv", dim=0)
    clip = helper.make_node("Clip", ["x", "", ""], ["y"])  # bounds that are absent stay so
    values = [helper.make_tensor_value_info(name, 1, [3]) for name in ("x", "y")]
    graph = helper.make_graph(
        [node, clip], "g", values[:1], [values[1], helper.make_tensor_value_info("i", onnx.TensorProto.INT64, [3])]
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mmcv", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    y, i = run_reference(model, {"x": np.array([1, 3, 2], np.float32)})
    assert (y.tolist(), i.tolist()) == ([1, 3, 2], [0, 1, 1])


def test_attributes_of_a_function_reach_onnx_own_implementation() -> None:
    function = parser.parse_function("""<domain: "local", opset_import: ["": 20]>
    sample <how> (x, grid) => (y) { y = GridSample <mode: string = @how> (x, grid) }""")
    feeds = {"x": np.arange(4).reshape(1, 1, 4), "grid": np.full((1, 1, 1), 0.4, np.float32)}  # rank 3 is ONNX's alone
    evaluator = ReferenceEvaluator(function, new_ops=detops.onnx.reference_ops())
    (got,) = evaluator.run(None, feeds, attributes={"how": "nearest"})
    assert got.tolist() == [[[2]]]


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


FAR = ("float16", "float32", "float64", "bfloat16", "int8", "int32", "int64", "uint8", "uint64", "bool", "complex64")


def default_domain_nodes() -> dict[str, tuple[str, int, list[tuple[str, object]], dict[str, object]]]:
    """Nodes of the default domain by name: operator, opset, inputs (T: cast to each type) and attributes."""
    x = np.arange(16).reshape(1, 1, 4, 4) % 5
    grids = {rank: np.full((1, *(2,) * (rank - 2), rank - 2), 0.25, np.float32) for rank in (3, 4, 5, 6)}
    found: dict[str, tuple[str, int, list[tuple[str, object]], dict[str, object]]] = {}
    for rank, opset in ((3, 20), (4, 16), (4, 20), (4, 22), (5, 20), (6, 22)):
        volume = np.arange(3 ** (rank - 2)).reshape(1, 1, *(3,) * (rank - 2)) % 7
        # ONNX's evaluator knows the other two by their names in later versions only.
        modes = ("nearest",) if opset == 16 else ("linear", "nearest", "cubic")
        for mode in modes:
            found[f"GridSample-{opset}-rank {rank}-{mode}"] = (
                "GridSample",
                opset,
                [("T", volume), ("float", grids[rank])],
                {"mode": mode},
            )
    rois = np.array([[0, 0, 3, 3]])
    for opset in (10, 16, 22):
        inputs = [("T", x), ("T", rois), ("int64", np.zeros(1, np.int64))]
        found[f"RoiAlign-{opset}"] = ("RoiAlign", opset, inputs, {"output_height": 2, "output_width": 2})
    norm = [("T", x), ("T", np.ones(1)), ("T", np.zeros(1))]
    for epsilon in (0.0, 1e-5):
        found[f"InstanceNormalization-{epsilon}"] = ("InstanceNormalization", 22, norm, {"epsilon": epsilon})
    weight, offset = np.ones((1, 1, 2, 2)), np.zeros((1, 8, 3, 3))
    found["DeformConv"] = ("DeformConv", 22, [("T", x), ("T", weight), ("T", offset)], {})
    index, updates = np.array([[0], [2], [0]]), np.arange(12).reshape(3, 4) % 2
    for opset, reductions in ((13, [None]), (16, [None, "none", "add", "mul"]), (18, ["add", "mul", "min", "max"])):
        for reduction in reductions:
            attributes = {} if reduction is None else {"reduction": reduction}
            inputs = [("T", x[0, 0]), ("int64", index), ("T", updates)]
            found[f"ScatterND-{opset}-{reduction}"] = ("ScatterND", opset, inputs, attributes)
    boxes, scores = np.array([[[0, 0, 1, 1], [0, 0, 1, 1], [2, 2, 3, 3]]]), np.array([[[3, 2, 1]]])
    # ONNX's evaluator takes no node without the last three.
    limits = [("int64", np.array([3])), ("float", np.array([0.5], np.float32)), ("float", np.array([0], np.float32))]
    found["NonMaxSuppression"] = ("NonMaxSuppression", 11, [("T", boxes), ("T", scores), *limits], {})
    return found


NODES = default_domain_nodes()


@pytest.mark.parametrize("dtype", [*FAR, "text"])
@pytest.mark.parametrize("name", NODES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_nothing_is_taken_away(name: str, dtype: str) -> None:
    """What ONNX's own evaluator runs, it runs with our operators too, and says the same."""
    import ml_dtypes

    operator, opset, inputs, attributes = NODES[name]
    kind = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype("object" if dtype == "text" else dtype)
    arrays = [
        np.asarray(value).astype(str).astype(object)
        if declared == "T" and dtype == "text"
        else np.asarray(value).astype(kind if declared == "T" else np.asarray(value).dtype)
        for declared, value in inputs
    ]
    names = [f"i{number}" for number in range(len(arrays))]
    element = onnx.TensorProto.STRING if dtype == "text" else helper.np_dtype_to_tensor_dtype(kind)
    values = [helper.make_tensor_value_info(each, element, None) for each in names]
    graph = helper.make_graph(
        [helper.make_node(operator, names, ["y"], **attributes)],
        "g",
        values,
        [helper.make_tensor_value_info("y", element, None)],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    feeds = dict(zip(names, arrays, strict=True))
    try:
        (wanted,) = ReferenceEvaluator(proto).run(None, feeds)
    except Exception:
        assert dtype != "float32", "what every operator takes"
        return
    (got,) = run_reference(proto, feeds)
    assert got.shape == wanted.shape
    if dtype == "text":
        assert got.tolist() == wanted.tolist()
    elif operator == "NonMaxSuppression":
        np.testing.assert_array_equal(got, wanted)
    elif "float" in dtype:
        if name == "RoiAlign-10":  # ONNX's own shifts by half a pixel, which version 10 does not: ours is right
            return
        np.testing.assert_allclose(got.astype(float), wanted.astype(float), rtol=2e-2, atol=2e-2)
    else:
        assert got.dtype == wanted.dtype
        np.testing.assert_array_equal(got, wanted)
