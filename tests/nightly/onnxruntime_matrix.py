"""One wheel against many versions of ONNX Runtime: ``python tests/nightly/onnxruntime_matrix.py WHEEL``.

Each version gets an environment of its own, without a compiler's help: the wheel, numpy and onnxruntime are all that
is installed. The models that it runs are made here, by onnx, and travel with their inputs and expected results.
"""

import argparse
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import numpy as np
import onnx
from onnx import parser
from onnx.reference import ReferenceEvaluator

import detops.onnx

# The oldest that is supported, some between, and the newest; older ones were built for the first interface of numpy.
VERSIONS = {
    "1.15.1": "numpy<2",
    "1.16.3": "numpy<2",
    "1.17.3": "numpy<2",
    "1.18.1": "numpy<2",
    "1.20.1": "numpy",
    "1.23.2": "numpy",
    "": "numpy",
}
TOO_OLD = "1.15.1"

HEADER = '<ir_version: 8, opset_import: ["": {opset}, "mmcv": 1, "mmdeploy": 1, "detops": 1]>'
MODELS = {
    "mmcv": """agraph (
        float[1, C, H, W] x, float[1, 18, H, W] o, float[1, 9, H, W] m, float[D, C, 3, 3] w, float[K, 5] r,
        float[1, K, 4] b, float[1, 1, K] s, float[K, 4] u, float[K] q
    ) => (float[K, D, 2, 2] y, float[K, D, 2, 2] top, int64[K, D, 2, 2] i, int32[R, 3] n, int64[P] p) {
        f = mmcv.MMCVModulatedDeformConv2d <stride = [1, 1], padding = [1, 1], dilation = [1, 1], groups = 1,
            deform_groups = 1> (x, o, m, w)
        y = mmcv.MMCVRoiAlign <output_height = 2, output_width = 2, spatial_scale = 0.5, sampling_ratio = 2,
            mode = "avg", aligned = 1> (f, r)
        top, i = mmcv.cummax <dim = 1> (y)
        n = detops.NonMaxSuppression <iou_threshold = 0.5, max_output_boxes_per_class = 3> (b, s)
        p = mmcv.NonMaxSuppression <iou_threshold = 0.5, offset = 0> (u, q)
    }""",
    "mmdeploy": """agraph (float[1, C, H, W] x, float[1, H, W, 2] g, float[C] v, float[K, 4] t, float[K, 4] b)
        => (float[1, C, H, W] y, float[1, C, H, W] z, float[K, 4] d) {
        y = mmdeploy.grid_sampler <interpolation_mode = 0, padding_mode = 1, align_corners = 1> (x, g)
        z = mmdeploy.TRTInstanceNormalization <epsilon = 1e-5> (x, v, v)
        d = detops.DecodeBboxV2 <scales = [10.0, 10.0, 5.0, 5.0]> (t, b)
    }""",
}
INPUTS = {
    "x": (1, 4, 8, 8), "o": (1, 18, 8, 8), "m": (1, 9, 8, 8), "w": (6, 4, 3, 3), "g": (1, 8, 8, 2), "v": (4,),
    "t": (5, 4), "b": (5, 4), "s": (1, 1, 5), "r": (5, 5),
    "u": (5, 4), "q": (5,),
}  # fmt: skip
OPSETS = (11, 17)

SMOKE = """
import glob, sys
import numpy as np, onnxruntime
import detops.onnx

assert "onnx" not in sys.modules
options = onnxruntime.SessionOptions()
options.register_custom_ops_library(detops.onnx.library_path())
for path in sorted(glob.glob("*.onnx")):
    case = np.load(path.replace(".onnx", ".npz"))
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feeds = {each.name: case["in_" + each.name] for each in session.get_inputs()}
    for each, got in zip(session.get_outputs(), session.run(None, feeds)):
        np.testing.assert_allclose(got, case["out_" + each.name], rtol=1e-5, atol=1e-5)
print(onnxruntime.__version__, "runs", len(glob.glob("*.onnx")), "models")
"""


def write_models(folder: Path) -> None:
    """Write the models with inputs and what ONNX's evaluator makes of them."""
    rng = np.random.default_rng(0)
    for name, text in MODELS.items():
        for opset in OPSETS:
            proto = parser.parse_model(HEADER.format(opset=opset) + text)
            feeds = {}
            for each in proto.graph.input:
                shape = (1, 5, 4) if (name, each.name) == ("mmcv", "b") else INPUTS[each.name]
                feeds[each.name] = rng.random(shape, np.float32)
            if "r" in feeds:
                feeds["r"] *= np.array([0, 4, 4, 12, 12], np.float32)
            evaluator = ReferenceEvaluator(proto, new_ops=detops.onnx.reference_ops())
            outputs = evaluator.run(None, feeds)
            onnx.save(proto, folder / f"{name}{opset}.onnx")
            results = zip((f"out_{each.name}" for each in proto.graph.output), outputs, strict=True)
            np.savez(
                folder / f"{name}{opset}.npz", **{f"in_{key}": value for key, value in feeds.items()}, **dict(results)
            )


def try_version(version: str, numpy: str, wheel: Path, models: Path, folder: Path) -> str | None:
    """Install a version of ONNX Runtime beside the wheel and run the models; return what went wrong."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    runtime = f"onnxruntime=={version}" if version else "onnxruntime"
    install = [python, "-m", "pip", "install", "-q", "--only-binary", ":all:", wheel, runtime, numpy]
    for command in (install, [python, "-c", SMOKE]):
        done = subprocess.run(command, cwd=models, capture_output=True, text=True)
        if done.returncode:
            last = done.stderr.strip().splitlines()
            return last[-1] if last else f"exit code {done.returncode}"
    print(done.stdout.strip(), flush=True)
    return None


def main() -> int:
    """Try all versions; return 1 if one that should run does not, or the one that is too old does not say so."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("wheel", type=Path)
    wheel = arguments.parse_args().wheel.resolve()
    failed = False
    with tempfile.TemporaryDirectory() as scratch:
        models = Path(scratch) / "models"
        models.mkdir()
        write_models(models)
        for version, numpy in VERSIONS.items():
            problem = try_version(version, numpy, wheel, models, Path(scratch) / f"env{version}")
            if version == TOO_OLD:
                fine = problem is not None and "detops needs ONNX Runtime 1.16 or later" in problem
                print(version, "is refused" if fine else f"should be refused, not: {problem}", flush=True)
                failed = failed or not fine
            elif problem is not None:
                print(version or "newest", problem, flush=True)
                failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
