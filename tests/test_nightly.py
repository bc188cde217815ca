"""The scripts of the nightly part can be run: they name what is there, and know every operator."""

import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import detops
from tests import nightly
from tests.nightly import stress
from tests.support import calls

ROOT = Path(__file__).parents[1]
SCRIPTS = [module.name for module in pkgutil.iter_modules(nightly.__path__)]


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_is_imported(script: str) -> None:
    try:
        assert callable(importlib.import_module(f"tests.nightly.{script}").main)
    except ModuleNotFoundError as error:
        # What is missing is a library for that script alone.
        if error.name is None or error.name.partition(".")[0] in ("detops", "tests", "asv_bench"):
            raise


def test_stress_calls_every_operator() -> None:
    rng = np.random.default_rng(1)
    assert set(stress.MAKERS) <= set(calls.ALL)
    for operator in calls.ALL:
        assert calls.call(stress.drawn(rng, operator))


def test_stress_finds_nothing_in_a_few_cases() -> None:
    rng, threads = np.random.default_rng(0), detops.get_num_threads()
    try:
        with stress.room(2048):
            for _ in range(40):
                stress.one_shape(rng)
                stress.one_parameter(rng)
    finally:
        detops.set_num_threads(threads)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the peak of memory where Linux tells it")
def test_memory_is_measured() -> None:
    """Of a result of 3.8 MiB, which is all that the operator takes."""
    command = [sys.executable, "-m", "asv_bench.memory", "--only", "box_iou 1000 x 1000, iou", "--threads", "1"]
    text = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    (line,) = [line for line in text.splitlines() if "| detops |" in line]
    peak, result = (int(cell) for cell in line.split("|")[3:5])
    assert result == 4
    assert 3 <= peak <= 12


def test_numba_is_compared_with_cython(monkeypatch, capsys) -> None:
    from asv_bench import backends
    from asv_bench.peer import Row

    boxes = np.array([[0, 0, 40, 40]], np.float32)
    monkeypatch.setattr(backends, "rows", lambda: [Row("box_iou", lambda: detops.box_iou(boxes, boxes), {})])
    threads = detops.get_num_threads()
    try:
        backends.main(["--seconds", "0"])
    finally:
        detops.set_num_threads(threads)
    assert re.search(r"^\| box_iou \| \d+\.\d \|$", capsys.readouterr().out, re.MULTILINE)
