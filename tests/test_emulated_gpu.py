"""The CUDA backend as Numba really compiles, launches and copies it, on a GPU that is emulated."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from detops._specification import OPERATORS
from tests.emulated_gpu import process
from tests.support.profile import NIGHTLY

# A kernel takes Numba a while for each dtype: all of them, in all layouts, are for the nightly run.
EXTENT = "every-dtype" if NIGHTLY else "some-dtypes"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the emulated GPU's driver is."""
    path = tmp_path_factory.mktemp("gpu")
    process.build_driver(path)
    return path


def outcome(folder: Path, module: str, *arguments: str) -> dict[str, Any]:
    """What a program prints as JSON."""
    done = process.run(folder, module, *arguments)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def checks(folder: Path) -> dict[str, str]:
    """What went wrong, by check."""
    return outcome(folder, "tests.emulated_gpu.checks")


CHECKS = re.findall(r"^def (check_\w+)", (process.HERE / "checks.py").read_text(), re.M)


@pytest.mark.parametrize("check", CHECKS)
def test_behavior_on_an_emulated_gpu(checks: dict[str, str], check: str) -> None:
    assert checks[check] == ""


@pytest.mark.parametrize("operator", sorted(OPERATORS))
def test_conformance_on_an_emulated_gpu(folder: Path, operator: str) -> None:
    report = outcome(folder, "tests.emulated_gpu.conformance", EXTENT, operator)
    assert report["failures"] == []
    assert report["runs"] > 50
    assert report["damage"] == 0
