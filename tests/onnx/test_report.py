"""What ``detops inspect`` says of a model, what ``detops run`` does with it, and whether a session opens."""

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from onnx import parser

import detops
import detops.onnx
from detops.cli import main
from detops.cli._jobs import Model
from detops.cli.operators import custom_operators
from detops.demo import DATA
from tests.onnx import random_models


def opened(model: str | bytes) -> onnxruntime.InferenceSession | None:
    """A session of a model, None where ONNX Runtime opens none."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        return detops.onnx.session(model, sess_options=options)
    except Exception:
        return None


def opens(path: str) -> bool:
    return opened(path) is not None


def inspected(path: str, capsys) -> tuple[int, dict]:
    code = main(["inspect", path, "--json"])
    return code, json.loads(capsys.readouterr().out)


def outcome(model: Model, feeds: dict[str, np.ndarray]) -> list[tuple[str, bytes]] | None:
    """What a model computes; None where it refuses its inputs."""
    try:
        with np.errstate(all="ignore"):
            results = model(feeds)
    except ValueError:
        return None
    return [(result.dtype.name, result.tobytes()) for result in results.values()]


@settings(max_examples=max(150, settings.default.max_examples))
@given(drawn=random_models.models())
def agree(drawn: random_models.Drawn, folder: Path, capsys) -> None:
    path = str(folder / "model.onnx")
    onnx.save(drawn.proto, path)
    wanted = opens(path)
    code, found = inspected(path, capsys)
    assert (code == 0) == wanted, found
    assert found["onnxruntime"]["opens"] == wanted
    # The nodes judged one by one say the same as the model as a whole (a name of ONNX's own is none of ours to judge).
    uses = custom_operators(drawn.proto)
    assert not uses or all(use.runs for use in uses) == wanted, (uses, found["onnxruntime"]["reason"])
    if wanted:
        model = Model(path)
        assert list(model.inputs) == list(drawn.feeds)
        if all(node.op_type != "Loop" for node in drawn.proto.graph.node):  # which ONNX's evaluator has wrong
            assert outcome(model, drawn.feeds) == outcome(Model(path, "reference"), drawn.feeds)
    else:
        with pytest.raises(ValueError, match=r"\A[^\n]*\Z"):
            Model(path)


def test_inspect_run_and_a_session_agree(tmp_path: Path, capsys) -> None:
    agree(folder=tmp_path, capsys=capsys)


INNER = """<domain: "local", opset_import: ["": 17, "mmcv": 1]>
inner <axis: int = 1> (x) => (y) { y, i = mmcv.cummax <dim: int = @axis> (x) }"""
OUTER = """<domain: "local", opset_import: ["": 17, "local": 1]>
outer <its_axis> (x) => (y) { y = local.inner <axis: int = @its_axis> (x) }"""
BRANCHING = """<domain: "local", opset_import: ["": 17, "local": 1, "mmcv": 1]>
branching <axis> (x, choice) => (y) { y = If (choice) <
    then_branch = t () => (a) { a, i = mmcv.cummax <dim: int = @axis> (x) },
    else_branch = e () => (b) { b, j = mmcv.cummin <dim: int = @axis> (x) }> }"""
NEWER = INNER.replace('"": 17', '"": 18').replace("inner <axis: int = 1>", "newer <axis>")

# What computes y from x, the functions that it needs, and what detops.cummax along this axis gives.
FORMS = {
    "node": ("y, i = mmcv.cummax <dim = 1> (x)", []),
    "function": ("y = local.inner <axis = 1> (x)", [INNER]),
    "function's default": ("y = local.inner (x)", [INNER]),
    "function in a function": ("y = local.outer <its_axis = 1> (x)", [OUTER, INNER]),
    "If": (
        """y = If (choice) <then_branch = t () => (float[N, M] a) { a, i = mmcv.cummax <dim = 1> (x) },
        else_branch = e () => (float[N, M] b) { b = Identity (x) }>""",
        [],
    ),
    "function in an If": (
        """y = If (choice) <then_branch = t () => (float[N, M] a) { a = local.outer <its_axis = 1> (x) },
        else_branch = e () => (float[N, M] b) { b = Identity (x) }>""",
        [OUTER, INNER],
    ),
    "If in a function": ("y = local.branching <axis = 1> (x, choice)", [BRANCHING]),
    "Loop": (
        """count = Constant <value = int64 {2}> ()
        y = Loop (count, choice, x) <body = step (int64 turn, bool before, float[N, M] x_in)
        => (bool after, float[N, M] x_out) { after = Identity (before) x_out, i = mmcv.cummax <dim = 1> (x_in) }>""",
        [],
    ),
    "function in a Loop": (
        """count = Constant <value = int64 {2}> ()
        y = Loop (count, choice, x) <body = step (int64 turn, bool before, float[N, M] x_in)
        => (bool after, float[N, M] x_out) { after = Identity (before) x_out = local.inner (x_in) }>""",
        [INNER],
    ),
    "Scan": (
        """y = Scan <num_scan_inputs = 1, body = step (float[M] row) => (float[M] most)
        { most, i = mmcv.cummax <dim = 0> (row) }> (x)""",
        [],
    ),
    "function of another opset": ("y = local.newer <axis = 1> (x)", [NEWER]),
    "Loop in an If": (
        """y = If (choice) <then_branch = t () => (float[N, M] a) {
            count = Constant <value = int64 {2}> ()
            a = Loop (count, choice, x) <body = step (int64 turn, bool before, float[N, M] x_in)
            => (bool after, float[N, M] x_out)
            { after = Identity (before) x_out, i = mmcv.cummax <dim = 1> (x_in) }>
        }, else_branch = e () => (float[N, M] b) { b = Identity (x) }>""",
        [],
    ),
}
HEAD = """<ir_version: 8, opset_import: ["": 17, "mmcv": 1, "local": 1]>
agraph (float[N, M] x, bool choice%s) => (float[N, M] y%s) { %s %s }
"""


def form(name: str, more: tuple[str, str, str] = ("", "", "")) -> onnx.ModelProto:
    body, functions = FORMS[name]
    return parser.parse_model("\n".join([HEAD % (more[0], more[1], body, more[2]), *functions]))


@pytest.mark.parametrize("name", FORMS)
def test_bodies_and_functions(name: str, tmp_path: Path, capsys) -> None:
    """Inspect, run with both engines, and fuse: wherever the custom node stands."""
    decode = """
        t_xy, t_wh = Split <axis = 1> (t, twos)
        a_low, a_high = Split <axis = 1> (anchors, twos)
        size = Sub (a_high, a_low)
        both = Add (a_high, a_low)
        center = Mul (both, half)
        clipped = Min (t_wh, clip)
        grown = Exp (clipped)
        new_size = Mul (grown, size)
        half_size = Mul (new_size, half)
        shift = Mul (t_xy, size)
        new_center = Add (shift, center)
        low = Sub (new_center, half_size)
        high = Add (new_center, half_size)
        boxes = Concat <axis = 1> (low, high)"""
    constants = """half = Constant <value = float {0.5}> () clip = Constant <value = float {4.0}> ()
        twos = Constant <value = int64[2] {2, 2}> ()"""
    proto = form(name, (", float[K, 4] t, float[K, 4] anchors", ", float[K, 4] boxes", constants + decode))
    path, fused = str(tmp_path / "model.onnx"), str(tmp_path / "fused.onnx")
    onnx.save(proto, path)
    assert main(["fuse", path, "-o", fused]) == 0
    assert any(node.domain == "detops" for node in onnx.load(fused).graph.node)
    rng = np.random.default_rng(0)
    x = np.array([[1, 3, 2], [5, 4, 6]], np.float32)
    t, a = rng.normal(size=(5, 4)).astype(np.float32), rng.uniform(0, 9, (5, 4)).astype(np.float32)
    feeds = {"x": x, "choice": np.array(True), "t": t, "anchors": a}
    boxes = detops.decode_bbox(t, a, decode_clip=4.0)
    capsys.readouterr()
    for file in (path, fused):
        code, found = inspected(file, capsys)
        assert code == 0, found
        assert all(use["runs"] for use in found["custom_operators"])
        assert "mmcv" in {use["domain"] for use in found["custom_operators"]}
        for engine in ("onnxruntime", "reference"):
            results = Model(file, engine)(feeds)
            np.testing.assert_array_equal(results["y"], detops.cummax(x, 1).values)
            np.testing.assert_allclose(results["boxes"], boxes, rtol=1e-5, atol=1e-5)


def test_an_attribute_of_a_function_that_the_node_must_have(tmp_path: Path, capsys) -> None:
    function = INNER.replace("axis: int = 1", "axis")
    text = "\n".join([HEAD % ("", "", "y = local.inner (x)", ""), function])
    path = str(tmp_path / "model.onnx")
    onnx.save(parser.parse_model(text), path)
    code, found = inspected(path, capsys)
    (use,) = (use for use in found["custom_operators"] if use["domain"] == "mmcv")
    assert (code, use["runs"], use["count"]) == (1, False, 1)
    assert "attribute dim: expected a value, got none" in use["reason"]


ROI = "mmcv.MMCVRoiAlign <output_height = 2, output_width = 2"


def one_node(text: str, types: str = "float[1, 1, 4, 4] x, float[1, 2, 2, 2] g, float[2, 5] r") -> onnx.ModelProto:
    domains = '"": 17, "mmcv": 1, "mmdeploy": 1, "com.microsoft": 1'
    return parser.parse_model(
        f"<ir_version: 8, opset_import: [{domains}]> agraph ({types}) => (float y) {{ y = {text} }}"
    )


def test_a_composition_runs(tmp_path: Path, capsys) -> None:
    path = str(tmp_path / "model.onnx")
    onnx.save(one_node("mmcv.MMCVCornerPool <mode = 0> (x)", "float[1, 1, 4, 4] x"), path)
    assert opens(path)
    code, found = inspected(path, capsys)
    (use,) = found["custom_operators"]
    assert (code, use["runs"]) == (0, True)
    assert "detops.onnx.expand" in use["reason"]
    np.save(tmp_path / "x.npy", np.eye(4, dtype=np.float32)[None, None])
    inputs = ["--input", f"x={tmp_path / 'x.npy'}"]
    for engine in ("onnxruntime", "reference"):
        out = str(tmp_path / f"{engine}.npz")
        assert main(["run", path, *inputs, "--engine", engine, "-o", out]) == 0
        np.testing.assert_array_equal(np.load(out)["y"][0, 0], np.triu(np.ones((4, 4))))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("grid_sampler (x, g)", "detops has no such operator"),
        ("com.microsoft.grid_sampler (x, g)", "detops has no such operator"),
        (
            "mmcv.MMCVRoiAlign <output_height = 2, output_width = 2, aligned = 1.0> (x, r)",
            "attribute aligned: expected an integer, got 1.0",
        ),
        (
            "mmcv.MMCVRoiAlign <output_height = [2], output_width = 2> (x, r)",
            "attribute output_height: expected an integer, got [2]",
        ),
        (
            "mmcv.MMCVRoiAlign <output_height = 2, output_width = 2, sampling_ratio = 2.0> (x, r)",
            "attribute sampling_ratio: expected an integer, got 2.0",
        ),
        (f"{ROI}> (x)", "node y: "),
        ("mmcv.MMCVDeformConv2d <stride = 1> (x, g, x)", "attribute stride: expected a list of integers, got 1"),
        ("mmcv.MMCVCornerPool <mode = 1.0> (x)", "attribute mode: expected an integer, got 1.0"),
        ("mmcv.MMCVCornerPool <mode = 7> (x)", "attribute mode: expected 0 (top)"),
        ("mmdeploy.GatherTopk (x)", "GatherTopk: expected 2 inputs, got ['x']"),
    ],
)
def test_what_does_not_run_is_said(text: str, reason: str, tmp_path: Path, capsys) -> None:
    path = str(tmp_path / "model.onnx")
    onnx.save(one_node(text), path)
    assert not opens(path)
    code, found = inspected(path, capsys)
    (use,) = found["custom_operators"]
    assert (code, use["runs"]) == (1, False)
    assert reason in use["reason"]
    assert main(["run", path, "--input", "x=x.npy"]) == 2
    assert reason in capsys.readouterr().err


def convolution() -> onnx.ModelProto:
    weight = onnx.numpy_helper.from_array(np.ones((8, 8, 3, 3), np.float32), "w")
    proto = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17, "mmcv": 1]>
        agraph (float[1, 8, 8, 8] x) => (float[1, 8, 6, 6] y) { c = Conv (x, w) y, i = mmcv.cummax <dim = 1> (c) }"""
    )
    proto.graph.initializer.append(weight)
    return proto


@pytest.mark.parametrize("suffix", [".onnx", ".ort"])
def test_a_model_that_onnxruntime_has_optimized(suffix: str, tmp_path: Path, capsys) -> None:
    path = str(tmp_path / f"optimized{suffix}")
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = path
    if suffix == ".onnx":
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.log_severity_level = 4
    detops.onnx.session(convolution(), sess_options=options)
    np.save(tmp_path / "x.npy", np.ones((1, 8, 8, 8), np.float32))
    command = ["run", path, "--input", f"x={tmp_path}/x.npy", "-o", str(tmp_path / "out.npz")]
    assert main(command) == 0
    assert np.load(tmp_path / "out.npz")["y"].ravel()[0] == 72
    capsys.readouterr()
    if suffix == ".onnx":
        assert any(node.domain == "com.microsoft.nchwc" for node in onnx.load(path).graph.node)
        code, found = inspected(path, capsys)
        assert (code, [use["operator"] for use in found["custom_operators"]]) == (0, ["cummax"])
        return
    for line, message in (
        ([*command, "--engine", "reference"], "ONNX's evaluator takes ONNX models, not ONNX Runtime's own format"),
        (["inspect", path], "got ONNX Runtime's own format (.ort)"),
    ):
        assert main(line) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1


def test_without_onnxruntime_nodes_are_judged_by_what_they_hold(tmp_path: Path, capsys, monkeypatch) -> None:
    import sys

    from detops.cli import operators

    for name in [name for name in sys.modules if name.partition(".")[0] == "onnxruntime"]:
        monkeypatch.setitem(sys.modules, name, None)
    for cache in (operators._built_in, operators._runtime_is_here, operators._asked):
        cache.cache_clear()
    try:
        good, bad = str(tmp_path / "good.onnx"), str(tmp_path / "bad.onnx")
        onnx.save(form("function"), good)
        onnx.save(one_node(f"{ROI}, aligned = 1.0> (x, r)"), bad)
        for path, wanted in ((good, 0), (bad, 1)):
            code, found = inspected(path, capsys)
            assert (code, found["onnxruntime"]["opens"]) == (wanted, None)
    finally:
        for cache in (operators._built_in, operators._runtime_is_here, operators._asked):
            cache.cache_clear()


def test_digits_are_all_there(capsys) -> None:
    code, found = inspected(str(DATA / "digits.onnx"), capsys)
    assert code == 0
    assert found["onnxruntime"] == {"opens": True, "reason": ""}
