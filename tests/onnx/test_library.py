"""The native library: its table, its layout in memory, its callbacks, and how it behaves over time and threads."""

import re
import threading
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, parser

import detops
import detops.onnx
from detops.onnx import _generated, _library
from detops.onnx._table import OPERATORS, REQUIRED
from tests.onnx.models import model, run_native, run_reference
from tests.onnx.nodes import NATIVE

SOURCES = Path(__file__).parents[2] / "src" / "detops" / "onnx"
CUMMAX = """<ir_version: 8, opset_import: ["": 17, "mmcv": 1]>
agraph (float[N] x) => (float[N] y, int64[N] i) { y, i = mmcv.cummax <dim = 0> (x) }"""


def find(domain: str, name: str):
    return next(operator for operator in OPERATORS if (operator.domain, operator.name) == (domain, name))


def test_six_lines_run_a_model(tmp_path: Path) -> None:
    onnx.save(parser.parse_model(CUMMAX), tmp_path / "model.onnx")
    options = onnxruntime.SessionOptions()
    options.register_custom_ops_library(detops.onnx.library_path())
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", options, providers=["CPUExecutionProvider"])
    values, indices = session.run(None, {"x": np.array([1, 3, 2], np.float32)})
    assert values.tolist() == [1, 3, 3]
    assert indices.tolist() == [0, 1, 1]


def test_layout_of_the_struct() -> None:
    # Byte offsets in OrtCustomOp of ONNX Runtime's C interface, version 17, on a 64-bit machine.
    assert _library._native().layout() == {
        "create_kernel": 8,
        "kernel_compute": 64,
        "kernel_destroy": 72,
        "get_input_characteristic": 80,
        "get_input_memory_type": 96,
        "create_kernel_v2": 136,
        "kernel_compute_v2": 144,
        "infer_output_shape": 152,
        "get_end_version": 168,
        "size": 176,
    }


def test_the_native_table_is_the_table() -> None:
    native = {(row["domain"], row["name"]): row for row in _library._native().described()}
    assert native.keys() == {(operator.domain, operator.name) for operator in NATIVE}
    for operator in NATIVE:
        row = native[operator.domain, operator.name]
        assert row["inputs"] == [(each.name, each.dtype, each.required) for each in operator.inputs]
        assert row["outputs"] == [dtype for _, dtype in operator.outputs]
        assert row["types"] == operator.combinations
        assert row["attributes"] == [
            (each.name, each.kind, each.default is REQUIRED, list(each.spellings)) for each in operator.attributes
        ]


@pytest.mark.parametrize(
    "operator",
    [each for each in OPERATORS if each.domain == "" and not each.name.startswith("MMCV")],
    ids=lambda each: each.title,
)
def test_the_default_domain_is_as_onnx_defines_it(operator) -> None:
    for version in operator.versions:
        schema = onnx.defs.get_schema(operator.name, version, "")
        assert schema.since_version == version
        assert [each.name for each in operator.inputs] == [each.name for each in schema.inputs]
        optional = onnx.defs.OpSchema.FormalParameterOption.Optional
        assert [not each.required for each in operator.inputs] == [each.option == optional for each in schema.inputs]
        assert {each.name for each in operator.attributes} == set(schema.attributes)
        for each in operator.attributes:
            default = schema.attributes[each.name].default_value
            if default.name and each.name != "mode":
                value = helper.get_attribute_value(default)
                wanted = value.decode() if isinstance(value, bytes) else value
                assert each.default == (pytest.approx(wanted) if isinstance(wanted, float) else wanted)


def test_every_operator_has_one_form_for_onnxruntime() -> None:
    names = [(operator.domain, operator.name) for operator in NATIVE]
    assert len(names) == len(set(names))


def test_callbacks_hold_no_python(tmp_path: Path) -> None:
    """Whatever ONNX Runtime calls is C alone: no function but those that fill the table may touch Python."""
    from Cython.Build.Dependencies import cythonize_one
    from Cython.Compiler.Main import CompilationOptions, default_options

    _generated.write(tmp_path)
    translated = tmp_path / "_native.c"
    options = CompilationOptions(
        default_options,
        include_path=[str(SOURCES.parent / "_cython"), str(tmp_path)],
        compiler_directives={"language_level": 3, "boundscheck": False, "wraparound": False, "cdivision": True},
        output_file=str(translated),
    )
    cythonize_one(str(SOURCES / "_native.pyx"), str(translated), None, True, options, raise_on_failure=True)
    bodies = _c_functions(translated.read_text())
    wanted = {
        "kernel_compute",
        "create_kernel",
        "infer_output_shape",
        "parallel_for_session",
        "add_groups",
        "add_group",
    }
    assert wanted <= bodies.keys()
    assert sum("compute_" in name or "plan_" in name for name in bodies) >= 14
    for name, body in bodies.items():
        assert not re.search(r"\bPy(?!_ssize_t)[A-Z_]|\b__Pyx_|\bGIL\b", body), name


def _c_functions(text: str) -> dict[str, str]:
    """The bodies of the module's own C functions that run without the GIL, by the names that they have in Cython."""
    defined = re.compile(r"^(?:static|__PYX_EXTERN_C)[^;{}]*?\b(\w+)\([^;{}]*\)\s*\{\n(.*?)^\}", re.M | re.S)
    found = {}
    for name, body in defined.findall(text):
        own = re.fullmatch(r"__pyx_f_6detops_4onnx_7_native_(\w+)|(RegisterCustomOps)", name)
        if own and not (own[1] or "").startswith("_"):  # _define_row and others fill the table
            found[own[1] or own[2]] = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    return found


def test_domains_are_chosen() -> None:
    proto = parser.parse_model(CUMMAX)
    with pytest.raises(Exception, match="cummax"):
        detops.onnx.session(proto, domains=("detops",))
    assert detops.onnx.session(proto, domains=("mmcv",)).run(["i"], {"x": np.ones(2, np.float32)})[0].tolist() == [0, 1]
    with pytest.raises(ValueError, match="domains: expected some of '', 'mmcv', 'mmdeploy', 'detops', got 'mmdet'"):
        detops.onnx.library_path(("mmdet",))


def test_options_may_serve_many_sessions() -> None:
    options = onnxruntime.SessionOptions()
    for _ in range(3):
        session = detops.onnx.session(parser.parse_model(CUMMAX), sess_options=options)
    assert session.run(["y"], {"x": np.array([2, 1], np.float32)})[0].tolist() == [2, 2]


@pytest.mark.parametrize("shape", ["3, 5", "N, M"])
def test_shapes_are_inferred(shape: str) -> None:
    proto = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17, "mmcv": 1, "detops": 1]>
        agraph (float[{shape}] x, float[{shape}, 8] t, float[{shape}, 4] a, float[K, 5] r, float[2, C, H, W] f)
            => (float[?, ?] y, float[?, ?, ?] b, float[?, ?, ?, ?] p) {{
            y, i = mmcv.cummax <dim = 0> (x)
            b = detops.DecodeBboxV2 (t, a)
            p = mmcv.MMCVRoiAlign <output_height = 3, output_width = 4> (f, r)
        }}""".replace("float[?, ?] y", "float y")
        .replace("float[?, ?, ?] b", "float b")
        .replace("float[?, ?, ?, ?] p", "float p")
    )
    for output in proto.graph.output:
        output.type.tensor_type.ClearField("shape")
    shapes = [output.shape for output in detops.onnx.session(proto).get_outputs()]
    rows = [int(part) if part.isdigit() else part for part in shape.split(", ")]
    assert shapes == [rows, [*rows, 8], ["K", "C", 3, 4]]


def test_a_limit_does_not_pass_for_a_shape() -> None:
    boxes, scores = np.zeros((1, 2, 4), np.float32), np.zeros((1, 1, 2), np.float32)
    proto = model(find("detops", "NonMaxSuppression"), [boxes, scores], {"max_output_boxes_per_class": 5}, named=True)
    (got,) = run_native(proto, {"boxes": boxes, "scores": scores})
    assert got.shape == (2, 3)


BAD = [
    ("mmcv", "cummax", ["x"], {}, "mmcv::cummax: attribute dim: expected a value, got none"),
    ("mmcv", "cummax", ["x"], {"dim": 7}, "mmcv::cummax: dim: expected an axis from -2 to 1, got 7"),
    ("mmcv", "cummax", ["x"], {"dim": 1.5}, "mmcv::cummax: attribute dim: "),
    (
        "mmcv",
        "grid_sampler",
        ["map", "x"],
        {},
        "mmcv::grid_sampler: grid: expected shape (N, out_H, out_W, 2) as x, got (3, 4)",
    ),
    (
        "mmcv",
        "grid_sampler",
        ["map", "grid"],
        {"interpolation_mode": 9},
        "mmcv::grid_sampler: attribute interpolation_mode: ",
    ),
    (
        "mmcv",
        "MMCVRoiAlign",
        ["map", "rois"],
        {"output_height": 1},
        "mmcv::MMCVRoiAlign: attribute output_width: expected a",
    ),
    (
        "mmcv",
        "MMCVRoiAlign",
        ["map", "x"],
        {"output_height": 1, "output_width": 1},
        "mmcv::MMCVRoiAlign: rois: expected shape (num_rois, 5), got (3, 4)",
    ),
    (
        "mmcv",
        "MMCVRoiAlign",
        ["map", "rois"],
        {"output_height": 1, "output_width": 0},
        "mmcv::MMCVRoiAlign: output_width: expected at least 1, got 0",
    ),
    (
        "mmcv",
        "MMCVRoiAlign",
        ["map", "rois"],
        {"output_height": 1, "output_width": 1, "mode": "median"},
        "mmcv::MMCVRoiAlign: attribute mode: got a value that the operator does not know",
    ),
    (
        "mmcv",
        "MMCVRoiAlign",
        ["map", "far"],
        {"output_height": 1, "output_width": 1},
        "mmcv::MMCVRoiAlign: rois: expected whole batch indices in [0, 1), got 3 in row 0",
    ),
    (
        "mmcv",
        "MMCVRoiAlign",
        ["map", "large"],
        {"output_height": 1, "output_width": 1},
        "mmcv::MMCVRoiAlign: rois: expected at most 16777216 points to sample in a roi, got more in row 0",
    ),
    (
        "mmcv",
        "MMCVDeformConv2d",
        ["map", "x", "map"],
        {"stride": [1, 0]},
        "mmcv::MMCVDeformConv2d: stride: expected at least 1, got 1, 0",
    ),
    (
        "detops",
        "DecodeBbox",
        ["x", "rois"],
        {},
        "detops::DecodeBbox: anchors: expected shape that of box_predictions with 4 coordinates, or its last axes, "
        "got (1, 5)",
    ),
    (
        "detops",
        "DecodeBboxV2",
        ["x", "x"],
        {"offset": 2},
        "detops::DecodeBboxV2: offset: expected 0 or 1, got 2",
    ),
    ("detops", "DecodeBbox", ["x", "x"], {"anchor_form": "middle"}, "detops::DecodeBbox: attribute anchor_form: "),
    ("mmcv", "NoSuchOperator", ["x"], {}, "NoSuchOperator"),
]
ARRAYS = {
    "x": np.zeros((3, 4), np.float32),
    "map": np.zeros((1, 1, 2, 2), np.float32),
    "grid": np.zeros((1, 1, 1, 2), np.float32),
    "rois": np.zeros((1, 5), np.float32),
    "far": np.full((1, 5), 3, np.float32),
    "large": np.array([[0, 0, 0, 9e5, 9e5]], np.float32),
}


@pytest.mark.parametrize("named", [False, True], ids=["known", "named"])
@pytest.mark.parametrize(("domain", "name", "inputs", "attributes", "message"), BAD)
def test_bad_models_name_the_cause(domain, name, inputs, attributes, message, named) -> None:
    names = [f"i{number}" for number in range(len(inputs))]
    values = [
        helper.make_tensor_value_info(
            each, 1, [f"{each}{axis}" if named else length for axis, length in enumerate(ARRAYS[array].shape)]
        )
        for each, array in zip(names, inputs, strict=True)
    ]
    output = onnx.ValueInfoProto(
        name="y", type=onnx.TypeProto(tensor_type=onnx.TypeProto.Tensor(elem_type=onnx.TensorProto.FLOAT))
    )
    node = helper.make_node(name, names, ["y"], domain=domain, **attributes)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(domain, 1)]
    proto = helper.make_model(helper.make_graph([node], "g", values, [output]), opset_imports=opsets, ir_version=8)
    with pytest.raises(Exception, match=re.escape(message)):
        run_native(proto, {each: ARRAYS[array] for each, array in zip(names, inputs, strict=True)})


def test_a_session_outlives_an_error() -> None:
    x, rois = np.ones((1, 1, 4, 4), np.float32), np.array([[0, 0, 0, 2, 2]], np.float32)
    proto = model(find("mmcv", "MMCVRoiAlign"), [x, rois], {"output_height": 1, "output_width": 1}, named=True)
    session = detops.onnx.session(proto)
    for _ in range(3):
        with pytest.raises(Exception, match="whole batch indices"):
            session.run(None, {"input": x, "rois": rois + 5})
        assert session.run(None, {"input": x, "rois": rois})[0].tolist() == [[[[1.0]]]]


def test_half_rounds_as_numpy_does() -> None:
    """Every float16, widened and rounded again, through an operator that changes nothing."""
    x = np.arange(2**16, dtype=np.uint16).view(np.float16)[:, None]
    proto = model(find("mmcv", "cummax"), [x], {"dim": 1})
    (got, _) = run_native(proto, {"input": x})
    np.testing.assert_array_equal(got, x)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(x))


def test_half_results_round_once() -> None:
    rng = np.random.default_rng(0)
    t = rng.normal(0, 4, (5000, 4)).astype(np.float16)
    t[:, 2:] *= 3  # from below the smallest float16 to beyond the largest
    anchors = rng.uniform(0, 9, (5000, 4)).astype(np.float16)
    proto = model(find("detops", "DecodeBbox"), [t, anchors], {})
    feeds = {"box_predictions": t, "anchors": anchors}
    np.testing.assert_array_equal(run_native(proto, feeds)[0], run_reference(proto, feeds)[0])


def test_eight_threads_share_a_session() -> None:
    rng = np.random.default_rng(0)
    x = rng.random((2, 8, 40, 40), np.float32)
    rois = np.concatenate([rng.integers(0, 2, (64, 1)), rng.uniform(0, 40, (64, 4))], 1).astype(np.float32)
    proto = model(find("mmcv", "MMCVRoiAlign"), [x, rois], {"output_height": 7, "output_width": 7, "aligned": 0})
    session = detops.onnx.session(proto)
    wanted = detops.roi_align(x, rois, 7, aligned=False)
    same: list[bool] = []

    def work() -> None:
        for _ in range(20):
            same.append(np.array_equal(session.run(None, {"input": x, "rois": rois})[0], wanted))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert same == [True] * 160


def test_threads_register_at_once() -> None:
    outcomes: list[list[float]] = []

    def work() -> None:
        outcomes.append(
            detops.onnx.session(parser.parse_model(CUMMAX)).run(["y"], {"x": np.ones(1, np.float32)})[0].tolist()
        )

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == [[1.0]] * 8


# The least that an allocator hands out is more than the first limit. ONNX Runtime's own errors keep up to 200 bytes a
# run in one block and return them in another, also where no node is ours; scratch space of the node is 8 KiB.
@pytest.mark.parametrize(("what", "runs", "most"), [("run", 800, 16), ("fail", 800, 500), ("begin", 15, 500)])
def test_memory_does_not_grow(what: str, runs: int, most: int) -> None:
    from tests.onnx import memory

    assert min(memory.growth(memory.works()[what], runs, 4)) < most
