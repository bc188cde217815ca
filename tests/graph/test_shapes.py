"""What is known of the shapes in an ONNX model: what follows from its inputs, and nothing that could be otherwise."""

from typing import Any

import numpy as np
import onnx
import pytest

from detops.graph.model._onnx_io import read_graphs

from .models import run

BODY = """() => (float[A,B,C,D] {out}) {{
    {out}_all = mmcv.MMCVInstanceNormalization(y, s, s)
    {out} = Relu({out}_all)
}}"""
BRANCHES = f"then_branch = yes_body {BODY.format(out='then')}, else_branch = no_body {BODY.format(out='otherwise')}"
MODEL = f"""<ir_version: 8, opset_import: ["": 17, "mmcv": 1, "other": 1]>
main (float[N,3,H,W] x, float[3] s, float[K,5] rois, bool yes) => (float picked) {{
    y = mmcv.MMCVInstanceNormalization(x, s, s)
    largest, places = mmcv.cummax<dim=1>(y)
    bins = mmcv.MMCVRoiAlign<output_height=7, output_width=7>(largest, rois)
    flat = Flatten(bins)
    foreign = other.MMCVRoiAlign(largest, rois)
    behind = Relu(foreign)
    picked = If<{BRANCHES}>(yes)
}}"""


def test_operators_of_detops_pass_ranks_on() -> None:
    main, *bodies = read_graphs(onnx.parser.parse_model(MODEL), None)
    shapes = {name: main.info(name).shape for name in ("y", "largest", "places", "bins", "behind")}
    four = (None,) * 4
    assert shapes == {"y": four, "largest": four, "places": four, "bins": four, "behind": None}
    assert main.info("flat").shape == (None, None)
    assert str(main.info("places").dtype) == "int64"
    assert [body.info(f"{name}_all").shape for body, name in zip(bodies, ("otherwise", "then"), strict=True)] == [
        four,
        four,
    ]


def test_a_function_of_the_model_says_what_its_nodes_give() -> None:
    """A model may define an operator of detops otherwise, and then its definition is what counts."""
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17, "mmcv": 1]>
        main (float[N,3,H,W] x, float[K,5] rois) => (float out) { bins = mmcv.MMCVRoiAlign(x, rois) out = Relu(bins) }
        <domain: "mmcv", opset_import: ["": 17]>
        MMCVRoiAlign (x, rois) => (bins) { bins = Flatten(x) }""")
    (graph,) = read_graphs(model, None)
    assert len(graph.info("bins").shape or ()) == 2


def test_claims_of_the_file_count_where_it_is_the_only_source() -> None:
    """`rows` has the rank of its form, which an input decides; `found` comes from an operator that only the file knows.

    The file says (N, 4) of all, also of the graph's outputs.
    """
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17, "other": 1]>
        main (float[N] x, int64[R] form, bool yes) => (float[N,4] out) {
            rows = Reshape(x, form)
            found = other.Find(x)
            behind = Relu(found)
            out = If<then_branch = a () => (float[N,4] one) { one = Relu(rows) },
                     else_branch = b () => (float[N,4] two) { two = Identity(rows) }>(yes)
            last = Relu(out)
        }""")
    for name in ("rows", "found"):
        model.graph.value_info.append(onnx.helper.make_tensor_value_info(name, 1, ["N", 4]))
    main, *bodies = read_graphs(model, None)
    shapes = {name: main.info(name).shape for name in ("rows", "found", "behind", "out", "last")}
    assert shapes == {"rows": None, "found": (None, 4), "behind": (None, 4), "out": None, "last": None}
    assert [body.info(name).shape for body, name in zip(bodies, ("two", "one"), strict=True)] == [None, None]


def test_what_a_loop_carries_may_change_its_shape() -> None:
    """What the file says of a body's inputs need not hold after the first turn; a Scan's rows come from outside."""
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]>
        main (float[N,4] x, float[T,N,4] rows, int64 n, bool yes) => (float[A,B] out, float[T,N,4] scanned) {
            out = Loop<body = turn (int64 i, bool go, float[6,4] state) => (bool on, float[6,4] next) {
                on = Identity(go)
                next = Unsqueeze(state, i)
            }>(n, yes, x)
            scanned = Scan<num_scan_inputs = 1, body = each (float[6,4] row) => (float[6,4] made) {
                made = Relu(row)
            }>(rows)
        }""")
    main, scan, loop = read_graphs(model, None)
    assert (main.info("out").shape, main.info("scanned").shape) == (None, (None, None, 4))
    assert [loop.info(name).shape for name in ("state", "next")] == [None, None]
    assert [scan.info(name).shape for name in ("row", "made")] == [(None, 4), (None, 4)]


@pytest.mark.parametrize(
    "model",
    [
        """<ir_version: 8, opset_import: ["other": 1]> main (float[N,4] x) => (float[N,4] out) { out = Relu(x) }""",
        """<ir_version: 8, opset_import: ["": 17, "f": 1]> main (float[N,4] x) => (float[N,4] out) { out = f.g(x) }
        <domain: "f", opset_import: ["": 17, "f": 1]> g (x) => (y) { y = f.g(x) }""",
    ],
    ids=["no version of the operators", "a function that calls itself"],
)
def test_model_that_breaks_inference_keeps_the_shapes_of_its_inputs(model: str) -> None:
    (graph,) = read_graphs(onnx.parser.parse_model(model), None)
    assert (graph.info("x").shape, graph.info("out").shape) == ((None, 4), None)


def test_a_slice_keeps_what_it_does_not_cut() -> None:
    """Where the axes are constants; `twos` is made by an operator that has a tensor among its attributes too."""
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17, "other": 1]>
        main (float[N,8,4] x, int64[1] from, int64[1] to, int64[1] length) => (float out) {
            last = Constant<value = int64[1] {-1}>()
            middle = Slice(x, from, to, last)
            twos = ConstantOfShape<value = int64[1] {2}>(length)
            strange = Slice(x, from, to, twos)
            foreign = other.Slice(x, from, to, last)
            out = ReduceSum(x)
        }""")
    (graph,) = read_graphs(model, None)
    shapes = [graph.info(name).shape for name in ("middle", "strange", "foreign")]
    assert shapes == [(None, 8, None), (None, None, None), None]


def test_operators_of_onnxruntimes_optimizer_pass_shapes_on() -> None:
    """What it has fused has the shape of its first operator; of images in blocks of channels, the rank is known."""
    opsets = '"": 17, "com.microsoft": 1, "com.microsoft.nchwc": 1'
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: [{opsets}]>"""
        """main (float[1,3,H,W] x, float[12,3,1,1] k, float[N,8] rows, float[8,4] w) => (float out) {
            y = com.microsoft.FusedConv<activation = "Relu">(x, k)
            z = com.microsoft.FusedGemm<activation = "Relu">(rows, w)
            blocks = com.microsoft.nchwc.ReorderInput(y)
            more = com.microsoft.nchwc.Conv(blocks, k)
            plain = com.microsoft.nchwc.ReorderOutput<channels = 12>(more)
            behind = Relu(plain)
            out = ReduceSum(behind)
        }"""
    )
    (graph,) = read_graphs(model, None)
    shapes = {name: graph.info(name).shape for name in ("y", "z", "blocks", "more", "plain", "behind")}
    four, twelve = (None,) * 4, (None, 12, None, None)
    assert shapes == {
        "y": (1, 12, None, None),
        "z": (None, 4),
        "blocks": four,
        "more": four,
        "plain": twelve,
        "behind": twelve,
    }


@pytest.mark.parametrize(
    ("factors", "attributes", "shape"),
    [
        ("float[N,8] x, float[8,4] y", "alpha = 0.5", (None, 4)),
        ("float[8,N] x, float[4,8] y", "transA = 1, transB = 1", (None, 4)),
        ("float[B,2,8,N] x, float[2,8,4] y", "transA = 1", (None, 2, None, 4)),
        ("float[5,1,N,8] x, float[2,4,8] y", "transB = 1", (5, 2, None, 4)),
        ("float[B,N,8] x, float[B,8,4] y", "transBatchA = 1", None),
        ("float[8] x, float[8,4] y", "", None),
    ],
)
def test_products_that_onnxruntime_has_fused_have_a_shape(factors: str, attributes: str, shape: Any) -> None:
    """A scale and transposes go into the product, also of batches; what the file says of it isn't asked."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]> main ({factors}) => (float[7,7,7] out)
        <float[7,7,7] z> {{ z = com.microsoft.FusedMatMul{f"<{attributes}>" if attributes else ""}(x, y)
        grown = com.microsoft.FastGelu(z)
        out = Relu(grown) }}"""
    )
    (graph,) = read_graphs(model, None)
    assert (graph.info("z").shape, graph.info("grown").shape) == (shape, shape)
    if shape is not None:
        model.graph.output[0].type.tensor_type.ClearField("shape")
        del model.graph.value_info[:]
        (out,) = run(model, {value.name: np.zeros(filled(value), np.float32) for value in model.graph.input})
        assert [known in (None, dim) for known, dim in zip(shape, out.shape, strict=True)] == [True] * out.ndim


def filled(value: onnx.ValueInfoProto) -> list[int]:
    """Return the shape that an input declares, with open sizes of 5."""
    return [dim.dim_value or 5 for dim in value.type.tensor_type.shape.dim]
