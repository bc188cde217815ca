"""The numeric check: a second net below the proof."""

import sys
from typing import Any

import numpy as np
import onnx
import pytest

from detops.graph import fuse_decode_bbox
from detops.graph.check import _check
from detops.graph.model._load import load
from detops.graph.search._find import find_in

from .models import DATA, decode_model


def test_what_ran_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    (_, (finding,)) = fuse_decode_bbox(decode_model())
    assert finding.checked == "onnxruntime"
    (_, (finding,)) = fuse_decode_bbox((DATA / "pos_half.pb").read_bytes())
    assert finding.checked in ("tensorflow", "numpy")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    (_, (finding,)) = fuse_decode_bbox(decode_model())
    assert finding.checked == "onnx.reference"
    (_, (finding,)) = fuse_decode_bbox(decode_model({"clip": "bounded = Max(s, clip)"}))
    assert finding.checked == ""


@pytest.mark.parametrize("tensor", ["size", "sum"])
def test_cancellation_is_seen_on_small_boxes(tensor: str) -> None:
    """Adding and subtracting 4096 changes nothing on paper, and loses the digits of boxes between 0 and 1."""
    line = {"size": "size_exact = Sub(hi, lo)", "sum": "sum_exact = Add(hi, lo)"}[tensor]
    lines = {tensor: f"{line}\nmore = Add({tensor}_exact, big)\n{tensor} = Sub(more, big)"}
    model = decode_model(lines, {"big": np.float32(4096)})
    fused, (finding,) = fuse_decode_bbox(model)
    assert not finding.fused
    assert "numeric check: element" in finding.reason
    assert fused == model


@pytest.mark.parametrize("change", [1.002, 0.998])
def test_half_precision_is_checked_in_float64(change: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """In float16 the tolerance is pixels wide. A wrong factor of 0.2 % passes there, and not in float64."""
    kind = "float16[N,4]"
    model = decode_model(
        {}, {"clip": np.float16(4)}, inputs=f"{kind} d, {kind} b", outputs=f"{kind} out", dtype=np.float16
    )
    loaded = load(model)
    (graph,) = loaded.graphs
    (result,) = find_in(graph)
    assert result.proof is not None
    _check.check(graph, result.proof)
    models = _check._run_onnx.models

    def wrong(graph: Any, proof: Any) -> Any:
        before, after = models(graph, proof)
        for tensor in before.graph.initializer:
            if tensor.name == "half":
                value = np.array(0.5 * change, np.float16)
                tensor.CopyFrom(onnx.numpy_helper.from_array(value, "half"))
        return before, after

    monkeypatch.setattr(_check._run_onnx, "models", wrong)
    with pytest.raises(_check.Refusal, match="numeric check: element"):
        _check.check(graph, result.proof)
    pairs = _check._pairs
    monkeypatch.setattr(_check, "_pairs", lambda *given: list(pairs(*given))[:1])
    _check.check(graph, result.proof)


def test_sizes_next_to_every_integer_are_tried() -> None:
    shape = "whole = Shape(b)\nlimit = Mul(twenty, fifty)\nat = Equal(limit, zero)\nshape = Where(at, zero, whole)"
    numbers = {name: np.array([value]) for name, value in (("twenty", 20), ("fifty", 50), ("zero", 0))}
    graph = load(decode_model({"shape": shape}, numbers)).graphs[0]
    proof = find_in(graph)[0].proof
    assert proof is not None
    tried = {shapes[0][0] for shapes in _check._sizes(graph, proof)}
    assert {999, 1000, 1001} <= tried
    assert {1, 6, 7, 11} <= tried
    grid = decode_model({}, {}, inputs="float[H,W,4] d, float[H,W,4] b", outputs="float[H,W,4] out")
    graph = load(grid).graphs[0]
    proof = find_in(graph)[0].proof
    assert proof is not None
    shapes = [shapes[0][:2] for shapes in _check._sizes(graph, proof)]
    assert any(height == width > 1 for height, width in shapes)
    assert any(height == 1 < width for height, width in shapes)
    assert any(width == 1 < height for height, width in shapes)
