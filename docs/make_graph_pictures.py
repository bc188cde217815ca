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

WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 132, 34, 18, 34, 30
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


def layers_of(boxes: Boxes) -> list[list[str]]:
    """Put every box one layer below its lowest maker, and sort each layer by where its makers are."""
    depth: dict[str, int] = {}
    for name, (_, makers) in boxes.items():
        depth[name] = 1 + max((depth[maker] for maker in makers), default=-1)
    layers: list[list[str]] = [[] for _ in range(max(depth.values()) + 1)]
    for name in boxes:
        layers[depth[name]].append(name)
    place: dict[str, float] = {}
    for layer in layers:
        layer.sort(key=lambda name: sum(place[m] for m in boxes[name][1]) / max(len(boxes[name][1]), 1))
        place.update({name: number - len(layer) / 2 for number, name in enumerate(layer)})
    return layers


def draw(boxes: Boxes, title: str) -> Image.Image:
    """Draw the boxes in layers, with a line from every maker to its readers."""
    layers = layers_of(boxes)
    across = max(len(layer) for layer in layers)
    width = max(2 * MARGIN + across * (WIDTH + GAP_X) - GAP_X, 3 * WIDTH)
    height = 3 * MARGIN + len(layers) * (HEIGHT + GAP_Y) - GAP_Y
    image = Image.new("RGB", (width, height), "white")
    pen, font = ImageDraw.Draw(image), ImageFont.load_default(15)
    pen.text((MARGIN, MARGIN / 2), title, fill=TEXT, font=ImageFont.load_default(18))
    corner: dict[str, tuple[float, float]] = {}
    for depth, layer in enumerate(layers):
        left = (width - len(layer) * (WIDTH + GAP_X) + GAP_X) / 2
        for number, name in enumerate(layer):
            corner[name] = (left + number * (WIDTH + GAP_X), 2 * MARGIN + depth * (HEIGHT + GAP_Y))
    for name, (_, makers) in boxes.items():
        x, y = corner[name]
        for maker in makers:
            start_x, start_y = corner[maker]
            pen.line((start_x + WIDTH / 2, start_y + HEIGHT, x + WIDTH / 2, y), fill=LINE, width=2)
    for name, (label, _) in boxes.items():
        x, y = corner[name]
        kind = label if name.startswith("node ") else "input"
        area = (x, y, x + WIDTH, y + HEIGHT)
        pen.rounded_rectangle(area, radius=8, fill=COLORS.get(kind, OTHER), outline=LINE, width=2)
        pen.text((x + WIDTH / 2, y + HEIGHT / 2), label, fill=TEXT, font=font, anchor="mm")
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
