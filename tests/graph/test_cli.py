"""The commands: what they print, what they write, and their exit codes."""

import argparse
import json
from pathlib import Path
from typing import Any

import onnx
import pytest

from detops.graph import cli, report

from .models import DATA, decode_model, operators


def run(*words: Any) -> int:
    top = argparse.ArgumentParser()
    cli.add_parsers(top.add_subparsers(required=True))
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


def test_a_section_of_another_part_is_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "_makers", list(report._makers))
    report.add_section(lambda path: report.Section("operators", ["Relu"], lambda: "a table", good=False))
    report.add_section(lambda path: None)
    assert run("inspect", DATA / "pos_half.onnx") == 1
    assert "a table" in capsys.readouterr().out
    run("inspect", DATA / "pos_half.onnx", "--json")
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


def test_fuse_into_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nowhere"):
        run("fuse", DATA / "pos_half.onnx", "-o", tmp_path / "nowhere" / "out.onnx")


def test_weights_in_another_file_come_along(tmp_path: Path) -> None:
    import numpy as np

    source, target = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    target.mkdir()
    weight = {"weight": np.ones((6, 4), np.float32)}
    model = decode_model({"rows": "added = Add(d, weight)\nrows = Reshape(added, form)"}, weight)
    onnx.save(model, source / "model.onnx", save_as_external_data=True, location="w.bin", size_threshold=64)
    assert run("fuse", source / "model.onnx", "-o", source / "fused.onnx") == 0
    assert run("fuse", source / "model.onnx", "-o", target / "fused.onnx") == 0
    assert [path.name for path in target.iterdir()] == ["fused.onnx"]
    for path in (source / "fused.onnx", target / "fused.onnx"):
        fused = onnx.load(path)
        assert onnx.numpy_helper.to_array(fused.graph.initializer[0]).tolist() == weight["weight"].tolist()
    (source / "w.bin").unlink()
    with pytest.raises(ValueError, match="external data cannot be read"):
        run("fuse", source / "model.onnx", "-o", target / "again.onnx")
