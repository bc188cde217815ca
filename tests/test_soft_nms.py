"""soft_nms: errors, MMCV's own example, ties, naive weights against nms."""

import numpy as np
import pytest

import detops
from tests.support.comparison import BACKENDS

BOXES, SCORES = np.array([[0.0, 0, 4, 4], [0, 0, 4, 3]]), np.array([0.5, 0.25])


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((BOXES[0], SCORES), {}, ValueError, "boxes: expected shape (num_boxes, 4), got (4,)"),
        ((BOXES, SCORES[:1]), {}, ValueError, "scores: expected shape (2,), got (1,)"),
        ((BOXES, SCORES.astype(int)), {}, TypeError, "scores: expected dtype float16, float32 or float64, got int64"),
        ((BOXES, SCORES, 1.5), {}, ValueError, "iou_threshold: expected a number from 0 to 1, got 1.5"),
        (
            (BOXES, SCORES),
            {"method": "hard"},
            ValueError,
            "method: expected one of 'naive', 'linear', 'gaussian', got 'hard'",
        ),
        ((BOXES, SCORES), {"sigma": 0}, ValueError, "sigma: expected a number above 0, got 0.0"),
        ((BOXES, SCORES), {"min_score": np.inf}, ValueError, "min_score: expected a finite number, got inf"),
        ((BOXES, SCORES), {"out": BOXES}, ValueError, "out: expected a tuple of 2 arrays, got an array"),
    ],
)
def test_errors(arguments, options, error, message):
    with pytest.raises(error) as caught:
        detops.soft_nms(*arguments, **options)
    assert str(caught.value) == message


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("method", "scores", "kept"),
    [
        ("naive", [0.4, 0.4, 0.7, 0.9, 0.5, 0.6], [3, 2, 4]),
        ("linear", [0.4, 0.4, 0.7, 0.9, 0.5, 0.6], [3, 2, 4, 5, 0, 1]),
    ],
)
def test_boxes_of_two_groups(method, scores, kept, backend):
    """Two groups of equal boxes, and one by itself."""
    boxes = np.array([[0, 0, 4, 4], [9, 0, 13, 4], [9, 0, 13, 4], [0, 0, 4, 4], [20, 0, 24, 4], [9, 0, 13, 2]], float)
    dets, got = detops.soft_nms(boxes, np.array(scores), 0.4, method=method, min_score=0, backend=backend)
    assert got.tolist()[: len(kept)] == kept
    np.testing.assert_array_equal(dets[:, :4], boxes[got])
    assert (np.diff(dets[:, 4]) <= 0).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_on_a_tie_the_earlier_box_is_taken_first(backend):
    boxes = np.array([[i * 9.0, 0, i * 9 + 4, 4] for i in range(40)])
    dets, kept = detops.soft_nms(boxes, np.full(40, 0.5), backend=backend)
    assert kept.tolist() == list(range(40))
    assert (dets[:, 4] == 0.5).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_first_box_is_taken_whatever_its_score(backend):
    dets, kept = detops.soft_nms(BOXES, np.array([1e-5, 2e-5]), backend=backend)
    assert kept.tolist() == [1]
    assert dets[0, 4] == 2e-5


def test_naive_weights_keep_what_nms_keeps():
    rng = np.random.default_rng(23)
    corners = rng.uniform(0, 100, (500, 2))
    boxes = np.concatenate([corners, corners + rng.uniform(5, 40, (500, 2))], 1)
    scores = rng.uniform(0.01, 1, 500)
    dets, kept = detops.soft_nms(boxes, scores, 0.5, method="naive")
    np.testing.assert_array_equal(kept, detops.nms(boxes, scores, 0.5))
    np.testing.assert_array_equal(dets, np.concatenate([boxes, scores[:, None]], 1)[kept])


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_sigma_that_the_type_rounds_to_0(backend):
    """Boxes that share nothing keep their scores, all others are dropped."""
    boxes = np.array([[0, 0, 4, 4], [0, 0, 4, 3], [9, 0, 13, 4]], np.float32)
    given = np.array([0.75, 0.5, 0.25], np.float32)
    dets, kept = detops.soft_nms(boxes, given, method="gaussian", sigma=1e-60, backend=backend)
    assert kept.tolist() == [0, 2]
    assert dets[:, 4].tolist() == [0.75, 0.25]
