"""The two-stage detector in PyTorch, for training only.

RoIAlign and deformable convolution are written with `grid_sample`, so that nothing beyond PyTorch is needed;
they mean what `detops.roi_align` (aligned) and `detops.deform_conv2d` mean.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

CHANNELS = 32


class ModulatedDeformConv(nn.Module):
    """A 3x3 modulated deformable convolution whose offsets and mask come from a convolution of its input."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.where = nn.Conv2d(channels, 27, 3, padding=1)  # nine (dy, dx) pairs, then nine masks
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        nn.init.zeros_(self.where.weight)
        nn.init.zeros_(self.where.bias)

    def forward(self, x: Tensor) -> Tensor:
        height, width = x.shape[2:]
        offset, mask = self.where(x).split([18, 9], dim=1)
        grids = []
        for tap in range(9):
            rows = offset[:, 2 * tap] + torch.arange(height)[:, None] + tap // 3 - 1
            columns = offset[:, 2 * tap + 1] + torch.arange(width) + tap % 3 - 1
            grids.append(_grid(columns, rows, width, height))
        samples = functional.grid_sample(x, torch.cat(grids, dim=1), align_corners=True)
        samples = samples.unflatten(2, (9, height)) * mask.sigmoid()[:, None]
        return torch.einsum("ncthw,oct->nohw", samples, self.conv.weight.flatten(2))


def roi_align(features: Tensor, rois: list[Tensor], size: int, scale: float, ratio: int) -> Tensor:
    """Aligned average RoIAlign of `rois`, one tensor (num_rois, 4) for each image."""
    height, width = features.shape[2:]
    steps = (torch.arange(size * ratio) + 0.5) / (size * ratio)
    crops = []
    for image, boxes in zip(features, rois, strict=True):
        start, end = boxes[:, :2] * scale - 0.5, boxes[:, 2:] * scale - 0.5
        points = start[:, None] + steps[:, None] * (end - start)[:, None]
        x, y = torch.broadcast_tensors(points[:, None, :, 0], points[:, :, None, 1])
        inside = (x >= -1) & (x <= width) & (y >= -1) & (y <= height)
        grid = _grid(x, y, width, height).flatten(0, 1)
        samples = functional.grid_sample(image[None], grid[None], padding_mode="border", align_corners=True)
        samples = samples[0].unflatten(1, inside.shape[:2]).transpose(0, 1) * inside[:, None]
        crops.append(functional.avg_pool2d(samples, ratio))
    return torch.cat(crops)


def _grid(x: Tensor, y: Tensor, width: int, height: int) -> Tensor:
    """Pixel coordinates -> the coordinates -1 to 1 of `grid_sample`."""
    return torch.stack([2 * x / (width - 1) - 1, 2 * y / (height - 1) - 1], dim=-1)


def _block(inputs: int, outputs: int, **options: int) -> nn.Sequential:
    conv = nn.Conv2d(inputs, outputs, bias=False, **options)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), nn.ReLU())


class Detector(nn.Module):
    """Backbone of stride 4, region-proposal head, box head; `deform` makes one backbone layer deformable."""

    def __init__(self, num_anchors: int, num_labels: int, roi_size: int, *, deform: bool = False) -> None:
        super().__init__()
        self.stem1 = _block(1, 16, kernel_size=4, stride=2, padding=1)
        self.stem2 = _block(16, CHANNELS, kernel_size=4, stride=2, padding=1)
        self.body1 = _block(CHANNELS, CHANNELS, kernel_size=3, padding=1)
        self.body2 = _block(CHANNELS, CHANNELS, kernel_size=3, padding=2, dilation=2)
        self.body3 = _block(CHANNELS, CHANNELS, kernel_size=3, padding=4, dilation=4)
        if deform:
            self.body1[0] = ModulatedDeformConv(CHANNELS)
        self.rpn = nn.Sequential(nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1), nn.ReLU())
        self.objectness = nn.Conv2d(CHANNELS, num_anchors, 1)
        self.anchor_deltas = nn.Conv2d(CHANNELS, 4 * num_anchors, 1)
        self.head1 = _block(CHANNELS, 48, kernel_size=3)
        self.head2 = _block(48, 48, kernel_size=3)
        self.dropout = nn.Dropout(0.3)
        hidden = 48 * (roi_size - 4) ** 2
        self.scores = nn.Linear(hidden, 1 + num_labels)
        self.deltas = nn.Linear(hidden, 4)
        nn.init.constant_(self.objectness.bias, -4.0)  # most anchors see paper
        for layer in (self.objectness, self.anchor_deltas, self.scores, self.deltas):
            nn.init.normal_(layer.weight, std=0.01)

    def features(self, page: Tensor) -> Tensor:
        """Return the feature map (num_pages, 32, height / 4, width / 4) of pages of gray levels 0 to 255."""
        x = self.stem2(self.stem1(page / 127.5 - 1))
        for body in (self.body1, self.body2, self.body3):
            x = x + body(x)
        return x

    def propose(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return objectness (num_pages, num_anchors) as logits, predictions (num_pages, num_anchors, 4)."""
        x = self.rpn(features)
        objectness = self.objectness(x).permute(0, 2, 3, 1).flatten(1)
        return objectness, self.anchor_deltas(x).permute(0, 2, 3, 1).flatten(1).unflatten(1, (-1, 4))

    def classify(self, crops: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits (num_rois, 1 + num_labels), background first, and predictions (num_rois, 4)."""
        x = self.dropout(self.head2(self.head1(crops)).flatten(1))
        return self.scores(x), self.deltas(x)
