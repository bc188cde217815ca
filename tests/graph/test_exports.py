"""What exporters write today: torchvision, MMDetection, Detectron2, and the forms that the node cannot express."""

import numpy as np
import onnx
import pytest

from detops.graph import find_decode_bbox, fuse_decode_bbox

from .models import DATA, boxes, check_valid, operators, predictions, run

EXPORTS = DATA / "exports"
CLIP = 4.135166645050049
FOUND = {
    "tv_single_c3.ts": (3, None),
    "tv_single_c3.dyn": (3, None),
    "d2_stack.ts": (3, None),
    "mm_plain.ts": (1, -CLIP),
    "mm_plain.dyn": (1, -CLIP),
}


@pytest.mark.parametrize("name", sorted(FOUND))
def test_export_is_fused(name: str) -> None:
    model = onnx.load(EXPORTS / f"{name}.onnx")
    fused, (finding,) = fuse_decode_bbox(model)
    classes, lower = FOUND[name]
    assert finding.fused
    assert (finding.box_predictions, finding.anchors, finding.decoded_boxes) == ("d", "b", "out")
    assert (finding.operator, finding.classes, finding.axis) == ("DecodeBboxV2", classes, -1)
    assert (finding.decode_clip, finding.lower_clip) == (CLIP, lower)
    assert finding.scales == (10, 10, 5, 5)
    assert operators(fused) == ["DecodeBboxV2"]
    assert list(fused.graph.initializer) == []
    check_valid(fused)
    with np.load(EXPORTS / f"{name.split('.')[0]}.npz") as file:
        feeds, wanted = {"d": file["d"], "b": file["b"]}, file["out"]
    before, after = run(model, feeds)[0], run(fused, feeds)[0]
    scale = np.abs(before).max()
    np.testing.assert_allclose(before, after, rtol=0, atol=4 * np.finfo(np.float32).eps * scale)
    np.testing.assert_allclose(after, wanted, rtol=0, atol=4 * np.finfo(np.float32).eps * scale)
    empty = {key: value[:0] for key, value in feeds.items()}
    if name not in ("mm_plain.ts", "d2_stack.ts"):  # which cannot run without boxes themselves: a Reshape to (0, -1)
        assert run(model, empty)[0].shape == run(fused, empty)[0].shape == wanted[:0].shape


def test_mmdetection_s_yolox_is_fused() -> None:
    """Its points and strides are centers and sizes."""
    model = onnx.load(EXPORTS / "mm_yolox.ts.onnx")
    fused, (finding,) = fuse_decode_bbox(model)
    assert (finding.fused, finding.anchor_form, finding.decode_clip, finding.decoded_boxes) == (
        True,
        "center",
        None,
        "out",
    )
    random = np.random.default_rng(0)
    feeds = {"a": random.normal(size=(1, 8, 8, 8)), "c": random.normal(size=(1, 8, 4, 4))}
    feeds = {name: value.astype(np.float32) for name, value in feeds.items()}
    before = run(model, feeds)[0]
    np.testing.assert_allclose(
        run(fused, feeds)[0], before, rtol=0, atol=8 * np.finfo(np.float32).eps * np.abs(before).max()
    )


@pytest.mark.parametrize(
    ("name", "reason"),
    [("dist.ts", "distances"), ("dist.dyn", "distances")],
)
def test_other_forms_are_not_claimed(name: str, reason: str) -> None:
    model = onnx.load(EXPORTS / f"{name}.onnx")
    fused, findings = fuse_decode_bbox(model)
    assert not any(finding.fused for finding in findings)
    assert [reason in finding.reason for finding in findings] == [True]
    assert fused == model


@pytest.mark.parametrize("name", ["tv_single_c3.ts", "d2_stack.ts"])
@pytest.mark.parametrize("place", [0, 1])
def test_open_width_is_refused(name: str, place: int) -> None:
    """Columns are picked: five columns of anchors do as well as four, and one of predictions gives no boxes at all."""
    model = onnx.load(EXPORTS / f"{name}.onnx")
    model.graph.input[place].type.tensor_type.shape.dim[1].dim_param = "width"
    fused, findings = fuse_decode_bbox(model)
    assert [finding.fused for finding in findings] == [False]
    assert "which the model leaves open" in findings[0].reason
    assert fused == model


def test_boxes_of_one_row_are_not_spread_over_others() -> None:
    """Against 6 x 6 anchors, the graph spreads predictions of (6, 1) boxes along the first axis; the node fails."""
    model = onnx.load(EXPORTS / "mm_plain.dyn.onnx")
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "boxes"
    del model.graph.value_info[:]  # which says otherwise
    fused, (finding,) = fuse_decode_bbox(model)
    assert (finding.fused, finding.box_predictions) == (True, "d")
    feeds = {"d": predictions((6, 6, 4)), "b": boxes((6, 6, 4))}
    np.testing.assert_allclose(run(fused, feeds)[0], run(model, feeds)[0], rtol=1e-5, atol=1e-3)
    with pytest.raises(Exception, match="Reshape"):
        run(fused, feeds | {"d": predictions((6, 1, 4))})


def _retinanet() -> onnx.ModelProto:
    """Return the model with random weights for those that the file leaves out, and its decodes as outputs."""
    model = onnx.load(EXPORTS / "retinanet.ts.noweights.onnx")
    random = np.random.default_rng(0)
    for tensor in model.graph.initializer:
        size = int(np.prod(tensor.dims))
        if not tensor.raw_data and size:
            spread = np.sqrt(2 * tensor.dims[0] / size) * (0.2 if tensor.dims[0] == 36 else 1)
            tensor.raw_data = random.normal(0, spread, size).astype(np.float32).tobytes()
    for finding in find_decode_bbox(model):
        model.graph.output.append(onnx.helper.make_tensor_value_info(finding.decoded_boxes, 1, [None, None]))
    return model


def test_retinanet_has_five_decodes() -> None:
    findings = find_decode_bbox(EXPORTS / "retinanet.ts.noweights.onnx")
    assert [finding.fused for finding in findings] == [True] * 5
    assert {(finding.operator, finding.decode_clip, finding.classes) for finding in findings} == {
        ("DecodeBbox", CLIP, 1)
    }
    assert len({finding.decoded_boxes for finding in findings}) == 5


def test_fused_retinanet_is_valid_and_runs_the_same() -> None:
    model = _retinanet()
    fused, findings = fuse_decode_bbox(model)
    check_valid(fused)
    assert operators(fused).count("DecodeBbox") == len(findings) == 5
    assert operators(fused).count("Exp") == 0
    image = np.random.default_rng(0).random((3, 64, 64), dtype=np.float32)
    before, after = run(model, {"image.1": image}), run(fused, {"image.1": image})
    for left, right in zip(before[:3], after[:3], strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-4)
    for left, right in zip(before[3:], after[3:], strict=True):
        atol = 8 * np.finfo(np.float32).eps * np.abs(left).max()
        np.testing.assert_allclose(left, right, rtol=0, atol=atol)
    assert [len(boxes) > 0 for boxes in after[3:]] == [True] * 5
