"""Every graph of the collection, as ONNX: fused or refused as its index says, and the same numbers before and after."""

import numpy as np
import onnx
import pytest

from detops.graph import find_decode_bbox, fuse_decode_bbox

from .models import DATA, check_valid, golden, index, names, operators, run

REASONS = {
    "neg_clip_tensor": "'clip:0', which is not a constant",
    "neg_concat_batch_axis": "boxes are mixed",
    "neg_concat_order": "corners come in the order x2, y2, x1, y1",
    "neg_inner_used_outside": "is read outside it, by scale_sum",
    "neg_maximum": "Maximum in place of Minimum",
    "neg_min_on_xy": "act on tx and ty",
    "neg_split_axis": "both axes are mixed",
    "neg_transpose_wrong_inverse": "isn't the inverse of",
}
TENSORPACK = sorted(name for name, entry in index().items() if entry["fuse"] and "op" not in entry)


def test_the_table_of_reasons_is_complete() -> None:
    decoys = {name for name, entry in index().items() if not entry["fuse"] and not entry.get("seed_only")}
    assert decoys == set(REASONS)


@pytest.mark.parametrize("name", sorted(REASONS))
def test_decoy_is_refused_with_its_reason(name: str) -> None:
    model = onnx.load(DATA / f"{name}.onnx")
    fused, findings = fuse_decode_bbox(model)
    assert [finding.fused for finding in findings] == [False]
    assert REASONS[name] in findings[0].reason
    assert findings[0].operator is None
    assert findings[0].scope == index()[name]["scope"]
    assert fused == model


@pytest.mark.parametrize(
    "name", sorted(name for name, entry in index().items() if entry["fuse"] or entry.get("seed_only"))
)
def test_decode_is_fused(name: str) -> None:
    # ONNX has no scopes: what only the scope rule forbids (seed_only) is a decode here
    entry = index()[name]
    model = onnx.load(DATA / f"{name}.onnx")
    untouched = model.SerializeToString()
    fused, findings = fuse_decode_bbox(model)
    assert model.SerializeToString() == untouched
    assert [finding.fused for finding in findings] == [True] * entry.get("n_fuse", 1)
    for finding in findings:
        assert finding.operator == entry.get("op", "DecodeBbox")
        assert finding.axis == entry.get("axis", -1)
        assert finding.classes == 1
        assert finding.reason == ""
        assert finding.scales == tuple(entry.get("scales", (1, 1, 1, 1)))
        assert finding.means == (0, 0, 0, 0)
        half = entry.get("dtype") == "float16"
        assert finding.decode_clip == entry.get("decode_clip", 4.421875 if half else 4.422598361968994)
    assert operators(fused).count(entry.get("op", "DecodeBbox")) == len(findings)
    assert "Exp" not in operators(fused)
    check_valid(fused)
    assert fused.graph.input == model.graph.input
    assert fused.graph.output == model.graph.output
    feeds, wanted = golden(name, ":0")
    before, after = run(model, feeds), run(fused, feeds)
    for output, left, right in zip(names(model.graph.output), before, after, strict=True):
        if "op" in entry:
            np.testing.assert_allclose(left, right, rtol=0, atol=4 * np.finfo(np.float32).eps * np.abs(left).max())
        else:
            np.testing.assert_array_equal(left, right)
        loose = 4e-3 if half else 2e-6
        np.testing.assert_allclose(right, wanted[output], rtol=loose, atol=loose * np.abs(wanted[output]).max())


@pytest.mark.parametrize("name", TENSORPACK)
def test_tensorpack_form_is_bit_equal_beyond_the_golden_inputs(name: str) -> None:
    model = onnx.load(DATA / f"{name}.onnx")
    fused, _ = fuse_decode_bbox(model)
    random = np.random.default_rng(5)
    feeds, _ = golden(name, ":0")
    for _ in range(3):
        for key, value in feeds.items():
            feeds[key] = random.normal(0, 3, value.shape).astype(value.dtype)
        for left, right in zip(run(model, feeds), run(fused, feeds), strict=True):
            np.testing.assert_array_equal(left, right)


def test_nan_and_infinity_are_bit_equal_too() -> None:
    model = onnx.load(DATA / "pos_concat_last_axis.onnx")
    fused, _ = fuse_decode_bbox(model)
    feeds, _ = golden("pos_concat_last_axis", ":0")
    feeds["box_logits:0"][0] = [np.nan, 1, 1, np.nan]
    feeds["box_logits:0"][1] = [np.inf, 1, -np.inf, np.inf]
    np.testing.assert_array_equal(run(model, feeds)[0], run(fused, feeds)[0])


def test_three_levels_share_one_function_and_lose_what_they_shared() -> None:
    fused, findings = fuse_decode_bbox(onnx.load(DATA / "pos_fpn_3_levels.onnx"))
    assert sorted(operators(fused)) == ["Concat", "DecodeBbox", "DecodeBbox", "DecodeBbox", "Mul", "Mul"]
    assert [function.name for function in fused.functions] == ["DecodeBbox"]
    assert names(fused.graph.initializer) == [
        "fpn/level_2/decode_bbox_target/mul/y:0",
        "fpn/level_1/decode_bbox_target/mul/y:0",
    ]
    assert {finding.anchors for finding in findings} == {"anchors:0"}


def test_fusing_twice_changes_nothing_more() -> None:
    fused, _ = fuse_decode_bbox(onnx.load(DATA / "pos_half.onnx"))
    again, findings = fuse_decode_bbox(fused)
    assert findings == []
    assert again == fused


@pytest.mark.parametrize("name", ["pos_half", "neg_maximum"])
def test_find_and_fuse_report_the_same(name: str) -> None:
    path = DATA / f"{name}.onnx"
    assert find_decode_bbox(path) == fuse_decode_bbox(path.read_bytes())[1]


def test_kind_of_result_is_kind_of_input() -> None:
    path = DATA / "pos_half.onnx"
    assert isinstance(fuse_decode_bbox(onnx.load(path))[0], onnx.ModelProto)
    for model in (path, str(path), path.read_bytes()):
        fused, _ = fuse_decode_bbox(model)
        assert isinstance(fused, bytes)
        assert operators(onnx.load_model_from_string(fused)) == ["DecodeBbox"]
