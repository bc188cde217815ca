"""The CUDA backend as Numba really compiles, launches and copies it, on a GPU that is emulated."""

import json
from pathlib import Path

import pytest

from detops._registry import OPERATORS
from tests.emulated_gpu import process


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the emulated GPU's driver is."""
    path = tmp_path_factory.mktemp("gpu")
    process.build_driver(path)
    return path


@pytest.mark.parametrize("operator", sorted(OPERATORS))
def test_conformance_on_an_emulated_gpu(folder: Path, operator: str) -> None:
    done = process.run(folder, "tests.emulated_gpu.conformance", operator)
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout)
    assert report["failures"] == []
    assert report["runs"] > 50
    assert report["damage"] == 0
