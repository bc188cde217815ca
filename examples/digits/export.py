"""Write the trained detector as ONNX, node by node, from the .npz file of train.py.

    python examples/digits/export.py weights.npz src/detops/data/digits           # rpn.onnx and head.onnx
    python examples/digits/export.py deform.npz src/detops/data/digits --single   # digits.onnx

The two files run in any ONNX runtime. The single graph holds the whole detector: box decoding as plain
operators in tensorpack's form; MMCVRoiAlign and MMCVModulatedDeformConv2d of domain mmcv; NonMaxSuppression of domain
detops.
"""

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike, NDArray
from onnx import TensorProto, helper, numpy_helper
from pages import HEIGHT, WIDTH

from detops.demo import Settings

OPSET, IR_VERSION = 17, 8
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
Weights = dict[str, NDArray[np.float32]]
Shape = list[int | str]


class Graph:
    """A graph in the making; methods add nodes and return the names of their outputs."""

    def __init__(self, weights: Weights, settings: Settings) -> None:
        self.weights, self.settings = weights, settings
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: dict[str, onnx.TensorProto] = {}
        self._scope = ""
        self._counts: dict[str, int] = {}

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        outer, self._scope = self._scope, f"{self._scope}{name}/"
        yield
        self._scope = outer

    def node(self, op: str, *inputs: str, outputs: int = 1, domain: str = "", **attributes: Any) -> Any:
        """Add a node; return the name of its output, or a list of names."""
        name = self._unique(op)
        results = [name] if outputs == 1 else [f"{name}:{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, results, name=name, domain=domain, **attributes))
        return name if outputs == 1 else results

    def constant(self, value: ArrayLike, dtype: type = np.float32) -> str:
        name = self._unique("const")
        self.initializers[name] = numpy_helper.from_array(np.asarray(value, dtype), name)
        return name

    def ints(self, *values: int) -> str:
        return self.constant(values, np.int64)

    def weight(self, name: str) -> str:
        self.initializers[name] = numpy_helper.from_array(self.weights[name], name)
        return name

    def output(self, name: str, value: str) -> None:
        self.nodes.append(helper.make_node("Identity", [value], [name], name=name))

    def conv(self, x: str, layer: str, *, stride: int = 1, padding: int = 0, dilation: int = 1) -> str:
        weight, bias = self.weight(f"{layer}.weight"), self.weight(f"{layer}.bias")
        sizes = {"strides": [stride] * 2, "pads": [padding] * 4, "dilations": [dilation] * 2}
        return self.node("Conv", x, weight, bias, **sizes)

    def linear(self, x: str, layer: str) -> str:
        return self.node("Gemm", x, self.weight(f"{layer}.weight"), self.weight(f"{layer}.bias"), transB=1)

    def _unique(self, op: str) -> str:
        name = self._scope + op
        count = self._counts[name] = self._counts.get(name, -1) + 1
        return f"{name}_{count}" if count else name

    def model(self, inputs: dict[str, Shape], outputs: dict[str, tuple[int, Shape]]) -> onnx.ModelProto:
        graph = helper.make_graph(
            self.nodes,
            "digits",
            [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in inputs.items()],
            [helper.make_tensor_value_info(name, dtype, shape) for name, (dtype, shape) in outputs.items()],
            list(self.initializers.values()),
        )
        opsets = [helper.make_opsetid("", OPSET)]
        custom = {node.domain for node in self.nodes} - {""}
        opsets += [helper.make_opsetid(domain, 1) for domain in sorted(custom)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="detops")
        onnx.checker.check_model(model)
        return model


def backbone(graph: Graph, image: str) -> str:
    """Gray levels (1, 1, height, width) of 0 to 255 -> features (1, channels, height / 4, width / 4)."""
    with graph.scope("backbone"):
        x = graph.node("Sub", graph.node("Div", image, graph.constant(127.5)), graph.constant(1))
        for layer in ("stem1", "stem2"):
            x = graph.node("Relu", graph.conv(x, layer, stride=2, padding=1))
        for layer, dilation in (("body1", 1), ("body2", 2), ("body3", 4)):
            if f"{layer}.where.weight" in graph.weights:
                change = deform_conv(graph, x, layer)
            else:
                change = graph.conv(x, layer, padding=dilation, dilation=dilation)
            x = graph.node("Add", x, graph.node("Relu", change))
    return x


def deform_conv(graph: Graph, x: str, layer: str) -> str:
    where = graph.conv(x, f"{layer}.where", padding=1)
    offset, mask = graph.node("Split", where, graph.ints(18, 9), outputs=2, axis=1)
    return graph.node(
        "MMCVModulatedDeformConv2d",
        x,
        offset,
        graph.node("Sigmoid", mask),
        graph.weight(f"{layer}.weight"),
        graph.weight(f"{layer}.bias"),
        domain="mmcv",
        stride=[1, 1],
        padding=[1, 1],
        dilation=[1, 1],
        groups=1,
        deform_groups=1,
    )


def region_proposals(graph: Graph, features: str) -> tuple[str, str]:
    """Features -> objectness (num_anchors,) as logits, box predictions (num_anchors, 4)."""
    with graph.scope("rpn"):
        x = graph.node("Relu", graph.conv(features, "rpn", padding=1))
        flat = []
        for layer, shape in (("objectness", [-1]), ("anchor_deltas", [-1, 4])):
            last = graph.node("Transpose", graph.conv(x, layer), perm=[0, 2, 3, 1])
            flat.append(graph.node("Reshape", last, graph.ints(*shape)))
    return flat[0], flat[1]


def box_head(graph: Graph, crops: str) -> tuple[str, str]:
    """Crops (num_rois, channels, 7, 7) -> scores (num_rois, 1 + num_labels), predictions (num_rois, 4)."""
    with graph.scope("head"):
        x = crops
        for layer in ("head1", "head2"):
            x = graph.node("Relu", graph.conv(x, layer))
        x = graph.node("Flatten", x)
        return graph.node("Softmax", graph.linear(x, "scores")), graph.linear(x, "deltas")


def anchor_boxes(graph: Graph, features: str) -> str:
    """Features -> anchors (num_anchors, 4), as `detops.demo.anchor_grid` makes them."""
    half = np.asarray(graph.settings.anchor_sizes, np.float32) / 2
    with graph.scope("anchors"):
        centers = []
        for axis, shape, place in ((3, [1, -1, 1, 1], [1, 0, 1, 0]), (2, [-1, 1, 1, 1], [0, 1, 0, 1])):
            count = graph.node("Shape", features, start=axis, end=axis + 1)
            count = graph.node("Squeeze", count, graph.ints(0))
            steps = graph.node("Range", graph.constant(0, np.int64), count, graph.constant(1, np.int64))
            cell = graph.node("Add", graph.node("Cast", steps, to=FLOAT), graph.constant(0.5))
            pixels = graph.node("Mul", cell, graph.constant(graph.settings.stride))
            pixels = graph.node("Reshape", pixels, graph.ints(*shape))
            centers.append(graph.node("Mul", pixels, graph.constant(place)))
        base = graph.constant(np.concatenate([-half, half], axis=1))
        grid = graph.node("Add", graph.node("Add", *centers), base)
        return graph.node("Reshape", grid, graph.ints(-1, 4))


def decode_boxes(graph: Graph, box_predictions: str, anchors: str) -> str:
    """Box predictions and anchors (num, 4) -> boxes (num, 4): `detops.decode_bbox` in tensorpack's form."""
    pairs, half = graph.ints(-1, 2, 2), graph.constant(0.5)
    with graph.scope("decode_bbox"):
        shape = graph.node("Shape", anchors)
        move, grow = graph.node("Split", graph.node("Reshape", box_predictions, pairs), outputs=2, axis=1)
        low, high = graph.node("Split", graph.node("Reshape", anchors, pairs), outputs=2, axis=1)
        size = graph.node("Sub", high, low)
        center = graph.node("Mul", graph.node("Add", high, low), half)
        clipped = graph.node("Min", grow, graph.constant(graph.settings.decode_clip))
        new_size = graph.node("Mul", graph.node("Exp", clipped), size)
        new_center = graph.node("Add", graph.node("Mul", move, size), center)
        reach = graph.node("Mul", new_size, half)
        corners = graph.node("Sub", new_center, reach), graph.node("Add", new_center, reach)
        return graph.node("Reshape", graph.node("Concat", *corners, axis=1), shape)


def clip_boxes(graph: Graph, boxes: str, image: str) -> str:
    with graph.scope("clip"):
        size = graph.node("Cast", graph.node("Shape", image, start=2, end=4), to=FLOAT)
        limits = graph.node("Gather", size, graph.ints(1, 0, 1, 0))
        return graph.node("Min", graph.node("Max", boxes, graph.constant(0)), limits)


def suppress(graph: Graph, boxes: str, scores: str, iou: float, score: float) -> str:
    """Boxes (num, 4), scores (num_labels, num) -> the rows (num_kept, 3) of (0, label, box) that are kept."""
    first = graph.ints(0)
    with graph.scope("nms"):
        rows = graph.node(
            "NonMaxSuppression",
            graph.node("Unsqueeze", boxes, first),
            graph.node("Unsqueeze", scores, first),
            domain="detops",
            max_output_boxes_per_class=graph.settings.num_proposals,
            iou_threshold=float(iou),
            score_threshold=float(score),
            center_point_box=0,
            offset=0,
        )
        rows = graph.node("Cast", rows, to=INT64)  # the rows are int32, and rows of -1 fill the rest
        used = graph.node("GreaterOrEqual", column(graph, rows, 2), first)
        return graph.node("Compress", rows, used, axis=0)


def column(graph: Graph, rows: str, index: int) -> str:
    return graph.node("Gather", rows, graph.constant(index, np.int64), axis=1)


def two_files(weights: Weights, settings: Settings) -> dict[str, onnx.ModelProto]:
    channels, num_labels = len(weights["body1.bias"]), len(settings.labels)
    rpn = Graph(weights, settings)
    features = backbone(rpn, "image")
    rpn.output("features", features)
    for name, value in zip(("objectness", "deltas"), region_proposals(rpn, features), strict=True):
        rpn.output(name, value)
    head = Graph(weights, settings)
    for name, value in zip(("scores", "deltas"), box_head(head, "crops"), strict=True):
        head.output(name, value)
    maps = {"features": (FLOAT, [1, channels, "rows", "columns"])}
    anchors = {"objectness": (FLOAT, ["anchors"]), "deltas": (FLOAT, ["anchors", 4])}
    rois = {"scores": (FLOAT, ["rois", 1 + num_labels]), "deltas": (FLOAT, ["rois", 4])}
    size = settings.roi_align["output_size"]
    return {
        "rpn.onnx": rpn.model({"image": [1, 1, "height", "width"]}, maps | anchors),
        "head.onnx": head.model({"crops": ["rois", channels, size, size]}, rois),
    }


def single_graph(weights: Weights, settings: Settings) -> dict[str, onnx.ModelProto]:
    graph = Graph(weights, settings)
    features = backbone(graph, "image")
    objectness, deltas = region_proposals(graph, features)
    with graph.scope("rpn"):
        boxes = decode_boxes(graph, deltas, anchor_boxes(graph, features))
        boxes = clip_boxes(graph, boxes, "image")
        objectness = graph.node("Unsqueeze", objectness, graph.ints(0))
        kept = suppress(graph, boxes, objectness, settings.proposal_iou, 0)
        proposals = graph.node("Gather", boxes, column(graph, kept, 2))
    crops = graph.node(
        "MMCVRoiAlign",
        features,
        graph.node("Pad", proposals, graph.ints(0, 1, 0, 0)),  # a column of zeros: the image's index
        domain="mmcv",
        output_height=settings.roi_align["output_size"],
        output_width=settings.roi_align["output_size"],
        spatial_scale=1 / settings.stride,
        sampling_ratio=settings.roi_align["sampling_ratio"],
        mode="avg",
        aligned=1,
    )
    scores, deltas = box_head(graph, crops)
    with graph.scope("head"):
        deltas = graph.node("Div", deltas, graph.constant(settings.head_scales))
        boxes = clip_boxes(graph, decode_boxes(graph, deltas, proposals), "image")
        _, scores = graph.node("Split", scores, graph.ints(1, len(settings.labels)), outputs=2, axis=1)
        scores = graph.node("Transpose", scores, perm=[1, 0])
        kept = suppress(graph, boxes, scores, settings.detection_iou, settings.score_threshold)
    labels, rows = column(graph, kept, 1), column(graph, kept, 2)
    where = graph.node("Slice", kept, graph.ints(1), graph.ints(3), graph.ints(1))
    scores = graph.node("GatherND", scores, where)
    scores, order = graph.node("TopK", scores, graph.node("Shape", scores), outputs=2, axis=0)
    graph.output("boxes", graph.node("Gather", boxes, graph.node("Gather", rows, order)))
    graph.output("scores", scores)
    graph.output("labels", graph.node("Gather", labels, order))
    model = graph.model(
        {"image": [1, 1, "height", "width"]},
        {"boxes": (FLOAT, ["found", 4]), "scores": (FLOAT, ["found"]), "labels": (INT64, ["found"])},
    )
    helper.set_model_props(
        model,
        {
            "labels": json.dumps(settings.labels),
            "image": json.dumps({"mode": "L", "range": [0, 255], "size": [HEIGHT, WIDTH]}),
            "draw": json.dumps({"boxes": "boxes", "scores": "scores", "labels": "labels"}),
        },
    )
    return {"digits.onnx": model}


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the trained digits detector as ONNX.")
    parser.add_argument("weights", type=Path, help="the .npz file of train.py")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--single", action="store_true", help="write one graph, digits.onnx")
    arguments = parser.parse_args()
    with np.load(arguments.weights) as stored:
        weights = dict(stored)
    settings = Settings.load()
    make = single_graph if arguments.single else two_files
    for name, model in make(weights, settings).items():
        path = arguments.folder / name
        onnx.save(model, path)
        print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
