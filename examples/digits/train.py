"""Train the digits detector on the CPU and write its weights, batch normalization folded in, as an .npz file.

python examples/digits/train.py weights.npz            # a plain backbone: rpn.onnx and head.onnx
python examples/digits/train.py deform.npz --deform    # a deformable layer in it: digits.onnx
"""

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from network import Detector, ModulatedDeformConv, roi_align
from numpy.typing import NDArray
from pages import PageMaker
from torch import Tensor, nn
from torch.nn import functional

import detops
from detops.demo import Boxes, Settings, anchor_grid, match, propose, select

SETTINGS = Settings.load()
SIZE = 192  # training pages are smaller than the demo's: nothing in the network depends on it
PAGES_PER_STEP = 8
ROIS_PER_PAGE, MOST_DIGITS = 64, 24
IGNORED = -1

Floats = NDArray[np.float32]


def anchor_targets(anchors: Floats, truth: Boxes) -> tuple[NDArray[np.int64], Floats]:
    """Return whether each anchor stands for a digit (1, 0, or IGNORED), and its box predictions."""
    iou = detops.box_iou(anchors, truth.boxes)
    best = iou.max(axis=1)
    wanted = np.where(best >= 0.55, 1, np.where(best < 0.35, 0, IGNORED))
    wanted[(iou == iou.max(axis=0)).any(axis=1) & (best > 0.2)] = 1
    return wanted, detops.encode_bbox(truth.boxes[iou.argmax(axis=1)], anchors)


def sample_rois(proposals: Floats, truth: Boxes, rng: np.random.Generator) -> tuple[Floats, NDArray[np.int64], Floats]:
    """Return boxes for the box head, their labels (0 is background) and box predictions."""
    side = np.tile(truth.boxes[:, 2:] - truth.boxes[:, :2], 2)
    jittered = [truth.boxes + rng.normal(0, 0.08, side.shape).astype(np.float32) * side for _ in range(2)]
    rois = np.concatenate([proposals, truth.boxes, *jittered])
    rois = rois[(rois[:, 2:] - rois[:, :2]).min(axis=1) > 1]
    iou = detops.box_iou(rois, truth.boxes)
    best = iou.max(axis=1)
    digits = rng.permutation(np.flatnonzero(best >= 0.5))[:MOST_DIGITS]
    paper = rng.permutation(np.flatnonzero(best < 0.5))[: ROIS_PER_PAGE - len(digits)]
    chosen = np.concatenate([digits, paper])
    owner = iou[chosen].argmax(axis=1)
    labels = np.where(best[chosen] >= 0.5, truth.labels[owner] + 1, 0)
    scales = tuple(SETTINGS.head_scales)
    return rois[chosen], labels, detops.encode_bbox(truth.boxes[owner], rois[chosen], scales=scales)


def focal_loss(logits: Tensor, wanted: Tensor) -> Tensor:
    loss = functional.binary_cross_entropy_with_logits(logits, wanted, reduction="none")
    doubt = 1 - torch.exp(-loss)
    return (doubt**2 * (0.25 + 0.5 * (1 - wanted)) * loss).sum() / wanted.sum().clamp(min=1)


def proposal_loss(objectness: Tensor, deltas: Tensor, anchors: Floats, truths: list[Boxes]) -> Tensor:
    targets = [anchor_targets(anchors, truth) for truth in truths]
    wanted = torch.from_numpy(np.stack([t[0] for t in targets]))
    boxes = torch.from_numpy(np.stack([t[1] for t in targets]))
    used, digit = wanted != IGNORED, wanted == 1
    where = functional.smooth_l1_loss(deltas[digit], boxes[digit], beta=0.1)
    return focal_loss(objectness[used], wanted[used].float()) + 2 * where


def training_step(model: Detector, pages: Tensor, truths: list[Boxes], rng: np.random.Generator) -> Tensor:
    features = model.features(pages)
    anchors = anchor_grid(features.shape[2:], SETTINGS)
    objectness, deltas = model.propose(features)
    loss = proposal_loss(objectness, deltas, anchors, truths)
    samples = []
    guesses = objectness.detach().numpy(), deltas.detach().numpy()
    for logits, predictions, truth in zip(*guesses, truths, strict=True):
        top = np.argsort(-logits)[:300]
        proposals = propose(logits[top], predictions[top], anchors[top], tuple(pages.shape[2:]), SETTINGS)
        samples.append(sample_rois(proposals, truth, rng))
    rois, labels, boxes = zip(*samples, strict=True)
    crops = roi_align(features, [torch.from_numpy(r) for r in rois], *_crop_options())
    logits, predictions = model.classify(crops)
    wanted, target = torch.from_numpy(np.concatenate(labels)), torch.from_numpy(np.concatenate(boxes))
    # Without smoothing, scores saturate at 1 and suppression picks among a digit's boxes by rounding errors.
    loss = loss + functional.cross_entropy(logits, wanted, label_smoothing=0.1)
    return loss + functional.smooth_l1_loss(predictions[wanted > 0], target[wanted > 0], beta=0.5)


def _crop_options() -> tuple[int, float, int]:
    return SETTINGS.roi_align["output_size"], 1 / SETTINGS.stride, SETTINGS.roi_align["sampling_ratio"]


@torch.no_grad()
def detect(model: Detector, image: NDArray[np.uint8]) -> Boxes:
    """Run the detector as `detops.demo.DigitDetector` does, but with the PyTorch networks."""
    features = model.features(torch.from_numpy(image.astype(np.float32))[None, None])
    objectness, deltas = (x[0].numpy() for x in model.propose(features))
    proposals = propose(objectness, deltas, anchor_grid(features.shape[2:], SETTINGS), image.shape, SETTINGS)
    logits, predictions = model.classify(roi_align(features, [torch.from_numpy(proposals)], *_crop_options()))
    return select(proposals, logits.softmax(1).numpy(), predictions.numpy(), image.shape, SETTINGS)


def validate(model: Detector, num_pages: int = 40) -> tuple[float, float]:
    """Return recall and precision on pages of validation digits."""
    model.eval()
    make_page, rng = PageMaker("validation"), np.random.default_rng(1)
    right = found = digits = 0
    for _ in range(num_pages):
        page = make_page(rng)
        detections = detect(model, page.image)
        right += (match(detections, page.truth) >= 0).sum()
        found += len(detections.boxes)
        digits += len(page.truth.boxes)
    model.train()
    return right / digits, right / max(found, 1)


def check_roi_align() -> None:
    """Stop where the training's RoIAlign is not the library's."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(1, 3, 24, 20)).astype(np.float32)
    corner = rng.uniform(-12, 90, (50, 2)).astype(np.float32)
    rois = np.concatenate([corner, corner + rng.uniform(1, 60, (50, 2)).astype(np.float32)], axis=1)
    size, scale, ratio = _crop_options()
    ours = roi_align(torch.from_numpy(features), [torch.from_numpy(rois)], size, scale, ratio).numpy()
    theirs = detops.roi_align(
        features,
        rois,
        size,
        spatial_scale=scale,
        sampling_ratio=ratio,
        batch_indices=np.zeros(50, np.int64),
    )
    if not np.allclose(ours, theirs, atol=1e-4):
        raise SystemExit(f"RoIAlign differs from detops by {abs(ours - theirs).max()}")


def folded_weights(model: Detector) -> dict[str, Floats]:
    """Return the weights with each batch normalization folded into the convolution before it."""
    weights = {}
    for name, child in model.named_children():
        layer, *rest = child if isinstance(child, nn.Sequential) else [child]
        if isinstance(layer, ModulatedDeformConv):
            weights |= {f"{name}.where.{kind}": value for kind, value in layer.where.named_parameters()}
            layer = layer.conv
        weights |= {f"{name}.{kind}": value for kind, value in layer.named_parameters()}
        for norm in rest:
            if isinstance(norm, nn.BatchNorm2d):
                gain = norm.weight / torch.sqrt(norm.running_var + norm.eps)
                weights[f"{name}.weight"] = weights[f"{name}.weight"] * gain[:, None, None, None]
                weights[f"{name}.bias"] = norm.bias - norm.running_mean * gain
    return {name: value.detach().numpy() for name, value in weights.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the digits detector.")
    parser.add_argument("weights", type=Path, help="the .npz file to write")
    parser.add_argument("--deform", action="store_true", help="make one layer of the backbone deformable")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    check_roi_align()

    num_anchors, num_labels = len(SETTINGS.anchor_sizes), len(SETTINGS.labels)
    model = Detector(num_anchors, num_labels, SETTINGS.roi_align["output_size"], deform=arguments.deform)
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.02)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, arguments.steps, pct_start=0.1)
    make_page, rng = PageMaker("train"), np.random.default_rng(arguments.seed)
    start, shown = time.perf_counter(), 0.0
    for step in range(1, arguments.steps + 1):
        pages = [make_page(rng, SIZE, SIZE, most=14) for _ in range(PAGES_PER_STEP)]
        batch = torch.from_numpy(np.stack([p.image for p in pages]).astype(np.float32))[:, None]
        loss = training_step(model, batch, [p.truth for p in pages], rng)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        schedule.step()
        shown += loss.item() / 100
        if step % 100 == 0:
            print(f"{time.perf_counter() - start:6.0f} s  step {step:5d}  loss {shown:.3f}", flush=True)
            shown = 0.0
        if step % 500 == 0 or step == arguments.steps:
            recall, precision = validate(model)
            print(f"          validation: recall {recall:.3f}, precision {precision:.3f}", flush=True)
    np.savez(arguments.weights, **folded_weights(model))


if __name__ == "__main__":
    main()
