"""Draw a graph before and after fusion: `python docs/make_graph_pictures.py` writes docs/images/graph_fusion.png."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
from PIL import Image, ImageDraw, ImageFont

from detops.graph import fuse_decode_bbox

ROOT = Path(__file__).parents[1]
MODEL = ROOT / "tests" / "data" / "graphs" / "pos_concat_last_axis.onnx"
PICTURE = ROOT / "docs" / "images" / "graph_fusion.png"

WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN, BEND = 132, 34, 18, 38, 30, 12
COLORS = {"input": "#dbe9f6", "output": "#dbe9f6", "DecodeBbox": "#c7e9c0"}
OTHER, LINE, TEXT = "#f4f4f4", "#777777", "#222222"

Boxes = dict[str, tuple[str, list[str]]]  # name of a box -> its label, and the boxes that feed it


def boxes_of(model: onnx.ModelProto) -> Boxes:
    """Return inputs, nodes and outputs of a model as boxes, in an order in which makers come first."""
    graph = model.graph
    boxes: Boxes = {value.name: (value.name.removesuffix(":0"), []) for value in graph.input}
    maker = {value.name: value.name for value in graph.input}
    for node in graph.node:
        name = f"node {node.output[0]}"
        boxes[name] = (node.op_type, [maker[source] for source in node.input if source in maker])
        maker.update(dict.fromkeys(node.output, name))
    for value in graph.output:
        boxes[f"output {value.name}"] = (value.name.removesuffix(":0"), [maker[value.name]])
    return boxes


def layers_of(boxes: Boxes) -> tuple[Boxes, list[list[str]]]:
    """Put every box one layer below its lowest maker; a line that passes a layer has a box without a label there."""
    depth: dict[str, int] = {}
    for name, (_, makers) in boxes.items():
        depth[name] = 1 + max((depth[maker] for maker in makers), default=-1)
    placed: Boxes = {}
    for name, (label, makers) in boxes.items():
        above = []
        for maker in makers:
            for layer in range(depth[maker] + 1, depth[name]):
                passing = f"{maker} passes {layer}"  # one place for all lines from a maker
                placed[passing] = "", [maker]
                depth[passing], maker = layer, passing
            above.append(maker)
        placed[name] = label, above
    layers: list[list[str]] = [[] for _ in range(max(depth.values()) + 1)]
    for name in placed:
        layers[depth[name]].append(name)
    return placed, layers


def middles_of(boxes: Boxes, layers: list[list[str]]) -> dict[str, float]:
    """Where each box has its middle: near those of its makers and readers, and apart from its neighbors."""
    linked: dict[str, list[str]] = {name: list(makers) for name, (_, makers) in boxes.items()}
    for name, (_, makers) in boxes.items():
        for maker in makers:
            linked[maker].append(name)
    middle = {name: WIDTH * (at - len(layer) / 2) for layer in layers for at, name in enumerate(layer)}
    for sweep in range(60):
        for layer in layers if sweep % 2 else reversed(layers):
            wanted = {name: sum(map(middle.get, linked[name])) / len(linked[name]) for name in layer}
            if sweep < 40:
                layer.sort(key=lambda name: wanted[name])
            right = float("-inf")
            for name in layer:
                half = width_of(boxes[name][0]) / 2
                middle[name] = max(wanted[name], right + half)
                right = middle[name] + half + GAP_X
            aside = sum(wanted[name] - middle[name] for name in layer) / len(layer)
            middle.update({name: middle[name] + aside for name in layer})
    return middle


def width_of(label: str) -> int:
    """The width of a box; a line that passes needs little."""
    return WIDTH if label else GAP_X


def draw(boxes: Boxes, title: str) -> Image.Image:
    """Draw the boxes in layers, with an arrow from every maker to its readers."""
    boxes, layers = layers_of(boxes)
    middle = middles_of(boxes, layers)
    left = min(middle[name] - width_of(boxes[name][0]) / 2 for name in boxes) - MARGIN
    right = max(middle[name] + width_of(boxes[name][0]) / 2 for name in boxes) + MARGIN
    middle = {name: x - left for name, x in middle.items()}
    top = {name: 2 * MARGIN + at * (HEIGHT + GAP_Y) for at, layer in enumerate(layers) for name in layer}
    image = Image.new(
        "RGB", (round(max(right - left, 2 * WIDTH)), 2 * MARGIN + len(layers) * (HEIGHT + GAP_Y)), "white"
    )
    pen, font = ImageDraw.Draw(image), ImageFont.load_default(15)
    pen.text((MARGIN, MARGIN / 2), title, fill=TEXT, font=ImageFont.load_default(18))
    for name, (label, makers) in boxes.items():
        x, y = middle[name], top[name]
        for at, maker in enumerate(sorted(makers, key=middle.__getitem__)):
            # Side by side where they end, straight down before that: every arrow can be followed.
            end = x + BEND * (at - (len(makers) - 1) / 2) * bool(label)
            bend = y - BEND if label else y
            pen.line((middle[maker], top[maker] + HEIGHT, end, bend, end, y), fill=LINE, width=2, joint="curve")
            if label:
                pen.polygon((end - 4, y - 8, end + 4, y - 8, end, y), fill=LINE)
        if not label:
            pen.line((x, y, x, y + HEIGHT), fill=LINE, width=2)
    for name, (label, _) in boxes.items():
        if label:
            x, y = middle[name], top[name]
            kind = label if name.startswith("node ") else "input"
            area = (x - WIDTH / 2, y, x + WIDTH / 2, y + HEIGHT)
            pen.rounded_rectangle(area, radius=8, fill=COLORS.get(kind, OTHER), outline=LINE, width=2)
            pen.text((x, y + HEIGHT / 2), label, fill=TEXT, font=font, anchor="mm")
    return image


def beside(*images: Image.Image) -> Image.Image:
    """Put pictures side by side."""
    sheet = Image.new("RGB", (sum(image.width for image in images), max(image.height for image in images)), "white")
    left = 0
    for image in images:
        sheet.paste(image, (left, 0))
        left += image.width
    return sheet


def main() -> None:
    """Write the picture."""
    model: Any = onnx.load(MODEL)
    fused, _ = fuse_decode_bbox(model)
    before = draw(boxes_of(model), f"before: {len(model.graph.node)} nodes")
    after = draw(boxes_of(fused), f"after: {len(fused.graph.node)} node")
    beside(before, after).save(PICTURE, optimize=True)


if __name__ == "__main__":
    main()
