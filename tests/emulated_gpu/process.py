"""Starts a Python process that has the emulated GPU."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def build_driver(folder: Path) -> None:
    """Compile the stand-in driver into a folder."""
    command = ["gcc", "-O1", "-shared", "-fPIC", "-o", str(folder / "libcuda.so.1"), str(HERE / "driver.c"), "-ldl"]
    subprocess.run(command, check=True)


def run(folder: Path, module: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a module of the tests beside the driver in a folder; warnings are errors there."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", module, str(folder), *arguments],
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "0", "LD_LIBRARY_PATH": str(folder), **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
