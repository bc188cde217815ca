"""``detops run`` and the operators' part of ``detops inspect``."""

import contextlib
import io
import json
import os
import signal
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser
from PIL import Image

from detops.cli import _jobs, main
from detops.cli.run import NO_DASHBOARD
from detops.demo import DATA
from tests.support.processes import run

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
        (lambda path: [path, "--input", "x=x.npy", "--input", "x=x.npy"], "one file for each input, got 'x' twice"),
        (
            lambda path: [path, "--input", "x=x.npy", "-o", "gone/x.npz"],
            "output: expected a path in a folder that exists",
        ),
        (
            lambda path: [path, "--input", "x=x.npy", "-o", "."],
            "output: expected the path of a file, got the folder '.'",
        ),
        (lambda path: [path, "--input", "x=*.npy", "-o", "bad.txt"], "output: expected a folder for many files, got"),
        (lambda path: [DIGITS, "--input", PAGE, "--draw", "out.txt"], "draw: expected the file name of an image"),
        (
            lambda path: [DIGITS, "--input", PAGE, "--draw", "gone/x.png"],
            "draw: expected a path in a folder that exists",
        ),
        (
            lambda path: [DIGITS, "--input", "image=x.npy", "--bgr"],
            "input: expected an image, which the options prepare",
        ),
        (lambda path: [DIGITS, "--input", PAGE, "--resize", "640"], "resize: expected HEIGHTxWIDTH such as 640x640"),
        (lambda path: [DIGITS, "--input", PAGE, "--resize", "0x4"], "resize: expected HEIGHTxWIDTH such as 640x640"),
        (lambda path: [DIGITS, "--input", PAGE, "--scale", "1/0"], "scale: expected a number, got '1/0'"),
        (lambda path: [DIGITS, "--input", PAGE, "--mean", "1,nan"], "mean: expected numbers with commas between them"),
        (lambda path: [DIGITS, "--input", PAGE, "--std", "1,0,1"], "std: expected numbers other than 0, got '1,0,1'"),
        (lambda path: [DIGITS, "--input", PAGE, "--fit", "stretch"], "fit: expected --resize as well"),
        (
            lambda path: [DIGITS, "--input", PAGE, "--preset", "mmdet"],
            "mean: expected one number, or one for each of the 1",
        ),
        (
            lambda path: [path, "--input", "x=wide.npy"],
            "wide.npy: input x: expected float32, got float64, which may hold",
        ),
        (lambda path: [path, "--input", "x=huge.npy"], "out of memory (huge.npy: Unable to allocate 1.00 TiB"),
        (lambda path: [path, "--input", "x=huge.npz"], "out of memory (huge.npz: Unable to allocate 1.00 TiB"),
        (lambda path: [path, "--input", "x=two.npz"], "two.npz: expected an array 'x', got a, b"),
        (
            lambda path: [path, "--input", "x=x.npy", "--engine", "reference", "--workers", "2"],
            "workers: expected a pattern",
        ),
        (
            lambda path: ["list.onnx", "--input", "x=x.npy"],
            "input x: a file holds a tensor, and the model takes a sequence",
        ),
        (
            lambda path: ["list.onnx", "--input", PAGE.replace("image", "x")],
            "input x: a file holds a tensor, and the model",
        ),
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
    np.save("wide.npy", np.ones((1, 2)))
    np.savez("two.npz", a=np.ones(2), b=np.ones(2))
    Path("huge.npy").write_bytes(HUGE)
    with zipfile.ZipFile("huge.npz", "w") as archive:
        archive.writestr("x.npy", HUGE)
    save(Path("list.onnx"), "(seq(float[N]) x) => (int64 y) { y = SequenceLength (x) }")
    save(Path("unknown.onnx"), "(float[N] x) => (float[N] y) { y = mmcv.NoSuch (x) }")
    save(Path("missing.onnx"), "(float[N] x) => (float[N] y, int64[N] i) { y, i = mmcv.cummax (x) }")
    assert main(["run", *make(cummax)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def header(shape: tuple[int, ...]) -> bytes:
    """The beginning of an .npy that says it holds this much."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
    return file.getvalue()


HUGE = header((1 << 38,))


def array(number: int = 0) -> bytes:
    file = io.BytesIO()
    np.save(file, np.full((1, 2), number, np.float32))
    return file.getvalue()


def zipped(compression: int = zipfile.ZIP_DEFLATED, data: bytes | None = None) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        archive.writestr("x.npy", array() if data is None else data)
    return file.getvalue()


def spoiled(data: bytes, at: int, byte: int) -> bytes:
    return data[:at] + bytes([byte]) + data[at + 1 :]


# Every kind of exception that readers meet damaged files with.
BAD = {
    "text.npy": b"no array",
    "empty.npy": b"",
    "torn.npy": array()[:-3],
    "header.npy": header((2,)).replace(b"'descr': '<f4'", b"'descr': (((((("),
    "objects.npy": header((1,)).replace(b"<f4", b"|O8") + b"x",
    "huge.npy": HUGE,
    "empty.npz": b"",
    "text.npz": b"no archive",
    "torn.npz": zipped()[:60],
    "deflate.npz": spoiled(zipped(), 45, 0xFF),
    "method.npz": spoiled(zipped(), zipped().index(b"PK\1\2") + 10, 99),
    "member.npz": zipped(data=b"no array"),
    "huge.npz": zipped(data=HUGE),
    "none.npz": b"PK\5\6" + bytes(18),
    "text.png": b"no image",
    "empty.jpg": b"",
}


def many(folder: Path, count: int, bad: dict[str, bytes]) -> None:
    folder.mkdir()
    for number in range(count):
        (folder / f"{number:02}.npy").write_bytes(array(number))
    for name, data in bad.items():
        (folder / f"{name.replace('.', '-')}{Path(name).suffix}").write_bytes(data)


def check_many(folder: Path, printed: Any, bad: dict[str, bytes] = BAD) -> None:
    """Four files were run; of each bad one a line says so, and nothing else is printed."""
    assert f"4 done, 0 were there, {len(bad)} failed" in printed.out
    lines = printed.err.splitlines()
    assert len(lines) == len(bad), printed.err
    for name in bad:
        (line,) = (line for line in lines if f"{name.replace('.', '-')}{Path(name).suffix}" in line)
        assert line.startswith("detops: ")
    assert sorted(os.listdir(folder)) == ["00.npz", "01.npz", "02.npz", "03.npz"]
    assert np.load(folder / "03.npz")["y"].tolist() == [[3, 3]]


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_one_line(tmp_path: Path, cummax: str, capsys, name: str) -> None:
    (tmp_path / name).write_bytes(BAD[name])
    assert main(["run", cummax, "--input", f"x={tmp_path / name}"]) == 2
    error = capsys.readouterr().err
    assert name in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("files", ["in/*", "in"])
def test_many_files_resume(tmp_path: Path, cummax: str, capsys, files: str) -> None:
    many(tmp_path / "in", 4, BAD)
    command = ["run", cummax, "--input", f"x={tmp_path}/{files}", "-o", str(tmp_path / "out")]
    assert main(command) == 2
    check_many(tmp_path / "out", capsys.readouterr())
    (tmp_path / "out/02.npz").unlink()
    for name in os.listdir(tmp_path / "in"):
        if not name[0].isdigit():
            (tmp_path / "in" / name).unlink()
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert "1 done, 3 were there, 0 failed" in printed
    assert f"The results are in {tmp_path / 'out'}" in printed


@pytest.fixture
def dashboard_port_in_use() -> Iterator[None]:
    """The port that Dask would like is somebody's: another program's, or this one's."""
    with contextlib.suppress(OSError), socket.create_server(("", 8787)):
        yield
        return
    yield


@pytest.mark.usefixtures("dashboard_port_in_use")
def test_many_files_on_workers(tmp_path: Path, cummax: str, capfd) -> None:
    pytest.importorskip("distributed", reason='needs the extra "dask"')
    many(tmp_path / "in", 4, BAD)
    command = [
        sys.executable,
        "-m",
        "detops",
        "run",
        cummax,
        "--input",
        f"x={tmp_path}/in",
        "-o",
        str(tmp_path / "out"),
    ]
    done = subprocess.run([*command, "--workers", "1"], timeout=60, check=False)
    assert done.returncode == 2
    check_many(tmp_path / "out", capfd.readouterr())


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch) -> None:
    from detops.cli import _arrays

    monkeypatch.setattr(os, "replace", lambda *names: (_ for _ in ()).throw(OSError("no")))
    with pytest.raises(OSError, match="no"):
        _arrays.save(str(tmp_path / "out.npz"), {"x": np.ones(3)})
    assert os.listdir(tmp_path) == []


def test_workers_survive_a_killed_one(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason='needs the extra "dask"')
    pages, out = tmp_path / "pages", tmp_path / "out"
    pages.mkdir()
    page = np.asarray(Image.open(DATA / "page.png").convert("L"))
    for number in range(30):
        Image.fromarray(np.roll(page, 7 * number, 0)).save(pages / f"{number}.png")
    command = [sys.executable, "-m", "detops", "run", DIGITS, "--input", f"image={pages}/*.png", "-o"]
    alone = subprocess.run([*command, str(tmp_path / "alone")], capture_output=True, text=True, check=True, timeout=60)
    assert "30 done" in alone.stdout
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
    assert "30 done, 0 were there, 0 failed" in printed
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


@pytest.mark.usefixtures("dashboard_port_in_use")
def test_workers_of_a_cluster_that_runs(tmp_path: Path, cummax: str, capsys) -> None:
    distributed = pytest.importorskip("distributed", reason='needs the extra "dask"')
    many(tmp_path / "in", 4, BAD)
    command = ["run", cummax, "--input", f"x={tmp_path}/in/*", "-o", str(tmp_path / "out"), "--scheduler"]
    with distributed.LocalCluster(n_workers=1, processes=False, **NO_DASHBOARD) as cluster:
        assert main([*command, cluster.scheduler_address]) == 2
    check_many(tmp_path / "out", capsys.readouterr())


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


@pytest.mark.parametrize("width", ["", "80", "50"])
def test_inspect_cuts_no_names(capsys, monkeypatch, width: str) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if width:
        monkeypatch.setenv("COLUMNS", width)
    assert main(["inspect", DIGITS]) == 0
    printed = capsys.readouterr().out
    assert "…" not in printed
    assert "mmcv::MMCVModulatedDeformConv2d" in printed
    if not width:  # as in a file
        for text in ("rpn/decode_bbox", "tw, th up to 2.99573", "can be fused, or why not", "by what, or why not"):
            assert text in printed


def test_arrays_of_other_byte_order_and_smaller_types(tmp_path: Path, cummax: str) -> None:
    for dtype in (">f4", "<f2", "|u1", ">i2", "|b1"):
        np.save(tmp_path / "x.npy", np.array([[1, 0]], dtype))
        assert main(["run", cummax, "--input", f"x={tmp_path}/x.npy", "-o", f"{tmp_path}/y.npz"]) == 0
        got = np.load(tmp_path / "y.npz")["y"]
        assert (got.dtype, got.tolist()) == (np.float32, [[1, 1]])


def test_sequences_and_text_are_saved(tmp_path: Path, capsys) -> None:
    model = save(
        tmp_path / "model.onnx",
        """(float[4] x, string[N] s) => (seq(float[M]) parts, string[N] same) {
            parts = SplitToSequence <axis = 0, keepdims = 1> (x)
            same = Identity (s)
        }""",
    )
    np.savez(tmp_path / "in.npz", x=np.arange(4, dtype=np.float32), s=np.array(["häuser", "b"]))
    inputs = [item for name in "xs" for item in ("--input", f"{name}={tmp_path}/in.npz")]
    for engine in ("onnxruntime", "reference"):
        assert main(["run", model, *inputs, "--engine", engine, "-o", f"{tmp_path}/out.npz"]) == 0
        got = np.load(tmp_path / "out.npz")
        assert sorted(got.files) == ["parts.0", "parts.1", "parts.2", "parts.3", "parts.length", "same"]
        assert got["parts.length"] == 4
        assert got["parts.3"].tolist() == [3]
        assert got["same"].tolist() == ["häuser", "b"]


def test_results_that_no_file_holds_are_one_line(tmp_path: Path, capsys) -> None:
    from detops.cli import _arrays

    for value in ({"a": 1}, None, [{"a": 1.0}], np.array([{}], object), [[np.ones(2)]]):
        with pytest.raises(ValueError, match=r"^output y: expected"):
            _arrays.named_arrays({"y": value})
    with pytest.raises(ValueError, match=r"^output y: expected names that differ, got 'y\.0' twice"):
        _arrays.named_arrays({"y.0": np.ones(1), "y": [np.ones(1)]})


def test_names_with_brackets(tmp_path: Path, cummax: str) -> None:
    folder = tmp_path / "in[1]"
    many(folder, 2, {})
    (folder / "00.npy").rename(folder / "a[0].npy")
    assert main(["run", cummax, "--input", f"x={folder}/a[0].npy", "-o", f"{tmp_path}/out.npz"]) == 0
    assert (tmp_path / "out.npz").is_file()
    assert main(["run", cummax, "--input", f"x={folder}/*.npy", "-o", f"{tmp_path}/out"]) == 0
    assert sorted(os.listdir(tmp_path / "out")) == ["01.npz", "a[0].npz"]


def test_nothing_is_computed_for_a_path_that_cannot_be_written(tmp_path: Path, cummax: str, monkeypatch) -> None:

    monkeypatch.setattr(_jobs, "Model", lambda *_: pytest.fail("it was computed"))
    np.save(tmp_path / "x.npy", np.ones((1, 2), np.float32))
    assert main(["run", cummax, "--input", f"x={tmp_path}/x.npy", "-o", f"{tmp_path}/gone/x.npz"]) == 2
    page = ["run", cummax, "--input", f"x={DATA / 'page.png'}"]
    assert main([*page, "--draw", f"{tmp_path}/gone/x.png"]) == 2
    assert main([*page, "--draw", f"{tmp_path}/x.nothing"]) == 2


def test_results_that_are_not_saved_are_said(tmp_path: Path, cummax: str, capsys) -> None:
    np.save(tmp_path / "x.npy", np.ones((1, 2), np.float32))
    assert main(["run", cummax, "--input", f"x={tmp_path}/x.npy"]) == 0
    assert "The results are not saved: -o OUT.npz does" in capsys.readouterr().out


def test_what_is_done_to_an_image_is_said(tmp_path: Path, capsys) -> None:
    model = save(tmp_path / "echo.onnx", "(float[N, C, H, W] x) => (float[N, C, H, W] y) { y = Identity (x) }")
    color = np.array([[[10, 20, 30], [40, 50, 60]]], np.uint8)
    Image.fromarray(color).save(tmp_path / "x.png")
    command = ["run", model, "--input", f"x={tmp_path}/x.png", "-o", f"{tmp_path}/y.npz"]
    assert main([*command, "--resize", "4x4", "--bgr", "--scale", "1/2", "--mean", "1,2,3", "--std", "2"]) == 0
    said = "float32 (1, 3, 4, 4) from 1x2 RGB, resized to 2x4, at row 1, column 0 of 4x4, levels / 2, minus 1, 2, 3, "
    assert f"{said}divided by 2, BGR" in capsys.readouterr().out
    got = np.load(tmp_path / "y.npz")["y"]
    assert got[0, :, 1, 0].tolist() == [7, 4, 1]  # (level / 2 - mean) / 2
    assert got[0, :, 0, 0].tolist() == [28, 27.5, 27]  # of 114
    assert main([*command, "--preset", "yolox", "--resize", "2x2"]) == 0
    assert np.load(tmp_path / "y.npz")["y"][0, :, :, 0].tolist() == [[30, 114], [20, 114], [10, 114]]


def test_dimensions_that_exporters_leave_open(tmp_path: Path, capsys) -> None:
    Image.fromarray(np.zeros((2, 3, 3), np.uint8)).save(tmp_path / "x.png")
    model = onnx.load(save(tmp_path / "m.onnx", "(float[1, 3, H, W] x) => (float[N, C, I, J] y) { y = Identity (x) }"))
    for height, width in ((0, 0), (-1, -1), (2, -1)):
        for axis, length in ((2, height), (3, width)):
            model.graph.input[0].type.tensor_type.shape.dim[axis].dim_value = length
        onnx.save(model, tmp_path / "m.onnx")
        command = ["run", str(tmp_path / "m.onnx"), "--input", f"x={tmp_path}/x.png", "--engine", "reference"]
        assert main(command) == 0, capsys.readouterr().err


def boxes_model(path: Path) -> str:
    """A model that finds one box, in the left half of an image of 40 by 40."""
    return save(
        path,
        """(float[1, 1, 40, 40] image) => (float[1, 5] dets, int64[1] labels)
        <float[1, 5] dets = {0.0, 10.0, 20.0, 30.0, 0.75}, int64[1] labels = {1}> { unused = Identity (image) }""",
    )


def test_boxes_are_drawn_where_they_are_in_the_picture(tmp_path: Path, capsys) -> None:
    model = onnx.load(boxes_model(tmp_path / "model.onnx"))
    onnx.helper.set_model_props(model, {"names": "{0: 'cat', 1: 'dog'}"})
    onnx.save(model, tmp_path / "model.onnx")
    Image.new("L", (800, 400), 255).save(tmp_path / "x.png")
    command = ["run", str(tmp_path / "model.onnx"), "--input", f"image={tmp_path}/x.png", "--draw", f"{tmp_path}/y.png"]
    assert main([*command, "--resize", "40x40"]) == 0
    assert f"The picture is in {tmp_path}/y.png" in capsys.readouterr().out
    with Image.open(tmp_path / "y.png") as image:
        drawn = np.asarray(image)
    assert drawn.shape == (400, 800, 3)
    rows, columns = np.nonzero((drawn != 255).any(axis=2))
    # the box, of the whole left half; its label fits nowhere but inside
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (0, 399, 0, 400)
    assert np.unique(drawn[200, :400].reshape(-1, 3), axis=0).shape == (2, 3)


BOXES = np.array([[0, 0, 4, 5], [1, 1, 2, 2]], np.float32)
SCORES = np.array([1, 1], np.float32)
LABELS = np.array([1, 0], np.int64)


@pytest.mark.parametrize(
    ("results", "metadata", "texts"),
    [
        ({"1": BOXES, "2": SCORES, "3": LABELS}, {}, ["1 1.00", "0 1.00"]),
        ({"1": SCORES, "2": LABELS, "boxes": BOXES, "3": BOXES + 1}, {}, ["1 1.00", "0 1.00"]),
        ({"dets": np.c_[BOXES, SCORES][None], "labels": LABELS[None]}, {}, ["1 1.00", "0 1.00"]),
        ({"dets": np.c_[BOXES, SCORES / 4]}, {"labels": '["a", "b"]'}, ["0.25", "0.25"]),
        ({"output0": np.c_[BOXES, SCORES / 2, LABELS][None]}, {"names": "{0: 'a'}"}, ["1 0.50", "a 0.50"]),
        ({"x": BOXES, "y": LABELS}, {"labels": '["a", "b"]', "draw": "{", "names": "f()"}, ["b", "a"]),
        ({"boxes": BOXES + 1, "x": BOXES}, {"draw": '{"boxes": "x"}'}, ["", ""]),
        ({"boxes": BOXES[:0], "scores": SCORES[:0]}, {}, []),
    ],
)
def test_boxes_are_found_among_results(results, metadata, texts: list[str]) -> None:

    found = _jobs.found({name: np.asarray(array) for name, array in results.items()}, metadata)
    assert found.texts == texts
    np.testing.assert_array_equal(found.boxes, BOXES[: len(texts)])


def test_many_pictures_are_drawn(tmp_path: Path, capsys) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    for name in ("a.png", "b.jpg"):
        Image.new("L", (80, 40), 255).save(pages / name)
    (pages / "notes.txt").write_text("no image")
    command = ["run", boxes_model(tmp_path / "model.onnx"), "--input", f"image={pages}", "--resize", "40x40"]
    assert main([*command, "--draw", f"{tmp_path}/drawn"]) == 0
    printed = capsys.readouterr().out
    assert sorted(os.listdir(tmp_path / "drawn")) == ["a.png", "b.png"]
    for line in (f"The pictures are in {tmp_path}/drawn", "The results are not saved", "images: letterbox to 40x40"):
        assert line in printed
    assert main([*command, "--draw", f"{tmp_path}/drawn", "-o", f"{tmp_path}/out"]) == 0
    assert "2 done, 0 were there" in capsys.readouterr().out
    assert main([*command, "--draw", f"{tmp_path}/drawn", "-o", f"{tmp_path}/out"]) == 0
    assert "0 done, 2 were there" in capsys.readouterr().out


def test_labels_do_not_cover_each_other() -> None:
    from detops import _draw

    places = _draw._Places((300, 200))
    for box in [(100, 100, 120, 110)] * 20 + [(-5, -5, 400, 300), (290, 190, 300, 200)]:
        left, top = places.take(box, 60, below=False)
        assert 0 <= left <= 240
        assert 0 <= top <= 180
    for i, one in enumerate(places.taken):
        for other in places.taken[:i]:
            assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


def test_out_of_memory_is_one_line(tmp_path: Path, capsys) -> None:
    model = save(
        tmp_path / "model.onnx", "(int64[N] x) => (float[M] y) { y = ConstantOfShape <value = float {1.0}> (x) }"
    )
    np.save(tmp_path / "x.npy", np.array([1 << 38], np.int64))
    for engine in ("onnxruntime", "reference"):
        assert main(["run", model, "--input", f"x={tmp_path}/x.npy", "--engine", engine]) == 2
        error = capsys.readouterr().err
        assert error.startswith("detops: ")
        assert error.count("\n") == 1


def test_a_node_without_outputs_is_one_line(tmp_path: Path, capsys) -> None:
    model = onnx.load(save(tmp_path / "m.onnx", "(float[N] x) => (float[N] y) { y = mmcv.cummax (x) }"))
    del model.graph.node[0].output[:]
    onnx.save(model, tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", np.ones(2, np.float32))
    assert main(["run", str(tmp_path / "m.onnx"), "--input", f"x={tmp_path}/x.npy"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no such signals here")
@pytest.mark.parametrize("workers", [[], ["--workers", "1"]])
def test_termination_leaves_nothing_unfinished(tmp_path: Path, cummax: str, workers: list[str]) -> None:
    if workers:
        pytest.importorskip("distributed", reason='needs the extra "dask"')
    many(tmp_path / "in", 1, {})
    for number in range(1, 5000):
        os.link(tmp_path / "in/00.npy", tmp_path / f"in/{number:04}.npy")
    out = tmp_path / "out"
    command = [sys.executable, "-m", "detops", "run", cummax, "--input", f"x={tmp_path}/in", "-o", str(out), *workers]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        give_up = time.monotonic() + 60
        while process.poll() is None and not list(out.glob("*.npz")):
            assert time.monotonic() < give_up
            time.sleep(0.01)
        process.terminate()
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 128 + signal.SIGTERM, said
    left = os.listdir(out)
    assert 0 < len(left) < 5000
    assert all(name.endswith(".npz") and not name.startswith(".") for name in left)


SWALLOWED = """
import signal
from detops.cli import _jobs, main
from detops.cli.run import NO_DASHBOARD
from detops.cli._jobs import Job

class Last:
    def __del__(self):
        signal.raise_signal(signal.SIGTERM)

run = Job.run
def run_and_finalize(*arguments):
    Last()
    return run(*arguments)

Job.run = run_and_finalize
sys.exit(main(sys.argv[1:]))
"""


def test_termination_that_python_swallows(tmp_path: Path, cummax: str) -> None:
    """An exception in a finalizer is only printed; the command ends nevertheless."""
    many(tmp_path / "in", 3, {})
    done = run(SWALLOWED, "run", cummax, "--input", f"x={tmp_path}/in", "-o", str(tmp_path / "out"))
    assert done.returncode == 128 + signal.SIGTERM, done.stderr
    assert os.listdir(tmp_path / "out") == ["00.npz"]


def test_the_command_names_what_is_missing(tmp_path: Path, cummax: str) -> None:
    np.save(tmp_path / "x.npy", np.ones((1, 2), np.float32))
    for command in (
        ["inspect", cummax],
        ["run", cummax, "--input", f"x={tmp_path}/x.npy"],
        ["fuse", cummax, "-o", "x"],
    ):
        done = run("import runpy, sys; runpy.run_module('detops', run_name='__main__')", *command, blocked=("onnx",))
        assert done.returncode == 2, done.stderr
        assert "the extra 'cli' of detops brings it: in a clone, pip install \".[cli]\"" in done.stderr
        assert done.stderr.count("\n") == 1
