"""nms_rotated: errors, large sets, backends against each other."""

import numpy as np
import pytest

import detops
from tests.cases import rotated_boxes_of
from tests.oracle import nms_rotated as naive

Z, S = np.zeros((3, 5)), np.zeros(3)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((Z[:, :4], S, 0.5), {}, ValueError, "boxes: expected shape (num_boxes, 5), got (3, 4)"),
        ((Z, S[:2], 0.5), {}, ValueError, "scores: expected shape (3,), got (2,)"),
        ((Z, S, 0.5, S[:2]), {}, ValueError, "labels: expected shape (3,), got (2,)"),
        ((Z, S, 0.5, S + 0.5), {}, ValueError, "labels: expected integers of 64 bits, got 0.5 in row 0"),
        ((Z, S, 1.5), {}, ValueError, "iou_threshold: expected a number from 0 to 1, got 1.5"),
        ((Z, S, 0.5), {"clockwise": None}, TypeError, "clockwise: expected a bool, got None"),
    ],
)
def test_errors(arguments, options, error, message):
    with pytest.raises(error) as caught:
        detops.nms_rotated(*arguments, **options)
    assert str(caught.value) == message


@pytest.mark.parametrize(("extent", "threshold"), [(60, 0.4), (600, 0.05)])
def test_large_sets(extent, threshold):
    """Enough boxes for the grid of cells, some of which are as long as all of it; Numba compares each with each."""
    rng = np.random.default_rng(extent)
    boxes, scores = rotated_boxes_of(rng, 600, extent), rng.uniform(0, 1, 600)
    boxes[:20, 2] *= 100
    for labels in (rng.integers(0, 3, 600), None):
        kept = detops.nms_rotated(boxes, scores, threshold, labels)
        assert kept.tolist() == detops.nms_rotated(boxes, scores, threshold, labels, backend="numba").tolist()
        single = detops.nms_rotated(boxes.astype("f"), scores.astype("f"), threshold, labels)
        assert abs(len(single) - len(kept)) < 3
    assert 20 < len(kept) < 550


def test_against_the_oracle():
    rng = np.random.default_rng(0)
    boxes, scores = rotated_boxes_of(rng, 200, 100), rng.uniform(0, 1, 200)
    kept = detops.nms_rotated(boxes, scores, 0.2)
    assert kept.tolist() == naive.nms_rotated(boxes, scores, 0.2).tolist()
    assert len(kept) < 150


@pytest.mark.parametrize("backend", ["cython", "numba", "cuda"])
def test_a_score_equal_to_its_threshold_does_not_pass(backend):
    """0.1 is another number in float32: the threshold is rounded as the scores are."""
    boxes = np.array([[0, 0, 2, 2, 0], [9, 9, 2, 2, 0]], "f")
    scores = np.array([0.1, 0.2], "f")
    assert detops.nms_rotated(boxes, scores, 0.5, score_threshold=0.1, backend=backend).tolist() == [1]
    assert detops.nms_rotated([], [], 0.5, backend=backend).shape == (0,)
