"""Measure recall and precision of the demo's detector on fresh pages of digits that training never saw.

    python examples/digits/evaluate.py             # rpn.onnx and head.onnx, with detops between them
    python examples/digits/evaluate.py --single    # digits.onnx, with detops' operators in ONNX Runtime

The digits are of the test part (see pages.py); the networks are the shipped ones.
"""

import argparse
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from pages import PageMaker

import detops
from detops.demo import DATA, Boxes, DigitDetector, match

Detector = Callable[[NDArray[np.uint8]], Boxes]


def evaluate(detector: Detector, num_pages: int, seed: int) -> dict[str, float]:
    """Return the counts and rates over `num_pages` pages.

    A detection is right where its label is right and its IoU with a digit not found yet is at least 0.5.
    `located` is the share of digits that some detection covers with that IoU, whatever its label.
    """
    make_page, rng = PageMaker("test"), np.random.default_rng(seed)
    digits = found = right = located = 0
    for _ in range(num_pages):
        page = make_page(rng)
        detections = detector(page.image)
        digits += len(page.truth.boxes)
        found += len(detections.boxes)
        right += int((match(detections, page.truth) >= 0).sum())
        located += int((detops.box_iou(page.truth.boxes, detections.boxes) >= 0.5).any(axis=1).sum())
    return {
        "digits": digits,
        "detections": found,
        "right": right,
        "recall": right / digits,
        "precision": right / max(found, 1),
        "located": located / digits,
    }


def single_graph() -> Detector:
    """Return the detector that is one graph."""
    import detops.onnx

    session = detops.onnx.session(str(DATA / "digits.onnx"))

    def detect(page: NDArray[np.uint8]) -> Boxes:
        return Boxes(*session.run(["boxes", "labels", "scores"], {"image": page.astype(np.float32)[None, None]}))

    return detect


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the digits detector on fresh pages.")
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument("--seed", type=int, default=2000)
    parser.add_argument("--single", action="store_true", help="measure digits.onnx")
    arguments = parser.parse_args()
    detector = single_graph() if arguments.single else DigitDetector()
    for name, value in evaluate(detector, arguments.pages, arguments.seed).items():
        print(f"{name:>10}  {value:.4g}" if isinstance(value, int) else f"{name:>10}  {value:.3f}")


if __name__ == "__main__":
    main()
