"""Every CUDA kernel compiles for real GPUs, float32 kernels compute in float32, and no register spills.

The kernels and the types of their arguments are recorded while the simulator runs the cases of the operators.
"""

import ast
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import detops
from detops._specification import KERNELS, OPERATORS
from tests.cases import all_cases
from tests.support import launches
from tests.support.profile import NIGHTLY

CAPABILITIES = ((8, 0), (9, 0)) if NIGHTLY else ((8, 0),)
ROOT = Path(__file__).parents[1]
# Conversions on the GPU: from, to, axes.
CASTS = [("float16", "float32", 4), ("float32", "float16", 2), ("float16", "float64", 1), ("int32", "int64", 1)]


def recorded_launches() -> list[tuple[str, launches.Launch]]:
    """(dtype under test, launch) over the cases of all operators; the dtype is float64 where kernels know no other."""
    found: dict[str, tuple[str, launches.Launch]] = {}
    for case in all_cases():
        double = all(KERNELS[kernel].double for kernel in OPERATORS[case.operator].kernels)
        floats = [dtype for dtype in case.dtypes if dtype in ("float16", "float32", "float64")]
        for dtype in floats + [other for other in case.dtypes if other not in floats][:1]:
            with launches.recorded() as texts, warnings.catch_warnings(action="ignore"):
                getattr(detops, case.operator)(**case.cast(dtype), **case.options, backend="cuda")
            for text in texts:
                found.setdefault(text, ("float64" if double else dtype, ast.literal_eval(text)))
    return list(found.values())


def compile_all(wanted: list[Any]) -> list[str]:
    """PTX of each launch for each compute capability, capability by capability."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.compile_ptx"],
        input=json.dumps({"capabilities": CAPABILITIES, "launches": wanted}),
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "0"},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def compiled() -> list[tuple[str, launches.Launch, tuple[int, int], str]]:
    """(dtype under test, launch, compute capability, PTX) of all."""
    found = recorded_launches()
    texts = compile_all([launch for _, launch in found])
    wanted = [(*item, capability) for capability in CAPABILITIES for item in found]
    return [(*item, text) for item, text in zip(wanted, texts, strict=True)]


def test_cases_launch_every_kernel(compiled: list[tuple]) -> None:
    assert launches.kernels()
    assert {launch[:2] for _, launch, *_ in compiled} == launches.kernels()


def test_float32_is_computed_in_float32(compiled: list[tuple]) -> None:
    for dtype, launch, _, text in compiled:
        if dtype in ("float16", "float32"):
            assert "float64" not in repr(launch), f"a {dtype} kernel is given float64: {launch}"
            lines = [line.strip() for line in text.splitlines() if re.search(r"\.f64\b", line)]
            assert lines == [], f"{launch} computes in float64"


def test_only_copies_know_strides(compiled: list[tuple]) -> None:
    for _, (module, name, described), *_ in compiled:
        arrays = [one for one in described if one[0] == "array"]
        assert (module, name) == ("detops._cuda.arrays", "_copy") or all(layout == "C" for *_, layout in arrays)


def test_casts_on_the_gpu_compile() -> None:
    wanted = [
        ("detops._cuda.arrays", "_copy", [["array", source, axes, "A"], ["array", target, 1, "C"]])
        for source, target, axes in CASTS
    ]
    for text in compile_all(wanted):
        assert ".entry" in text


def ptxas() -> str | None:
    """The assembler: of the pip package nvidia-cuda-nvcc, else of a CUDA toolkit."""
    found = [path for folder in sys.path for path in glob.glob(f"{folder}/nvidia/*/bin/ptxas")]
    return found[0] if found else shutil.which("ptxas")


def test_no_register_spills(compiled: list[tuple], tmp_path: Path) -> None:
    assembler = ptxas()
    if assembler is None:
        pytest.skip("ptxas is not installed: pip install nvidia-cuda-nvcc brings it")
    for _, launch, (major, minor), text in compiled:
        source = tmp_path / "kernel.ptx"
        source.write_text(text)
        done = subprocess.run(
            [assembler, "-v", f"-arch=sm_{major}{minor}", str(source), "-o", str(tmp_path / "kernel.cubin")],
            capture_output=True,
            text=True,
        )
        if "Unsupported .version" in done.stderr:
            pytest.skip(f"{assembler} is older than the compiler: pip install nvidia-cuda-nvcc brings a newer one")
        assert done.returncode == 0, done.stderr
        spills = re.findall(r"(\d+) bytes spill (?:stores|loads)", done.stderr)
        assert spills, done.stderr
        assert set(spills) == {"0"}, f"{launch[:2]}: {done.stderr}"
