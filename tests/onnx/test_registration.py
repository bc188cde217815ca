"""Registering the library: more than once, in parts, in a process that has not imported detops, from other tools."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, parser

import detops
import detops.onnx
from detops.onnx import _library
from tests.onnx.models import model, run_native
from tests.onnx.test_cases import find

CUMMAX = """<ir_version: 8, opset_import: ["": 17, "{0}": 1]>
agraph (float[N] x) => (float[N] y, int64[N] i) {{ y, i = {0}.cummax <dim = 0> (x) }}"""
X = {"x": np.array([1, 3, 2], np.float32)}


def cummax(domain: str = "mmcv") -> onnx.ModelProto:
    return parser.parse_model(CUMMAX.format(domain))


def results(session: onnxruntime.InferenceSession) -> list[list[float]]:
    return [result.tolist() for result in session.run(None, X)]


WANTED = [[1, 3, 3], [0, 1, 1]]


def run_elsewhere(code: str, *arguments: str) -> str:
    """What a new process prints."""
    command = [sys.executable, "-W", "error", "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_registering_twice_changes_nothing() -> None:
    options = onnxruntime.SessionOptions()
    for _ in range(2):
        options.register_custom_ops_library(detops.onnx.library_path())
    session = onnxruntime.InferenceSession(cummax().SerializeToString(), options)
    assert results(session) == WANTED


def test_domains_may_be_added_later() -> None:
    options = onnxruntime.SessionOptions()
    options.register_custom_ops_library(detops.onnx.library_path(("mmcv",)))
    options.register_custom_ops_library(detops.onnx.library_path(("mmcv", "mmdeploy")))
    for domain in ("mmcv", "mmdeploy"):
        assert results(onnxruntime.InferenceSession(cummax(domain).SerializeToString(), options)) == WANTED


def test_the_default_domain_is_not_extended() -> None:
    options = onnxruntime.SessionOptions()
    options.register_custom_ops_library(detops.onnx.library_path(("mmcv",)))
    message = "the domain '' was registered with these options before, with fewer operators; name all domains at once"
    with pytest.raises(Exception, match=message):
        options.register_custom_ops_library(detops.onnx.library_path(("mmcv", "")))
    all_at_once = onnxruntime.SessionOptions()
    all_at_once.register_custom_ops_library(detops.onnx.library_path(("mmcv", "")))
    all_at_once.register_custom_ops_library(detops.onnx.library_path(("mmcv",)))
    assert results(onnxruntime.InferenceSession(cummax().SerializeToString(), all_at_once)) == WANTED


def test_options_that_have_more_domains_are_refused() -> None:
    options = onnxruntime.SessionOptions()
    detops.onnx.session(cummax(), sess_options=options)
    with pytest.raises(
        ValueError, match="domains: sess_options have 'mmdeploy', 'detops' registered beside 'mmcv'; use"
    ):
        detops.onnx.session(cummax(), domains=("mmcv",), sess_options=options)
    fewer = onnxruntime.SessionOptions()
    detops.onnx.session(cummax(), domains=("mmcv",), sess_options=fewer)
    assert results(detops.onnx.session(cummax("mmdeploy"), sess_options=fewer)) == WANTED


def test_one_text_is_no_list_of_domains() -> None:
    with pytest.raises(TypeError, match=r"domains: expected several, as \('mmcv',\), got 'mmcv'"):
        detops.onnx.library_path("mmcv")


def test_a_process_that_only_knows_the_path(tmp_path: Path) -> None:
    """It registers the path before it has imported detops: the library does that, and takes the default domains."""
    path = detops.onnx.library_path(("detops",))
    onnx.save(cummax(), tmp_path / "model.onnx")
    code = (
        "import sys, onnxruntime\n"
        "options = onnxruntime.SessionOptions()\n"
        "assert 'detops' not in sys.modules\n"
        "options.register_custom_ops_library(sys.argv[1])\n"
        "session = onnxruntime.InferenceSession(sys.argv[2], options)\n"
        "import numpy\n"
        "print(session.run(['i'], {'x': numpy.array([1, 3, 2], 'float32')})[0].tolist())\n"
        "import detops.onnx\n"
        "assert detops.onnx.library_path() == sys.argv[1]\n"
        "print(detops.onnx.session(sys.argv[2]).get_outputs()[0].name)"
    )
    assert run_elsewhere(code, path, str(tmp_path / "model.onnx")).split("\n")[:2] == ["[0, 1, 1]", "y"]


def test_without_detops_the_library_says_so() -> None:
    code = (
        "import sys, onnxruntime\n"
        "sys.modules['detops'] = None\n"
        "try:\n    onnxruntime.SessionOptions().register_custom_ops_library(sys.argv[1])\n"
        "except Exception as error:\n    print(error)"
    )
    assert "detops: this process's Python cannot import detops: " in run_elsewhere(code, detops.onnx.library_path())


def test_a_copy_of_the_library_says_where_to_get_it(tmp_path: Path) -> None:
    copy = tmp_path / Path(detops.onnx.library_path()).name
    copy.write_bytes(Path(detops.onnx.library_path()).read_bytes())
    code = (
        "import sys, onnxruntime\n"
        "try:\n    onnxruntime.SessionOptions().register_custom_ops_library(sys.argv[1])\n"
        "except Exception as error:\n    print(error)"
    )
    assert "take the path from detops.onnx.library_path()" in run_elsewhere(code, str(copy))


def test_the_converter_to_ort_files_takes_the_path(tmp_path: Path) -> None:
    onnx.save(cummax(), tmp_path / "model.onnx")
    command = [sys.executable, "-m", "onnxruntime.tools.convert_onnx_models_to_ort", str(tmp_path / "model.onnx")]
    done = subprocess.run(
        [*command, "--custom_op_library", detops.onnx.library_path(), "--optimization_style", "Fixed"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    (converted,) = tmp_path.glob("*.ort")
    assert results(detops.onnx.session(converted.read_bytes())) == WANTED


def test_nodes_that_mmcv_writes_without_a_domain() -> None:
    """They come with MMCV's domain, or with the default one."""
    operator = find("", "MMCVInstanceNormalization")
    rng = np.random.default_rng(0)
    inputs = [rng.random((1, 2, 3, 4), np.float32), rng.random(2, np.float32), rng.random(2, np.float32)]
    proto = model(operator, inputs, {"epsilon": 1e-5})
    wanted = detops.instance_norm(*inputs)
    feeds = dict(zip(("input", "scale", "B"), inputs, strict=True))
    for domains in (_library.DOMAINS, ("",), ("mmcv",), ("", "mmcv")):
        (got,) = detops.onnx.session(proto, domains=domains).run(None, feeds)
        np.testing.assert_array_equal(got, wanted)
    with pytest.raises(Exception, match="MMCVInstanceNormalization"):
        detops.onnx.session(proto, domains=("mmdeploy",))


@pytest.mark.parametrize("version", [10, 16, 21])
def test_older_versions_of_roi_align_stay_with_onnx_runtime(version: int) -> None:
    """Up to opset 21 ONNX Runtime has them; their defaults differ."""
    x = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    rois, images = np.array([[0, 0, 3, 3]], np.float32), np.zeros(1, np.int64)
    node = helper.make_node("RoiAlign", ["x", "r", "i"], ["y"], output_height=2, output_width=2)
    values = [helper.make_tensor_value_info(name, kind, None) for name, kind in (("x", 1), ("r", 1), ("i", 7))]
    graph = helper.make_graph([node], "g", values, [helper.make_tensor_value_info("y", 1, None)])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=8)
    (got,) = run_native(proto, {"x": x, "r": rois, "i": images})
    np.testing.assert_allclose(got, detops.roi_align(x, rois, 2, aligned=version > 10, batch_indices=images), rtol=1e-6)


def runs(proto: bytes, domains: tuple[str, ...]) -> bool:
    try:
        detops.onnx.session(proto, domains=domains)
    except Exception:
        return False
    return True


@pytest.mark.parametrize("first", ["float16", "float32", "float64", "int64", "uint8"])
@pytest.mark.parametrize("operator", sorted({each.name for each in _library.OPERATORS if each.domain == ""}))
def test_the_default_domain_takes_nothing_away(operator: str, first: str) -> None:
    """What ONNX Runtime opens by itself, it opens with the operators of the default domain."""
    found = [each for each in _library.OPERATORS if (each.domain, each.name) == ("", operator)]
    opened = 0
    for declared in found:
        for version in declared.versions:
            for second in ("float16", "float32", "float64"):
                kinds = [first if place == 0 else second for place in range(len(declared.inputs))]
                kinds = [
                    kind if each.dtype == "T" else each.dtype for kind, each in zip(kinds, declared.inputs, strict=True)
                ]
                if operator != "GridSample":
                    kinds = [first if each.dtype == "T" else each.dtype for each in declared.inputs]
                inputs = [
                    helper.make_tensor_value_info(each.name, element(kind), None)
                    for each, kind in zip(declared.inputs, kinds, strict=True)
                ]
                outputs = [
                    helper.make_tensor_value_info(name, element(first if kind == "T" else kind), None)
                    for name, kind in declared.outputs
                ]
                attributes = {"pooled_shape": [2, 2]} if operator == "MaxRoiPool" else {}
                node = helper.make_node(
                    operator,
                    [each.name for each in declared.inputs],
                    [name for name, _ in declared.outputs],
                    **attributes,
                )
                opsets = [helper.make_opsetid("", version)]
                proto = helper.make_model(
                    helper.make_graph([node], "g", inputs, outputs), opset_imports=opsets, ir_version=10
                )
                if runs(proto.SerializeToString(), ()):
                    opened += 1
                    assert runs(proto.SerializeToString(), ("",)), (version, kinds)
    # MMCV's operators are none of ONNX Runtime's.
    assert opened or first != "float32" or operator.startswith("MMCV")


def element(dtype: str) -> int:
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
