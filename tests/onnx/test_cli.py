"""``detops run`` and the operators' part of ``detops inspect``."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser
from PIL import Image

from detops.cli import main
from detops.demo import DATA

DIGITS = str(DATA / "digits.onnx")
PAGE = f"image={DATA / 'page.png'}"


def save(path: Path, text: str, domains: str = '"mmcv": 1') -> str:
    onnx.save(parser.parse_model(f'<ir_version: 8, opset_import: ["": 17, {domains}]> agraph ' + text), path)
    return str(path)


@pytest.fixture
def cummax(tmp_path: Path) -> str:
    return save(
        tmp_path / "model.onnx",
        "(float[N, M] x) => (float[N, M] y, int64[N, M] i) { y, i = mmcv.cummax <dim = 1> (x) }",
    )


def test_digits_are_found_by_both_engines(tmp_path: Path, capsys) -> None:
    found = {}
    for engine in ("onnxruntime", "reference"):
        out, picture = str(tmp_path / f"{engine}.npz"), tmp_path / f"{engine}.png"
        assert main(["run", DIGITS, "--input", PAGE, "--engine", engine, "-o", out, "--draw", str(picture)]) == 0
        found[engine] = dict(np.load(out))
        with Image.open(picture) as image:
            assert image.size[0] >= 200
    assert "boxes  float32" in capsys.readouterr().out
    truth = json.loads((DATA / "page.json").read_text())["digits"]
    assert sorted(found["onnxruntime"]["labels"].tolist()) == sorted(digit["label"] for digit in truth)
    for name, array in found["onnxruntime"].items():
        np.testing.assert_allclose(found["reference"][name], array, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_arrays_go_in(tmp_path: Path, cummax: str, suffix: str) -> None:
    x, file = np.array([[1, 3, 2]], np.float32), tmp_path / f"x{suffix}"
    np.save(file, x) if suffix == ".npy" else np.savez(file, other=x + 1, x=x)
    assert main(["run", cummax, "--input", f"x={file}", "-o", str(tmp_path / "out.npz")]) == 0
    assert np.load(tmp_path / "out.npz")["i"].tolist() == [[0, 1, 1]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: ["gone.onnx", "--input", "x=x.npy"], "gone.onnx"),
        (lambda path: [path, "--input", "x"], "input: expected NAME=FILE, got 'x'"),
        (lambda path: [path, "--input", "z=x.npy"], "input: expected one of x, got 'z'"),
        (lambda path: [path, "--input", "x=bad.txt"], "bad.txt: expected an image, .npy or .npz"),
        (lambda path: [path, "--input", "x=gone.npy"], "gone.npy"),
        (lambda path: [path, "--input", "x=flat.npy"], "Invalid rank"),
        (
            lambda path: [path, "--input", "x=none*.npy", "-o", "out"],
            "input: expected files that match 'none*.npy', got none",
        ),
        (lambda path: [path, "--input", "x=*.npy"], "output: expected a folder for the results of many files"),
        (lambda path: [path, "--input", "x=x.npy", "--workers", "2"], "workers: expected a pattern of many files"),
        (lambda path: [path, "--input", "x=x.npy", "--draw", "out.png"], "draw: expected an image among the inputs"),
        (lambda path: ["bad.txt", "--input", "x=x.npy"], "bad.txt: expected an ONNX model"),
        (lambda path: ["unknown.onnx", "--input", "x=x.npy"], "mmcv::NoSuch: detops has no such operator"),
        (lambda path: ["missing.onnx", "--input", "x=x.npy"], "attribute dim: expected a value, got none"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, cummax: str, capsys, monkeypatch, make, message: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.txt").write_text("no image, no model")
    np.save("x.npy", np.ones((1, 2), np.float32))
    np.save("flat.npy", np.ones(2, np.float32))
    save(Path("unknown.onnx"), "(float[N] x) => (float[N] y) { y = mmcv.NoSuch (x) }")
    save(Path("missing.onnx"), "(float[N] x) => (float[N] y, int64[N] i) { y, i = mmcv.cummax (x) }")
    assert main(["run", *make(cummax)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def many(folder: Path, count: int) -> None:
    folder.mkdir()
    for number in range(count):
        np.save(folder / f"{number:02}.npy", np.full((1, 2), number, np.float32))
    (folder / "bad.npy").write_text("no array")


def test_many_files_resume(tmp_path: Path, cummax: str, capsys) -> None:
    many(tmp_path / "in", 4)
    command = ["run", cummax, "--input", f"x={tmp_path}/in/*.npy", "-o", str(tmp_path / "out")]
    assert main(command) == 2
    first = capsys.readouterr()
    assert "4 done, 0 were there, 1 failed" in first.out
    assert "bad.npy" in first.err
    assert sorted(os.listdir(tmp_path / "out")) == ["00.npz", "01.npz", "02.npz", "03.npz"]
    assert np.load(tmp_path / "out/03.npz")["y"].tolist() == [[3, 3]]
    (tmp_path / "out/02.npz").unlink()
    (tmp_path / "in/bad.npy").unlink()
    assert main(command) == 0
    assert "1 done, 3 were there, 0 failed" in capsys.readouterr().out


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch) -> None:
    from detops.onnx import _arrays

    monkeypatch.setattr(os, "replace", lambda *names: (_ for _ in ()).throw(OSError("no")))
    with pytest.raises(OSError, match="no"):
        _arrays.save(str(tmp_path / "out.npz"), {"x": np.ones(3)})
    assert os.listdir(tmp_path) == []


def test_workers_survive_a_killed_one(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason='needs the extra "dask"')
    pages, out = tmp_path / "pages", tmp_path / "out"
    pages.mkdir()
    page = np.asarray(Image.open(DATA / "page.png").convert("L"))
    for number in range(60):
        Image.fromarray(np.roll(page, 7 * number, 0)).save(pages / f"{number}.png")
    command = [sys.executable, "-m", "detops.cli", "run", DIGITS, "--input", f"image={pages}/*.png", "-o"]
    alone = subprocess.run([*command, str(tmp_path / "alone")], capture_output=True, text=True, check=True, timeout=60)
    assert "60 done" in alone.stdout
    spread = subprocess.Popen([*command, str(out), "--workers", "2"], stdout=subprocess.PIPE, text=True)
    try:
        give_up = time.monotonic() + 60
        while spread.poll() is None and not list(out.glob("*.npz")):
            assert time.monotonic() < give_up
            time.sleep(0.01)
        _a_worker_of(spread.pid).kill()
        printed, _ = spread.communicate(timeout=60)
    finally:
        spread.kill()
    assert "60 done, 0 were there, 0 failed" in printed
    assert spread.returncode == 0
    assert sorted(os.listdir(out)) == sorted(os.listdir(tmp_path / "alone"))
    for file in (tmp_path / "alone").iterdir():
        wanted, got = np.load(file), np.load(out / file.name)
        for name in wanted.files:
            np.testing.assert_array_equal(got[name], wanted[name])


def _a_worker_of(pid: int) -> Any:
    """A process that Dask's nanny has spawned."""
    import psutil

    return next(child for child in psutil.Process(pid).children() if "spawn_main" in " ".join(child.cmdline()))


def test_workers_of_a_cluster_that_runs(tmp_path: Path, cummax: str, capsys) -> None:
    distributed = pytest.importorskip("distributed", reason='needs the extra "dask"')
    many(tmp_path / "in", 4)
    command = ["run", cummax, "--input", f"x={tmp_path}/in/*.npy", "-o", str(tmp_path / "out"), "--scheduler"]
    with distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster:
        assert main([*command, cluster.scheduler_address]) == 2
    printed = capsys.readouterr()
    assert "4 done, 0 were there, 1 failed" in printed.out
    assert "bad.npy" in printed.err
    assert np.load(tmp_path / "out/03.npz")["y"].tolist() == [[3, 3]]


def test_inspect_lists_custom_operators(tmp_path: Path, cummax: str, capsys) -> None:
    assert main(["inspect", cummax, "--json"]) == 0
    (use,) = json.loads(capsys.readouterr().out)["custom_operators"]
    assert (use["domain"], use["operator"], use["count"], use["runs"]) == ("mmcv", "cummax", 1, True)
    unknown = save(tmp_path / "unknown.onnx", "(float[N] x) => (float[N] y) { y = mmcv.NoSuch (x) }")
    assert main(["inspect", unknown, "--json"]) == 1
    (use,) = json.loads(capsys.readouterr().out)["custom_operators"]
    assert (use["runs"], use["reason"]) == (False, "detops has no such operator")
    assert main(["inspect", cummax]) == 0
    assert "mmcv::cummax" in capsys.readouterr().out
