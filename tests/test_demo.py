"""The demo: the shipped detector finds the digits of the shipped page."""

import argparse
import json
import sys

import numpy as np
import pytest

from detops import demo

pytest.importorskip("onnxruntime", reason="the demo's networks run in onnxruntime (the extra 'demo')")
image_module = pytest.importorskip("PIL.Image", reason="the demo draws with Pillow (the extra 'demo')")
pytest.importorskip("rich", reason="the demo prints with rich (the extra 'demo')")


@pytest.fixture(scope="module")
def page():
    with image_module.open(demo.DATA / "page.png") as image:
        return np.asarray(image)


@pytest.fixture(scope="module")
def detector():
    return demo.DigitDetector()


def test_finds_nearly_every_digit_of_the_page(detector, page):
    truth, found = demo.load_truth(), detector(page)
    right = (demo.match(found, truth) >= 0).sum()
    assert len(truth.boxes) >= 10
    assert right >= 0.9 * len(truth.boxes)
    assert right >= 0.9 * len(found.boxes)


def test_scores_fall_and_boxes_lie_on_the_page(detector, page):
    found = detector(page)
    height, width = page.shape
    assert (np.diff(found.scores) <= 0).all()
    assert (found.scores > detector.settings.score_threshold).all()
    assert (found.boxes[:, :2] >= 0).all()
    assert (found.boxes[:, 2:] <= [width, height]).all()


def test_follows_a_digit_that_moves(detector, page):
    """Shifted by a whole number of cells, every digit that stays clear of the border is found again."""
    shift = detector.settings.stride * 2
    before, after = detector(page), detector(np.roll(page, shift, axis=1))
    stays = (before.boxes[:, 0] > 40) & (before.boxes[:, 2] < page.shape[1] - 40)
    assert stays.sum() >= 5
    moved = before.boxes[stays] + np.array([shift, 0, shift, 0], np.float32)
    truth = demo.Boxes(moved, before.labels[stays], before.scores[stays])
    assert np.isin(np.arange(stays.sum()), demo.match(after, truth, min_iou=0.8)).all()


def test_pages_of_other_sizes(detector, page):
    assert len(detector(page[:131, :117]).boxes) >= 1


@pytest.mark.parametrize("gray", [0, 200, 255])
def test_finds_nothing_on_empty_paper(detector, gray):
    found = detector(np.full((96, 128), gray, np.uint8))
    assert found.boxes.shape == (0, 4)
    assert found.labels.shape == found.scores.shape == (0,)


def test_the_command_prints_and_draws(tmp_path, capsys, page):
    out = tmp_path / "detections.png"
    parser = argparse.ArgumentParser()
    demo.add_parsers(parser.add_subparsers())
    arguments = parser.parse_args(["demo", "-o", str(out)])
    assert arguments.run(arguments) == 0
    printed = capsys.readouterr().out
    truth = demo.load_truth()
    assert printed.count(" right ") >= 0.9 * len(truth.boxes)
    assert f"of {len(truth.boxes)} digits found" in printed
    assert out.name in printed.replace("\n", "")
    with image_module.open(out) as picture:
        assert picture.size == (page.shape[1] * 3, page.shape[0] * 3)
        colors = {color for _, color in picture.getcolors(1 << 20)}
    assert tuple(bytes.fromhex(demo.RIGHT[1:])) in colors


@pytest.mark.parametrize(
    ("module", "package"), [("onnxruntime", "onnxruntime"), ("PIL.Image", "pillow"), ("rich", "rich")]
)
def test_a_missing_package_is_named_with_the_extra_that_brings_it(monkeypatch, tmp_path, module, package):
    monkeypatch.setitem(sys.modules, module, None)
    line = rf"the demo needs {package} .*; the extra 'demo' of detops brings it: in a clone, pip install \"\.\[demo\]\""
    with pytest.raises(ImportError, match=line):
        demo.run_demo(tmp_path / "detections.png")
    assert not list(tmp_path.iterdir())


def test_anchors_are_centered_on_their_cells():
    settings = demo.Settings.load()
    anchors = demo.anchor_grid((3, 5), settings).reshape(3, 5, -1, 4)
    assert anchors.dtype == np.float32
    centers = (anchors[..., :2] + anchors[..., 2:]) / 2
    np.testing.assert_array_equal(centers[2, 4, :, 0], 4.5 * settings.stride)
    np.testing.assert_array_equal(centers[2, 4, :, 1], 2.5 * settings.stride)
    np.testing.assert_array_equal(anchors[1, 3, :, 2:] - anchors[1, 3, :, :2], settings.anchor_sizes)


def test_match_gives_each_digit_to_one_detection():
    truth = demo.Boxes(
        np.array([[0, 0, 10, 10], [20, 0, 30, 10]], np.float32), np.array([3, 4]), np.ones(2, np.float32)
    )
    found = demo.Boxes(
        np.array([[0, 0, 10, 9], [0, 0, 10, 10], [20, 0, 30, 10], [20, 0, 30, 4]], np.float32),
        np.array([3, 3, 5, 4]),
        np.array([0.9, 0.8, 0.7, 0.6], np.float32),
    )
    # right; its digit is taken; a wrong label; an IoU of 0.4
    np.testing.assert_array_equal(demo.match(found, truth), [0, -1, -1, -1])


def test_match_takes_empty_sides():
    none = demo.Boxes(np.zeros((0, 4), np.float32), np.zeros(0, np.int64), np.zeros(0, np.float32))
    one = demo.Boxes(np.array([[0, 0, 9, 9]], np.float32), np.array([1]), np.ones(1, np.float32))
    assert demo.match(none, one).shape == (0,)
    np.testing.assert_array_equal(demo.match(one, none), [-1])


def test_the_page_is_made_of_test_digits():
    digits = json.loads((demo.DATA / "page.json").read_text(encoding="utf-8"))["digits"]
    assert min(d["load_digits_index"] for d in digits) >= 1397


def test_the_single_graph_holds_custom_operators_and_says_what_it_takes():
    onnx = pytest.importorskip("onnx", reason="reading a model needs onnx (the extra 'onnx')")
    model = onnx.load(demo.DATA / "digits.onnx")
    onnx.checker.check_model(model, full_check=True)
    custom = sorted(f"{node.domain}::{node.op_type}" for node in model.graph.node if node.domain)
    assert custom == [
        "detops::NonMaxSuppression",
        "detops::NonMaxSuppression",
        "mmcv::MMCVModulatedDeformConv2d",
        "mmcv::MMCVRoiAlign",
    ]
    metadata = {entry.key: json.loads(entry.value) for entry in model.metadata_props}
    assert metadata["labels"] == demo.Settings.load().labels
    assert metadata["image"] == {"mode": "L", "range": [0, 255], "size": [256, 320]}
    assert set(metadata["draw"].values()) == {output.name for output in model.graph.output}


def test_data_stays_small():
    single = demo.DATA / "digits.onnx"
    two_files = sum(f.stat().st_size for f in demo.DATA.iterdir() if f != single)
    assert two_files < 500_000
    assert single.stat().st_size < 500_000
