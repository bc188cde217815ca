"""The demo: a small two-stage detector finds handwritten digits on a page.

ONNX Runtime runs the two networks; everything between them is detops::

    page -> rpn.onnx -> decode_bbox -> nms -> roi_align -> head.onnx -> decode_bbox -> batched_nms

The detector was trained by the scripts in ``examples/digits``, which use the functions of this module too.
"""

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import detops
from detops._draw import Tag, drawn, picture_format, save_picture
from detops._extras import need
from detops._files import check_writable

DATA = Path(__file__).parent / "data" / "digits"
_need = functools.partial(need, extra="demo", what="the demo")
RIGHT, WRONG, MISSED = "#16a34a", "#dc2626", "#d97706"

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Size = tuple[int, ...]  # (height, width) of a page


@dataclass(frozen=True)
class Settings:
    """Settings of the detector, which ``detector.json`` holds beside its weights.

    Lengths are in pixels of the page; `anchor_sizes` are (width, height) pairs, in the order of the network's
    anchors; `roi_align` are options of `detops.roi_align`, `head_scales` the `scales` of `detops.decode_bbox` for the
    box head.
    """

    labels: list[str]
    stride: int
    anchor_sizes: list[list[int]]
    decode_clip: float
    proposal_iou: float
    num_proposals: int
    roi_align: dict[str, Any]
    head_scales: list[float]
    score_threshold: float
    detection_iou: float

    @classmethod
    def load(cls, path: Path = DATA / "detector.json") -> "Settings":
        return cls(**json.loads(path.read_text(encoding="utf-8")))


@dataclass(frozen=True)
class Boxes:
    """Boxes (num_boxes, 4) as x1, y1, x2, y2, labels and scores (num_boxes,); the truth has scores of 1."""

    boxes: Floats
    labels: Ints
    scores: Floats


def anchor_grid(shape: Size, settings: Settings) -> Floats:
    """Return the anchors (rows * columns * num_sizes, 4) of a feature map of `shape` (rows, columns)."""
    half = np.asarray(settings.anchor_sizes, np.float32) / 2
    base = np.concatenate([-half, half], axis=1)
    y, x = np.indices(shape, np.float32) + np.float32(0.5)
    centers = np.stack([x, y, x, y], axis=-1) * np.float32(settings.stride)
    anchors: Floats = centers[:, :, None] + base
    return anchors.reshape(-1, 4)


def clip_boxes(boxes: Floats, size: Size) -> Floats:
    """Return `boxes` cut to the page."""
    return np.clip(boxes, np.float32(0), np.array([*size[::-1], *size[::-1]], np.float32))


def propose(objectness: Floats, deltas: Floats, anchors: Floats, size: Size, settings: Settings) -> Floats:
    """Return the boxes (num_proposals, 4) where the first network saw something, the surest first."""
    boxes = detops.decode_bbox(deltas, anchors, decode_clip=settings.decode_clip)
    boxes = clip_boxes(boxes, size)
    keep = detops.nms(boxes, objectness, settings.proposal_iou, max_output_boxes=settings.num_proposals)
    return boxes[keep]


def select(proposals: Floats, scores: Floats, deltas: Floats, size: Size, settings: Settings) -> Boxes:
    """Return the detections that the second network's `scores` (num_proposals, 1 + num_labels) stand for.

    Column 0 is the background. A proposal may give several labels; each label is suppressed by itself.
    """
    boxes = detops.decode_bbox(deltas, proposals, decode_clip=settings.decode_clip, scales=tuple(settings.head_scales))
    boxes = clip_boxes(boxes, size)
    rows, labels = np.nonzero(scores[:, 1:] > settings.score_threshold)
    boxes, scores = boxes[rows], scores[rows, labels + 1]
    keep = detops.batched_nms(boxes, scores, labels, settings.detection_iou)
    return Boxes(boxes[keep], labels[keep], scores[keep])


class DigitDetector:
    """The two networks and what lies between them; call it with a page (height, width) of gray levels."""

    def __init__(self, folder: Path = DATA) -> None:
        ort = _need("onnxruntime")
        options = ort.SessionOptions()
        options.intra_op_num_threads = detops.get_num_threads()
        self.settings: Settings = Settings.load(folder / "detector.json")
        self._rpn, self._head = (
            ort.InferenceSession(str(folder / name), options, providers=["CPUExecutionProvider"])
            for name in ("rpn.onnx", "head.onnx")
        )

    def __call__(self, page: NDArray[np.uint8]) -> Boxes:
        settings, size = self.settings, page.shape
        image = page.astype(np.float32)[None, None]
        features, objectness, deltas = self._rpn.run(None, {"image": image})
        anchors = anchor_grid(features.shape[2:], settings)
        proposals = propose(objectness, deltas, anchors, size, settings)
        crops = detops.roi_align(
            features,
            proposals,
            spatial_scale=1 / settings.stride,
            **settings.roi_align,
            batch_indices=np.zeros(len(proposals), np.int64),
        )
        scores, deltas = self._head.run(None, {"crops": crops})
        return select(proposals, scores, deltas, size, settings)


def match(found: Boxes, truth: Boxes, min_iou: float = 0.5) -> Ints:
    """Return for each detection the digit of the truth that it found, or -1 where it is wrong.

    A detection is right where its label is right and its IoU with a digit that no surer detection has found
    is at least `min_iou`. `found` is in order of falling score.
    """
    iou = np.where(found.labels[:, None] == truth.labels, detops.box_iou(found.boxes, truth.boxes), np.float32(-1))
    matches = np.full(len(found.boxes), -1, np.int64)
    for i, row in enumerate(iou):
        if row.size and row.max() >= min_iou:
            matches[i] = row.argmax()
            iou[:, matches[i]] = -1
    return matches


def load_truth(path: Path = DATA / "page.json") -> Boxes:
    """Return the digits that stand on the page beside `path`."""
    digits = json.loads(path.read_text(encoding="utf-8"))["digits"]
    boxes = np.array([d["box"] for d in digits], np.float32).reshape(-1, 4)
    return Boxes(boxes, np.array([d["label"] for d in digits], np.int64), np.ones(len(digits), np.float32))


def add_parsers(subparsers: Any) -> None:
    """Add the command ``detops demo``."""
    command = subparsers.add_parser("demo", help="find handwritten digits on a page and draw them")
    command.add_argument("-o", "--output", default="detections.png", help="the picture to write (default: %(default)s)")
    command.set_defaults(run=lambda arguments: run_demo(arguments.output))


def run_demo(out_path: str | Path = "detections.png") -> int:
    """Find the digits on the shipped page, print them, and draw them to `out_path`; return the exit code.

    Raises
    ------
    ImportError
        If onnxruntime, pillow or rich is missing; the message names the extra that brings them.
    ValueError
        If no picture can be written to `out_path`; nothing is computed then.
    """
    image_module = _need("PIL.Image")
    _need("rich")
    check_writable(out_path, "output")
    picture_format(out_path, "output")
    detector = DigitDetector()
    with image_module.open(DATA / "page.png") as image:
        page = np.asarray(image.convert("L"))
    truth, found = load_truth(), detector(page)
    matches = match(found, truth)
    _print_table(found, matches, len(truth.boxes), detector.settings.labels)
    save_picture(draw(page, found, truth, matches, detector.settings.labels), out_path)
    print(f"The picture is in {out_path}")
    return 0


def _print_table(found: Boxes, matches: Ints, num_digits: int, labels: list[str]) -> None:
    table_module, console_module = _need("rich.table"), _need("rich.console")
    table = table_module.Table(title="Digits on the page")
    for name in ("digit", "score", "x1", "y1", "x2", "y2"):
        table.add_column(name, justify="right")
    table.add_column("right?")
    for label, score, box, matched in zip(found.labels, found.scores, found.boxes, matches, strict=True):
        verdict = "[green]right[/]" if matched >= 0 else "[red]wrong[/]"
        table.add_row(labels[label], f"{score:.2f}", *(f"{x:.1f}" for x in box), verdict)
    console = console_module.Console()
    console.print(table)
    right = (matches >= 0).sum()
    console.print(f"{right} of {num_digits} digits found; wrong detections: {len(matches) - right}")


def draw(page: NDArray[np.uint8], found: Boxes, truth: Boxes, matches: Ints, labels: list[str]) -> Any:
    """Return `page` as a PIL image with right boxes in green, wrong ones in red, missed digits in amber."""
    missed = np.setdiff1d(np.arange(len(truth.boxes)), matches)
    tags = [Tag(truth.boxes[i].tolist(), f"{labels[truth.labels[i]]} missed", MISSED, below=True) for i in missed]
    tags += [
        Tag(box.tolist(), f"{labels[label]} {score:.2f}", RIGHT if matched >= 0 else WRONG)
        for label, score, box, matched in zip(found.labels, found.scores, found.boxes, matches, strict=True)
    ]
    return drawn(page, tags)
