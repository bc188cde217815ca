"""The commands: what they print, what they write, and their exit codes."""

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from detops.cli import decodes, models
from detops.graph.model import _external
from detops.graph.model._tf_schema import messages

from .anchor_forms import form_model
from .models import DATA, decode_model, operators


def run(*words: Any) -> int:
    top = argparse.ArgumentParser()
    models.add_parsers(top.add_subparsers(required=True))
    arguments = top.parse_args([str(word) for word in words])
    return arguments.run(arguments)


def test_inspect_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("inspect", DATA / "v2_od_api_min80.pb") == 0
    text = capsys.readouterr().out
    for word in ("Postprocessor", "DecodeBboxV2", "last axis", "80", "10, 10, 5, 5", "yes"):
        assert word in text


def test_inspect_says_why_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("inspect", DATA / "neg_maximum.pb") == 0
    words = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "not proved" in words
    assert "Maximum in place" in words


def test_inspect_says_what_anchors_are(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    onnx.save(form_model("py_faster_rcnn"), tmp_path / "model.onnx")
    assert run("inspect", tmp_path / "model.onnx") == 0
    assert "of anchors + (0, 0, 1, 1)" in " ".join(capsys.readouterr().out.split())
    for name, words, form in (
        ("ssd_center", "anchors by center and size", ("center", 0)),
        ("maskrcnn_benchmark", "offset 1: widths count pixels", ("corner", 1)),
    ):
        path = DATA / "exports" / f"{name}.ts.onnx"
        assert run("inspect", path) == 0
        assert words in " ".join(capsys.readouterr().out.split())
        assert run("inspect", path, "--json") == 0
        (decode,) = json.loads(capsys.readouterr().out)["box_decodes"]["decodes"]
        assert (decode["anchor_form"], decode["offset"]) == form


def test_inspect_without_a_decode(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("inspect", DATA / "exports" / "dist.dyn.onnx") == 0
    assert "none found" in capsys.readouterr().out


def test_inspect_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    path = DATA / "pos_with_clip_boxes.onnx"
    assert run("inspect", path, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["model"] == str(path)
    (decode,) = document["box_decodes"]["decodes"]
    assert decode["fused"] is True
    assert decode["decode_clip"] == 4.422598361968994
    assert decode["scales"] == [1, 1, 1, 1]
    named = [node.name for node in onnx.load(path).graph.node if "clip_boxes" not in node.name]
    assert sorted(document["box_decodes"]["leave_alone"]) == sorted(named)


def test_a_section_that_says_no_is_exit_code_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    section = decodes.Section("operators", ["Relu"], lambda: "a table", good=False)
    monkeypatch.setattr("detops.cli.operators.operators_section", lambda path: section)
    assert run("inspect", DATA / "pos_half.onnx") == 1
    assert "a table" in capsys.readouterr().out
    assert run("inspect", DATA / "pos_half.onnx", "--json") == 1
    assert json.loads(capsys.readouterr().out)["operators"] == ["Relu"]


def test_fuse_writes_the_model_and_says_what_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "fused.onnx"
    assert run("fuse", DATA / "pos_fpn_3_levels.onnx", "-o", target) == 0
    assert operators(onnx.load(target)).count("DecodeBbox") == 3
    text = capsys.readouterr().out
    assert "fused 3 of 3, 48 nodes before, 6 after" in text
    assert list(tmp_path.iterdir()) == [target]


def test_fuse_writes_nothing_where_there_is_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "fused.pb"
    assert run("fuse", DATA / "neg_split_axis.pb", "-o", target) == 1
    assert not target.exists()
    assert "nothing to fuse" in capsys.readouterr().out


def test_fuse_onto_itself(tmp_path: Path) -> None:
    path = tmp_path / "model.pb"
    path.write_bytes((DATA / "pos_half.pb").read_bytes())
    assert run("fuse", path, "-o", path) == 0
    assert run("fuse", path, "-o", path) == 1


@pytest.mark.parametrize("words", [("inspect", "nothing.onnx"), ("fuse", "nothing.onnx", "-o", "out.onnx")])
def test_bad_input_raises_what_the_command_line_catches(words: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"model: cannot read 'nothing\.onnx'"):
        run(*words)


def saved_model(folder: Path, name: str = "pos_half") -> Path:
    saved = messages()["SavedModel"](saved_model_schema_version=1)
    saved.meta_graphs.add().graph_def.ParseFromString((DATA / f"{name}.pb").read_bytes())
    (folder / "assets" / "deep").mkdir(parents=True)
    (folder / "assets" / "deep" / "classes.txt").write_text("cat")
    (folder / "fingerprint.pb").write_text("of another graph")
    (folder / "saved_model.pb").write_bytes(saved.SerializeToString())
    return folder


@pytest.mark.parametrize("exists", [False, True])
def test_fuse_of_a_saved_model_writes_its_folder(tmp_path: Path, exists: bool) -> None:
    source, target = saved_model(tmp_path / "source"), tmp_path / "target"
    if exists:
        target.mkdir()
    before = (source / "saved_model.pb").read_bytes()
    assert run("fuse", source, "-o", target) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source", "target"]
    assert sorted(path.name for path in target.iterdir()) == ["assets", "saved_model.pb"]
    assert (target / "assets" / "deep" / "classes.txt").read_text() == "cat"
    fused = messages()["SavedModel"].FromString((target / "saved_model.pb").read_bytes())
    assert "DecodeBbox" in {node.op for node in fused.meta_graphs[0].graph_def.node}
    assert (source / "saved_model.pb").read_bytes() == before
    assert run("fuse", target, "-o", tmp_path / "again") == 1
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("source", "empty or not there yet"),
        ("source/inside", "not inside the model's own"),
        ("full", "empty or not there yet"),
        ("file", "expected a folder"),
        ("nowhere/target", "in a folder that exists"),
    ],
)
def test_fuse_of_a_saved_model_overwrites_nothing(tmp_path: Path, target: str, reason: str) -> None:
    source = saved_model(tmp_path / "source")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    (tmp_path / "file").touch()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ValueError, match=f"^output: .*{reason}"):
        run("fuse", source, "-o", tmp_path / target)
    assert sorted(tmp_path.rglob("*")) == before


def test_fuse_of_a_saved_model_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = saved_model(tmp_path / "source")
    monkeypatch.setattr(os, "replace", _full)
    with pytest.raises(OSError, match="full"):
        run("fuse", source, "-o", tmp_path / "target")
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def _full(*_: Any) -> None:
    raise OSError("the disk is full")


def test_fuse_into_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"output: expected a path in a folder that exists, got '.*nowhere"):
        run("fuse", DATA / "pos_half.onnx", "-o", tmp_path / "nowhere" / "out.onnx")


def model_with_a_weight(folder: Path) -> Path:
    """A decode, after which a weight is added that is in a file of its own."""
    folder.mkdir()
    weight = {"weight": np.arange(24, dtype=np.float32).reshape(6, 4)}
    model = decode_model({"rows": "added = Add(d, weight)\nrows = Reshape(added, form)"}, weight)
    onnx.save(model, folder / "model.onnx", save_as_external_data=True, location="w.bin", size_threshold=64)
    return folder / "model.onnx"


@pytest.mark.parametrize("limit", [None, 1000])
def test_weights_in_another_file_come_along(tmp_path: Path, monkeypatch, limit: int | None) -> None:
    source, target = model_with_a_weight(tmp_path / "in"), tmp_path / "out"
    target.mkdir()
    if limit is not None:
        monkeypatch.setattr(_external, "LIMIT", limit)
    assert run("fuse", source, "-o", source.with_name("fused.onnx")) == 0
    assert run("fuse", source, "-o", target / "fused.onnx") == 0
    files = ["fused.onnx"] if limit is None else ["fused.onnx", "fused.onnx.data"]
    assert sorted(path.name for path in target.iterdir()) == files
    for path in (source.with_name("fused.onnx"), target / "fused.onnx"):
        fused = onnx.load(path)
        assert onnx.numpy_helper.to_array(fused.graph.initializer[0]).ravel().tolist() == list(range(24))


def test_weights_of_more_than_two_gigabytes(tmp_path: Path) -> None:
    """They are in a file with a hole: few bytes are written, and none are held in memory."""
    source, target = model_with_a_weight(tmp_path / "in"), tmp_path / "out"
    target.mkdir()
    model, length = onnx.load(source, load_external_data=False), (1 << 31) + 4096
    with open(source.with_name("large.bin"), "wb") as file:
        file.truncate(4096 + length - 4)
        file.seek(0, 2)
        file.write(b"last")
    large = model.graph.initializer.add(name="large", data_type=onnx.TensorProto.UINT8, dims=[length])
    large.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", "large.bin"), ("offset", 4096), ("length", length)):
        large.external_data.add(key=key, value=str(value))
    model.graph.node.add(op_type="Identity", input=["large"], output=["same"], name="large")
    model.graph.output.add(name="same").type.tensor_type.elem_type = onnx.TensorProto.UINT8
    source.write_bytes(model.SerializeToString())
    assert run("fuse", source, "-o", target / "fused.onnx") == 0
    fused = onnx.load(target / "fused.onnx", load_external_data=False)
    for tensor in fused.graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            places = {entry.key: entry.value for entry in tensor.external_data}
            assert places["location"] == "fused.onnx.data"
            with open(target / "fused.onnx.data", "rb") as file:
                file.seek(int(places["offset"]) + int(places["length"]) - 4)
                last = file.read(4)
            assert last == (b"last" if tensor.name == "large" else np.float32(23).tobytes())
    assert os.stat(target / "fused.onnx.data").st_size > length


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("gone.bin", r"'weight' are expected in the file '.*gone\.bin', which is not there"),
        ("short.bin", r"'weight' go to byte 96 of '.*short\.bin', which has 5"),
        ("../in/w.bin", r"'weight' are expected in a file below its folder, got '\.\./in/w\.bin'"),
        ("", r"'weight' are expected in a file below its folder, got '\.'"),
    ],
)
@pytest.mark.parametrize("folder", ["in", "out"])
def test_weights_that_are_missing(tmp_path: Path, folder: str, location: str, message: str) -> None:
    source = model_with_a_weight(tmp_path / "in")
    (tmp_path / "out").mkdir()
    source.with_name("short.bin").write_bytes(b"short")
    model = onnx.load(source, load_external_data=False)
    (weight,) = (each for each in model.graph.initializer if each.name == "weight")
    for entry in weight.external_data:
        if entry.key == "location":
            entry.value = location
    source.write_bytes(model.SerializeToString())
    with pytest.raises(ValueError, match=f"model: the data of {message}"):
        run("fuse", source, "-o", tmp_path / folder / "fused.onnx")
    assert not list(tmp_path.rglob("fused*"))


def test_a_model_that_cannot_be_written_leaves_no_weights(tmp_path: Path, monkeypatch) -> None:
    source = model_with_a_weight(tmp_path / "in")
    (tmp_path / "out").mkdir()
    monkeypatch.setattr(_external, "LIMIT", 1000)
    written = []

    def replace(partial: Path, path: Path) -> None:
        written.append(path.name)
        raise OSError("no")

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(OSError, match="no"):
        run("fuse", source, "-o", tmp_path / "out/fused.onnx")
    assert written == ["fused.onnx"]
    assert not list((tmp_path / "out").iterdir())
