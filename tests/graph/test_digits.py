"""The shipped digits model, in which custom operators hide the shape of nearly everything."""

from pathlib import Path

import numpy as np
import onnx
import pytest

import detops.onnx
from detops.graph import fuse_decode_bbox

MODEL = Path(detops.__file__).parent / "data" / "digits" / "digits.onnx"


def test_a_reshape_to_rows_is_not_skipped_where_the_rank_is_unknown() -> None:
    """(1, H, W, 12) reaches the decode through a Reshape to (-1, 4): it is not the shape of the anchors, (-1, 4)."""
    _, findings = fuse_decode_bbox(str(MODEL))
    (found,) = [finding for finding in findings if finding.fused]
    assert (found.box_predictions, found.anchors) == ("rpn/Reshape_1", "rpn/anchors/Reshape_2")


def test_the_fused_model_finds_the_same_digits(tmp_path: Path) -> None:
    Image = pytest.importorskip("PIL.Image")
    with Image.open(MODEL.parent / "page.png") as page:
        image = np.asarray(page.convert("L"), np.float32)[None, None]
    fused, _ = fuse_decode_bbox(onnx.load(MODEL))
    onnx.checker.check_model(fused)
    before, after = (detops.onnx.session(model).run(None, {"image": image}) for model in (str(MODEL), fused))
    assert len(before[0]) > 10
    for old, new in zip(before, after, strict=True):
        np.testing.assert_array_equal(old, new)
