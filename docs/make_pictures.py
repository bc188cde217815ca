"""Draw what the operators do, and how fast: docs/conf.py writes a picture for each of these pages to docs/_pictures.

    python docs/make_pictures.py [NAME ...]

Whatever a picture shows, detops has computed: where a point lies is read off from maps that hold their own coordinates.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon, Rectangle
from numpy.typing import NDArray
from skimage import data, filters, measure

import detops

FOLDER = Path(__file__).parent / "_pictures"
BLUE, ORANGE, GREEN, RED, GRAY = "#1f77b4", "#e6740a", "#2a9134", "#d1242f", "#8a8a8a"
STYLE = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "detops",  # the same names in the file each time
}

Array = NDArray[np.float64]
PICTURES: dict[str, tuple[Callable[[], Figure], str]] = {}


def picture(caption: str) -> Callable[[Callable[[], Figure]], Callable[[], Figure]]:
    """Add a picture to the page that is called as the function."""

    def add(draw: Callable[[], Figure]) -> Callable[[], Figure]:
        PICTURES[draw.__name__] = draw, caption
        return draw

    return add


def panels(*titles: str, height: float = 3.0, width: float = 9.0) -> tuple[Figure, list[Axes]]:
    """A figure of plots side by side."""
    figure = Figure((width, height), layout="constrained")
    plots = list(np.atleast_1d(figure.subplots(1, len(titles))))
    for plot, title in zip(plots, titles, strict=True):
        plot.set_title(title)
    return figure, plots


def cells(plot: Axes, height: int, width: int) -> None:
    """Draw the elements of a map as squares: element (i, j) has its center at (j, i)."""
    plot.set(xlim=(-0.6, width - 0.4), ylim=(height - 0.4, -0.6), aspect="equal", xticks=(), yticks=())
    plot.axis("off")
    for at in range(width + 1):
        plot.plot([at - 0.5] * 2, [-0.5, height - 0.5], color="#dddddd", lw=0.8, zorder=0)
    for at in range(height + 1):
        plot.plot([-0.5, width - 0.5], [at - 0.5] * 2, color="#dddddd", lw=0.8, zorder=0)
    y, x = np.mgrid[:height, :width]
    plot.plot(x.ravel(), y.ravel(), ".", color="#bbbbbb", ms=3, zorder=0)


def coordinates(height: int, width: int) -> Array:
    """A map (1, 2, height, width) whose elements are their own x and y."""
    y, x = np.mgrid[:height, :width].astype(float)
    return np.stack([x, y])[None]


def rectangles(plot: Axes, boxes: Array, colors: Iterable[str], **style: float) -> None:
    """Draw boxes (x1, y1, x2, y2)."""
    for (x1, y1, x2, y2), color in zip(boxes.tolist(), colors, strict=True):
        plot.add_patch(Rectangle((x1, y1), x2 - x1, y2 - y1, fill=False, edgecolor=color, **{"lw": 1.4, **style}))


def photograph(plot: Axes, image: NDArray[np.uint8]) -> None:
    """Show a photograph, without axes."""
    plot.imshow(image, cmap="gray")
    plot.axis("off")


def boxes_of_coins() -> tuple[NDArray[np.uint8], Array]:
    """A photograph of coins, and the boxes around them."""
    image = data.coins()
    smooth = filters.gaussian(image, 2)
    labels = measure.label(smooth > filters.threshold_local(smooth, 151))
    regions = [region for region in measure.regionprops(labels) if region.area > 500 and min(region.bbox[:2]) > 1]
    return image, detops.masks_to_boxes(np.stack([labels == region.label for region in regions])).astype(float)


def candidates() -> tuple[NDArray[np.uint8], Array, Array]:
    """The coins, and what a detector would predict for them: several boxes for each, with scores."""
    image, coins = boxes_of_coins()
    random = np.random.default_rng(4)
    boxes = np.repeat(coins, 6, axis=0)
    return image, boxes + random.normal(0, 3.5, boxes.shape), random.uniform(0.3, 1, len(boxes))


@picture(
    "2 × 2 bins of a roi. Each is the mean of its points (orange), which are interpolated between four elements (gray)."
)
def roi_align() -> Figure:
    """Where the points of the bins lie, for an aligned roi and the legacy of Detectron."""
    figure, plots = panels("aligned=True", "aligned=False: half an element to the right and down")
    roi = np.array([[0.0, 1.2, 0.9, 6.4, 4.9]])
    for plot, aligned in zip(plots, (True, False), strict=True):
        cells(plot, 6, 8)
        # A bin for each point of 2 x 2 bins with 2 x 2 points.
        x, y = detops.roi_align(coordinates(6, 8), roi, 4, sampling_ratio=1, aligned=aligned)[0]
        step_x, step_y = x[0, 1] - x[0, 0], y[1, 0] - y[0, 0]
        left, top = x[0, 0] - step_x / 2, y[0, 0] - step_y / 2
        for i, j in np.ndindex(2, 2):
            corner = (left + 2 * j * step_x, top + 2 * i * step_y)
            plot.add_patch(Rectangle(corner, 2 * step_x, 2 * step_y, fill=False, edgecolor=BLUE, lw=1.6))
        low_x, low_y = np.floor(x[0, 0]), np.floor(y[0, 0])
        for corner_y, corner_x in np.ndindex(2, 2):
            plot.plot([x[0, 0], low_x + corner_x], [y[0, 0], low_y + corner_y], color=ORANGE, lw=0.9)
        plot.plot(x.ravel(), y.ravel(), "o", color=ORANGE, ms=4)
    return figure


@picture("The elements that each of 2 × 2 bins takes its maximum of: one with a border inside belongs to both bins.")
def roi_pool() -> Figure:
    """Which elements belong to which bin, found with maps that are 1 in one place."""
    figure, plots = panels("the bin above left", "above right", "below left", "below right", height=2.0)
    height, width, roi = 6, 8, [1.2, 0.9, 5.4, 4.6]
    ones = np.eye(height * width).reshape(1, -1, height, width)
    taken = detops.roi_pool(ones, np.array([[0.0, *roi]]), 2)[0]
    for plot, of_bin in zip(plots, taken.reshape(height * width, 4).T, strict=True):
        cells(plot, height, width)
        for i, j in np.argwhere(of_bin.reshape(height, width)):
            plot.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, color=BLUE, alpha=0.25, lw=0))
        rectangles(plot, np.array([roi]), [ORANGE])
    return figure


@picture(
    "The taps of a 3 × 3 kernel at one position: offsets move them, and a mask (the area of the dots) weighs them."
)
def deform_conv2d() -> Figure:
    """Taps of an ordinary, a deformable and a modulated convolution, read off with kernels that are 1 in one tap."""
    figure, plots = panels("a convolution", "with offsets (version 1)", "and with a mask (version 2)")
    random = np.random.default_rng(2)
    offsets, mask = random.normal(0, 0.45, (1, 18, 1, 1)), random.uniform(0.05, 1, (1, 9, 1, 1))
    one_tap = np.eye(9).reshape(9, 1, 3, 3)
    plain = None
    for plot, (offset, weighed) in zip(plots, [(0 * offsets, 1), (offsets, 1), (offsets, mask)], strict=True):
        cells(plot, 7, 7)
        everywhere = np.broadcast_to(offset, (1, 18, 7, 7))
        x, y = (
            detops.deform_conv2d(axis[:, None], everywhere, one_tap, padding=1)[0, :, 3, 3]
            for axis in np.moveaxis(coordinates(7, 7), 1, 0)
        )
        plain = (x, y) if plain is None else plain
        for start_x, start_y, end_x, end_y in zip(*plain, x, y, strict=True):
            plot.annotate("", (end_x, end_y), (start_x, start_y), arrowprops={"arrowstyle": "->", "color": GRAY})
        plot.scatter(x, y, s=60 * np.ravel(weighed), color=ORANGE, zorder=3)
        plot.plot(3, 3, "s", color=BLUE, ms=12, mfc="none")
    return figure


@picture(
    "A photograph (NASA) sampled at a turned grid that reaches beyond it: the padding mode says what stands there."
)
def grid_sample() -> Figure:
    """Every padding mode on a photograph."""
    figure, plots = panels("the grid on the photograph", '"zeros"', '"border"', '"reflection"', height=2.7)
    image = data.astronaut()[::2, ::2] / 255
    turn, size = 0.35, 1.55
    y, x = np.mgrid[-size:size:256j, -size:size:256j]
    grid = np.stack([np.cos(turn) * x - np.sin(turn) * y, np.sin(turn) * x + np.cos(turn) * y], axis=-1)
    photograph(plots[0], image)
    for line in (*grid[::51], *grid[:, ::51].swapaxes(0, 1)):
        plots[0].plot(*((line.T + 1) * 128 - 0.5), color=ORANGE, lw=0.8)
    for plot, mode in zip(plots[1:], ("zeros", "border", "reflection"), strict=True):
        sampled = detops.grid_sample(image.transpose(2, 0, 1)[None], grid[None], padding_mode=mode)
        photograph(plot, sampled[0].transpose(1, 2, 0))
    return figure


@picture("Six candidates for each coin, and what is left of them: for each coin the box of highest score.")
def nms() -> Figure:
    """Candidates for coins, before and after."""
    image, boxes, scores = candidates()
    kept = detops.nms(boxes, scores, 0.3)
    figure, plots = panels(f"before: {len(boxes)} boxes", f"nms(boxes, scores, 0.3): {len(kept)} boxes", height=3.6)
    for plot, chosen, color in zip(plots, (np.arange(len(boxes)), kept), (ORANGE, GREEN), strict=True):
        photograph(plot, image)
        rectangles(plot, boxes[chosen], [color] * len(chosen))
    return figure


@picture("Two objects, A and B, and a second box of A: a hard decision loses B, a soft one lowers its score.")
def soft_nms() -> Figure:
    """Three boxes, the weights of the methods, and the scores that they leave."""
    figure, (left, middle, right) = panels("boxes", "weight by IoU with a box that was taken", "scores", height=2.8)
    boxes = np.array([[0.0, 0, 60, 80], [26, 6, 86, 86], [3, -5, 63, 74]])
    scores, names = np.array([0.95, 0.9, 0.8]), ("A", "B", "A again")
    colors = (BLUE, GREEN, ORANGE)
    rectangles(left, boxes, colors, lw=2)
    places = [(0, 83, "left", "top"), (86, 89, "right", "top"), (3, -8, "left", "bottom")]
    for name, color, (x, y, across, along) in zip(names, colors, places, strict=True):
        left.text(x, y, name, color=color, ha=across, va=along)
    left.set(xlim=(-8, 94), ylim=(98, -20), aspect="equal")
    left.axis("off")
    overlaps = np.linspace(0, 1, 200, endpoint=False)[1:]
    right.bar(np.arange(3) - 0.3, scores, 0.18, color=GRAY, label="before")
    for place, method in enumerate(("naive", "linear", "gaussian")):
        pairs = [
            detops.soft_nms([[0, 0, 1, 1], [0, 0, overlap, 1]], [1.0, 0.5], 0.3, method=method, min_score=0)
            for overlap in overlaps
        ]
        weights = [dets[1, 4] / 0.5 if len(dets) > 1 else 0.0 for dets, _ in pairs]
        color = (RED, "#9467bd", "#17becf")[place]
        middle.plot(overlaps, weights, color=color, label=method)
        dets, kept = detops.soft_nms(boxes, scores, 0.3, method=method, min_score=0)
        after = np.zeros(3)
        after[kept] = dets[:, 4]
        right.bar(np.arange(3) - 0.1 + 0.2 * place, after, 0.18, color=color, label=method)
    middle.set(xlim=(0, 1), ylim=(-0.05, 1.05), xlabel="IoU (the threshold is 0.3)")
    right.set(ylim=(0, 1.5), xticks=range(3), xticklabels=names)
    right.legend(frameon=False, ncols=2, fontsize=8, loc="upper right")
    return figure


@picture("A box moves to the right, away from another: all modes but IoU tell how far apart they are when they part.")
def box_iou() -> Figure:
    """The modes, as one box moves."""
    figure, (left, right) = panels("two boxes", "how far they overlap", height=2.8)
    fixed, shifts = np.array([[0.0, 0.0, 10.0, 8.0]]), np.linspace(0, 30, 121)
    moving = fixed + shifts[:, None] * [1, 0, 1, 0]
    rectangles(left, np.concatenate([fixed, moving[[20, 60, 100]]]), [BLUE, *[ORANGE] * 3])
    left.annotate("", (37, 4), (12, 4), arrowprops={"arrowstyle": "->", "color": GRAY})
    left.set(xlim=(-2, 40), ylim=(11, -3), aspect="equal")
    left.axis("off")
    for mode in ("iou", "giou", "diou", "ciou"):
        style = {"ls": ":"} if mode == "ciou" else {}
        right.plot(shifts, detops.box_iou(fixed, moving, mode=mode)[0], label=f'"{mode}"', **style)
    right.axvline(10, color=GRAY, lw=0.8, ls=":")
    right.set(xlabel="shift (the boxes are 10 wide)")
    right.legend(frameon=False)
    return figure


def turned(plot: Axes, boxes: Array, colors: Iterable[str], **style: float) -> None:
    """Draw boxes (center_x, center_y, width, height, angle)."""
    corners = detops.box_convert(boxes, "cxcywha", "xyxyxyxy").reshape(-1, 4, 2)
    for points, color in zip(corners, colors, strict=True):
        plot.add_patch(Polygon(points, fill=False, edgecolor=color, **{"lw": 1.4, **style}))


@picture("A box that turns in another: a long one loses more of its overlap than a square one.")
def box_iou_rotated() -> Figure:
    """IoU by angle, for three shapes."""
    figure, (left, right) = panels("turned by 23 degrees, clockwise", "IoU with the box that is not turned", height=2.8)
    angles = np.linspace(0, np.pi / 2, 91)
    left.set(xlim=(-12, 72), ylim=(18, -18), aspect="equal")
    left.axis("off")
    for place, (width, height) in enumerate([(20, 20), (20, 10), (20, 4)]):
        color = (BLUE, ORANGE, GREEN)[place]
        box = np.array([[28.0 * place, 0, width, height, 0]])
        turning = box + angles[:, None] * [0, 0, 0, 0, 1]
        turned(left, np.concatenate([box, turning[23:24]]), [GRAY, color])
        overlaps = detops.box_iou_rotated(box, turning)[0]
        right.plot(angles, overlaps, color=color, label=f"{width} x {height}")
    right.set(xlabel="angle in radians", ylim=(0, 1.05))
    right.legend(frameon=False)
    return figure


@picture("Turned boxes that cross stay; those that lie on each other do not.")
def nms_rotated() -> Figure:
    """Candidates for sticks, before and after."""
    random = np.random.default_rng(3)
    sticks = [[60, 60, 110, 14, 0.5], [70, 55, 100, 14, 2.2], [170, 60, 90, 16, 1.2], [235, 62, 100, 12, 1.9]]
    boxes = np.repeat(np.array(sticks, float), 5, axis=0)
    boxes += random.normal(0, 1, boxes.shape) * [1.5, 1, 4, 1, 0.03]
    kept = detops.nms_rotated(boxes, random.uniform(0.3, 1, len(boxes)), 0.3)
    figure, plots = panels(f"before: {len(boxes)} boxes", f"IoU threshold 0.3: {len(kept)} boxes", height=2.4)
    for plot, chosen, color in zip(plots, (np.arange(len(boxes)), kept), (ORANGE, GREEN), strict=True):
        turned(plot, boxes[chosen], [color] * len(chosen))
        plot.set(xlim=(0, 290), ylim=(125, -5), aspect="equal")
        plot.axis("off")
    return figure


@picture(
    "An anchor (gray) and its box: tx, ty move the center in units of the size, tw, th are logarithms of its growth."
)
def decode_bbox() -> Figure:
    """One anchor, and what each prediction makes of it."""
    predictions = np.array([[0.5, 0, 0, 0], [0, -0.4, 0, 0], [0, 0, 0.5, 0], [0.3, 0.2, -0.4, 0.35]])
    anchor = np.array([[-20.0, -15.0, 20.0, 15.0]])
    boxes = detops.decode_bbox(predictions, np.repeat(anchor, 4, axis=0))
    figure, plots = panels(*(f"({', '.join(f'{t:g}' for t in row)})" for row in predictions), height=2.0)
    for plot, box in zip(plots, boxes, strict=True):
        plot.set(xlim=(-45, 45), ylim=(34, -34), aspect="equal")
        plot.axis("off")
        rectangles(plot, anchor, [GRAY], lw=1.0)
        rectangles(plot, box[None], [BLUE], lw=1.8)
        plot.plot(0, 0, ".", color=GRAY)
        center = (box[:2] + box[2:]) / 2
        if center.any():
            plot.annotate("", center, (0, 0), arrowprops={"arrowstyle": "->", "color": ORANGE, "shrinkB": 0})
    return figure


@picture("One query reads four points of the map of each level; the area of a dot is its weight of attention.")
def multi_scale_deform_attn() -> Figure:
    """Where a query reads, found with maps that hold their own coordinates."""
    shapes = np.array([[12, 16], [6, 8], [3, 4]])
    figure, plots = panels(*(f"level {level}: {h} x {w}" for level, (h, w) in enumerate(shapes)), height=2.6)
    random = np.random.default_rng(1)
    locations = 0.5 + random.normal(0, 0.14, (3, 4, 2))
    weights = random.dirichlet(np.ones(12)).reshape(3, 4)
    for level, (plot, (height, width)) in enumerate(zip(plots, shapes.tolist(), strict=True)):
        cells(plot, height, width)
        keys = coordinates(height, width)[0].reshape(2, -1).T[None, :, None]
        for location, weight in zip(locations[level], weights[level], strict=True):
            place = location.reshape(1, 1, 1, 1, 1, 2)
            one = np.ones(place.shape[:-1])
            x, y = detops.multi_scale_deform_attn(keys, [[height, width]], [0], place, one).ravel()
            plot.scatter(x, y, s=900 * weight, color=ORANGE, alpha=0.8, lw=0, zorder=3)
    return figure


@picture("The largest and the smallest element so far; the dots are where they stand.")
def cummax() -> Figure:
    """A signal, its running extremes and their places."""
    figure, (plot,) = panels("", height=2.4)
    signal = np.cumsum(np.random.default_rng(9).normal(size=80))
    plot.plot(signal, color=GRAY, lw=1, label="x")
    for function, color in ((detops.cummax, RED), (detops.cummin, BLUE)):
        values, indices = function(signal)
        plot.step(range(len(values)), values, where="post", color=color, label=f"{function.__name__}(x)")
        plot.plot(np.unique(indices), signal[np.unique(indices)], ".", color=color)
    plot.legend(frameon=False, ncols=3)
    return figure


@picture("A photograph in the evening and at noon: normalized by itself, each has the same mean and deviation.")
def instance_norm() -> Figure:
    """Two exposures of a photograph before and after, with the values of their pixels."""
    figure = Figure((9, 3.6), layout="constrained")
    plots = figure.subplots(2, 3, width_ratios=(1, 1, 1.3))
    image = data.coffee()[::2, ::2].transpose(2, 0, 1) / 255
    exposures = np.stack([image * 0.25 * np.array([1.2, 0.9, 0.6])[:, None, None], 0.25 + 0.75 * image])
    normal = detops.instance_norm(exposures)
    for row, name in enumerate(("evening", "noon")):
        photograph(plots[row, 0], exposures[row].transpose(1, 2, 0))
        plots[row, 0].set_title(name)
        photograph(plots[row, 1], np.clip(normal[row].transpose(1, 2, 0) / 5 + 0.5, 0, 1))
        plots[row, 1].set_title("normalized")
        for channel, color in zip(normal[row], (RED, GREEN, BLUE), strict=True):
            plots[row, 2].hist(channel.ravel(), 60, range=(-3, 3), histtype="step", color=color)
        plots[row, 2].set(yticks=(), xlim=(-3, 3))
    plots[0, 2].set_title("values of red, green and blue")
    return figure


@picture("Four updates of rows; two of them go to the same row.")
def scatter_nd() -> Figure:
    """Rows written into a table, by reduction."""
    titles = ("data", "updates, to rows 1, 4, 4, 6", 'reduction="none"', '"add"', '"max"')
    figure, plots = panels(*titles, height=2.6)
    before = np.ones((8, 4), np.int64)
    updates = np.repeat([[2], [5], [3], [4]], 4, axis=1)
    indices = np.array([[1], [4], [4], [6]])
    after = [detops.scatter_nd(before, indices, updates, reduction=name) for name in ("none", "add", "max")]
    for plot, table in zip(plots, (before, updates, *after), strict=True):
        plot.imshow(table, cmap="Blues", vmin=0, vmax=12)
        for (i, j), value in np.ndenumerate(table):
            plot.text(j, i, str(value), ha="center", va="center", fontsize=8)
        plot.set(ylim=(7.5, -0.5), xlim=(-0.5, 3.5))
        plot.axis("off")
    return figure


@picture("masks_to_boxes: the smallest box around each mask of a segmentation.")
def box_functions() -> Figure:
    """Masks of coins, and their boxes."""
    image, boxes = boxes_of_coins()
    figure, (plot,) = panels("", height=3.4, width=5)
    photograph(plot, image)
    rectangles(plot, boxes, [GREEN] * len(boxes))
    return figure


@picture("How many times as long the peers take, on a logarithmic scale; a row with several numbers has several dots.")
def speed() -> Figure:
    """The first table of the page, as a plot."""
    text = (Path(__file__).parent / "speed.md").read_text(encoding="utf-8")
    table = text.partition("| --- |")[2].partition("\n\n")[0].splitlines()[1:]
    rows = [row.replace("`", "").strip("| ").split(" | ") for row in table]
    figure = Figure((9, 0.27 * len(rows) + 0.6), layout="constrained")
    plot = figure.subplots()
    for place, (workload, peer, times) in enumerate(rows):
        numbers = [float(re.findall(r"[\d.]+", part)[0]) for part in times.split(" / ")]
        plot.plot(numbers, [place] * len(numbers), "o", color=BLUE if "ONNX" in peer else ORANGE, ms=5)
        name = textwrap.shorten(f"{workload}: {peer}", 92, placeholder=" …")
        plot.text(0.6, place, name, ha="right", va="center", fontsize=7.5)
    plot.axvline(1, color=GRAY, lw=0.8)
    plot.set(xscale="log", xlim=(0.7, 600), ylim=(len(rows) - 0.5, -0.5), yticks=())
    plot.set_xticks([1, 10, 100], ["1", "10", "100"])
    plot.spines["left"].set_visible(False)
    return figure


def write(*names: str) -> None:
    """Write these pictures."""
    FOLDER.mkdir(exist_ok=True)
    with matplotlib.rc_context(STYLE):
        for name in names:
            PICTURES[name][0]().savefig(FOLDER / f"{name}.svg", metadata={"Date": None})


def figure(name: str) -> str:
    """A picture in MyST's notation."""
    caption = PICTURES[name][1]
    return f"```{{figure}} /_pictures/{name}.svg\n:alt: {caption}\n\n{caption}\n```\n"


if __name__ == "__main__":
    write(*(sys.argv[1:] or PICTURES))
