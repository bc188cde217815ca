"""The shipped digits model, in which custom operators hide the shape of nearly everything."""

from pathlib import Path

import numpy as np
import onnx
import pytest

import detops.onnx
from detops.graph import Finding, fuse_decode_bbox

MODEL = Path(detops.__file__).parent / "data" / "digits" / "digits.onnx"


@pytest.fixture(scope="module")
def fused() -> tuple[onnx.ModelProto, list[Finding]]:
    return fuse_decode_bbox(onnx.load(MODEL))


def test_both_decodes_are_found(fused: tuple[onnx.ModelProto, list[Finding]]) -> None:
    """The first stage's boxes are the second one's anchors, by way of an operator of detops and a few Gathers.

    (1, H, W, 12) reaches the first decode through a Reshape to (-1, 4): it is not the shape of the anchors, (-1, 4).
    """
    found = [(each.box_predictions, each.anchors, each.operator, each.scales) for each in fused[1] if each.fused]
    assert found == [
        ("rpn/Reshape_1", "rpn/anchors/Reshape_2", "DecodeBbox", (1.0, 1.0, 1.0, 1.0)),
        ("head/Gemm_1", "rpn/Gather_1", "DecodeBboxV2", (10.0, 10.0, 5.0, 5.0)),
    ]
    clips = {each.decode_clip for each in fused[1]}
    assert clips == {float(np.float32(np.log(20)))}


def test_ranks_come_from_the_operators_alone() -> None:
    """Under a name that nobody knows, the operator in between could give indices of any rank, and so boxes too."""
    model = onnx.load(MODEL)
    model.opset_import.append(onnx.helper.make_opsetid("elsewhere", 1))
    for node in model.graph.node:
        if node.op_type == "NonMaxSuppression":
            node.domain = "elsewhere"
    _, findings = fuse_decode_bbox(model)
    assert [each.fused for each in findings] == [True, False]
    assert "which the model leaves open" in findings[1].reason


def test_the_fused_model_finds_the_same_digits(fused: tuple[onnx.ModelProto, list[Finding]]) -> None:
    Image = pytest.importorskip("PIL.Image")
    with Image.open(MODEL.parent / "page.png") as page:
        image = np.asarray(page.convert("L"), np.float32)[None, None]
    model, _ = fused
    onnx.checker.check_model(model)
    operators = [node.op_type for node in model.graph.node]
    assert (operators.count("DecodeBbox"), operators.count("DecodeBboxV2"), operators.count("Exp")) == (1, 1, 0)
    before, after = (detops.onnx.session(each).run(None, {"image": image}) for each in (str(MODEL), model))
    assert len(before[0]) > 10
    for old, new in zip(before, after, strict=True):
        # Our exp and ONNX Runtime's each round within about a unit in the last place, so boxes may differ by as much.
        np.testing.assert_allclose(new, old, rtol=1e-6)
