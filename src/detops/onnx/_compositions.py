"""Nodes that are compositions of others, which ONNX Runtime or the native library runs.

Exporters for TensorRT write whole post-processing steps as one node. Each is written here once, as nodes of forms that
are the same in all operator sets from 11 on. In that order they stand in the place of the node (`_expansion`), and the
evaluator runs them as its body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from detops.onnx._table import Attribute, attribute_arguments

INT64, INT32, FLOAT32 = np.int64, np.int32, np.float32

# What TensorRT's plugin takes at most into account.
EFFICIENT_TOP_K = 4096


class Nodes:
    """Nodes in the order in which they run. Calling it adds one and returns the names of its results."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.protos: list[Any] = []

    def __call__(self, operator: str, *inputs: str, domain: str = "", count: int = 1, **attributes: Any) -> Any:
        import onnx

        results = [f"{self.prefix}{len(self.protos)}_{operator}" + (f"_{i}" if i else "") for i in range(count)]
        self.protos.append(onnx.helper.make_node(operator, inputs, results, results[0], domain=domain, **attributes))
        return results[0] if count == 1 else results

    def constant(self, value: Any, dtype: Any = INT64) -> str:
        import onnx

        return str(self("Constant", value=onnx.numpy_helper.from_array(np.asarray(value, dtype))))

    def cast(self, value: str, dtype: Any) -> str:
        import onnx

        return str(self("Cast", value, to=onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))))

    def size(self, value: str, axis: int) -> str:
        """The length of an axis, of shape (1,)."""
        return str(self("Gather", self("Shape", value), self.constant([axis])))

    def product(self, *factors: str) -> str:
        result = factors[0]
        for factor in factors[1:]:
            result = self("Mul", result, factor)
        return result

    def shape(self, *sizes: str | int) -> str:
        """A shape of sizes (1,), or of plain numbers."""
        return str(self("Concat", *(self.constant([x]) if isinstance(x, int) else x for x in sizes), axis=0))

    def filled(self, value: Any, dtype: Any, *sizes: str | int) -> str:
        import onnx

        tensor = onnx.numpy_helper.from_array(np.asarray([value], dtype))
        return str(self("ConstantOfShape", self.shape(*sizes), value=tensor))

    def counted(self, size: str, *shape: int) -> str:
        """0, 1, 2, ... as many as a size (1,) says, in a shape with one open axis."""
        scalar = self("Reshape", size, self.constant(np.zeros(0)))
        numbers = self("Range", self.constant(0), scalar, self.constant(1))
        return str(self("Reshape", numbers, self.constant(shape)))


@dataclass(frozen=True)
class Composition:
    """A node: its name, how many inputs it takes (None for no limit), its attributes, and what it is made of.

    ``build`` gets the nodes to add to, the names of the inputs, and the attributes as arguments; it returns the names
    of all results that the node may have.
    """

    domain: str
    name: str
    inputs: tuple[int, int | None]
    attributes: tuple[Attribute, ...]
    build: Callable[..., Sequence[str]]

    @property
    def title(self) -> str:
        """The operator as error messages name it."""
        return f"{self.domain}::{self.name}"

    def nodes(
        self, prefix: str, inputs: Sequence[str], outputs: Sequence[str], attributes: dict[str, Any]
    ) -> list[Any]:
        """Return the nodes that compute a node of this operator; names inside begin with the prefix."""
        least, most = self.inputs
        if len(inputs) < least or (most is not None and len(inputs) > most) or "" in inputs:
            wanted = f"{least}" if least == most else f"{least} or more" if most is None else f"{least} to {most}"
            raise ValueError(f"{self.title}: expected {wanted} inputs, got {[each for each in inputs if each]}")
        added = Nodes(prefix)
        try:
            results = self.build(added, list(inputs), **attribute_arguments(self.attributes, attributes))
        except ValueError as error:
            raise ValueError(f"{self.title}: {error}") from error
        if len(outputs) > len(results):
            raise ValueError(f"{self.title}: expected at most {len(results)} outputs, got {len(outputs)}")
        names = {ours: theirs for ours, theirs in zip(results, outputs, strict=False) if theirs}
        for node in added.protos:
            node.input[:] = [names.get(each, each) for each in node.input]
            node.output[:] = [names.get(each, each) for each in node.output]
        return added.protos


def find(domain: str, name: str) -> Composition | None:
    """Return what a node is made of; None for a node that is none of these."""
    return _BY_NAME.get((domain, name))


@dataclass(frozen=True)
class _Detections:
    """The results of a suppression: boxes (B, limit, 4) and the others (B, limit)."""

    found: str
    boxes: str
    scores: str
    labels: str  # int64, -1 where nothing was found
    # int64, of the boxes in their batch, class by class where each has its own; -1 where nothing was found
    indices: str


def _suppressed(
    nodes: Nodes,
    boxes: str,
    scores: str,
    *,
    limit: int,
    top_k: int,
    iou_threshold: float,
    score_threshold: float,
    background: int,
    agnostic: bool = False,
) -> _Detections:
    """Select boxes of every class, and of those the best of each batch.

    Boxes are (B, N, 1 or C, 4), scores (B, N, C). Those above the threshold take part, at most `top_k` of each class
    (of all, where classes don't matter) if that is above 0.
    """
    batches, real_count, classes = (nodes.size(scores, axis) for axis in range(3))
    owners = nodes.size(boxes, 2)
    one, lowest = nodes.constant([1]), nodes.constant(-np.inf, FLOAT32)

    # One box of zeros more, without a score: what is not found is that one, and no axis is empty.
    scores = nodes("Concat", scores, nodes.filled(-np.inf, FLOAT32, batches, 1, classes), axis=1)
    boxes = nodes("Concat", boxes, nodes.filled(0, FLOAT32, batches, 1, owners, 4), axis=1)
    count = nodes("Add", real_count, one)
    boxes, scores = nodes("Transpose", boxes, perm=[0, 2, 1, 3]), nodes("Transpose", scores, perm=[0, 2, 1])
    if score_threshold < 0:  # which is none to the node below
        scores = nodes("Where", nodes("Greater", scores, nodes.constant(score_threshold, FLOAT32)), scores, lowest)
    if background >= 0:
        other = nodes("Not", nodes("Equal", nodes.counted(classes, -1, 1), nodes.constant(background)))
        scores = nodes("Where", other, scores, lowest)

    # Sets of boxes, each with as many classes as share them.
    if agnostic:
        repeats = nodes.shape(1, nodes("Div", classes, owners), 1, 1)
        candidates, members = nodes("Tile", boxes, repeats), nodes.product(classes, count)
        sets, of_set = batches, one
    else:
        candidates, members = boxes, count
        sets, of_set = nodes.product(batches, owners), nodes("Div", classes, owners)
    scores = nodes("Reshape", scores, nodes.shape(sets, of_set, members))
    rows = nodes(
        "NonMaxSuppression",
        nodes("Reshape", candidates, nodes.shape(sets, members, 4)),
        scores,
        domain="detops",
        max_output_boxes_per_class=limit,
        pre_nms_top_k=max(top_k, 0),
        iou_threshold=iou_threshold,
        # There a score may be equal to its threshold.
        score_threshold=float(np.nextafter(FLOAT32(score_threshold), FLOAT32(np.inf))) if score_threshold >= 0 else 0.0,
    )
    # Rows of -1 fill the result up: they mean the last set, which is one too many.
    rows = nodes.cast(rows, INT64)
    values = nodes(
        "GatherND", nodes("Concat", scores, nodes.filled(-np.inf, FLOAT32, 1, of_set, members), axis=0), rows
    )
    kept = nodes("ScatterND", nodes.filled(-np.inf, FLOAT32, nodes("Add", sets, one), of_set, members), rows, values)
    kept = nodes("Reshape", nodes("Slice", kept, nodes.constant([0]), sets), nodes.shape(batches, -1))
    # As many more as are asked for, so that they are there. A place is a class and a box, class by class.
    kept = nodes("Concat", kept, nodes.filled(-np.inf, FLOAT32, batches, limit), axis=1)
    score, place = nodes("TopK", kept, nodes.constant([limit]), axis=1, count=2)
    found = nodes("Greater", score, lowest)

    label = nodes("Div", place, count)
    box = nodes("Sub", place, nodes.product(label, count))
    owner = nodes("Where", nodes("Equal", owners, one), nodes.constant([0]), label)
    start = nodes.product(nodes.counted(batches, -1, 1), owners, count)
    row = nodes("Add", start, nodes("Add", nodes.product(owner, count), box))
    table = nodes("Reshape", boxes, nodes.shape(-1, 4))
    none = nodes.constant(-1)
    return _Detections(
        found=found,
        boxes=nodes("Gather", table, nodes("Where", found, row, real_count)),
        scores=nodes("Where", found, score, nodes.constant(0, FLOAT32)),
        labels=nodes("Where", found, label, none),
        indices=nodes("Where", found, nodes("Add", nodes.product(owner, real_count), box), none),
    )


def _attribute(name: str, kind: Any, *default: Any, argument: str = "") -> Attribute:
    return Attribute(name, argument or name, kind, *default)


def _at_least_one(name: str, value: int) -> int:
    if value < 1:
        raise ValueError(f"attribute {name}: expected at least 1, got {value}")
    return value


_BATCHED = (
    _attribute("keep_topk", "int"),
    _attribute("topk", "int", -1),
    _attribute("iou_threshold", "float"),
    _attribute("score_threshold", "float"),
    _attribute("background_label_id", "int", -1),
    _attribute("clip_boxes", "int", 1),
)


def _batched(
    nodes: Nodes,
    inputs: list[str],
    limit: str,
    keep_topk: int,
    topk: int,
    iou_threshold: float,
    score_threshold: float,
    background_label_id: int,
    clip_boxes: int,
) -> _Detections:
    found = _suppressed(
        nodes,
        *inputs,
        limit=_at_least_one(limit, keep_topk),
        top_k=topk,
        iou_threshold=iou_threshold,
        score_threshold=score_threshold,
        background=background_label_id,
    )
    if not clip_boxes:
        return found
    bounds = nodes.constant(0, FLOAT32), nodes.constant(1, FLOAT32)
    return replace(found, boxes=nodes("Clip", found.boxes, *bounds))


def _trt_batched_nms(nodes: Nodes, inputs: list[str], **options: Any) -> Sequence[str]:
    """MMDeploy's: boxes and scores in one."""
    found = _batched(nodes, inputs, "keep_topk", **options)
    column = nodes("Reshape", found.scores, nodes.constant([0, options["keep_topk"], 1]))
    dets = nodes("Concat", found.boxes, column, axis=2)
    return dets, nodes.cast(found.labels, INT32), nodes.cast(found.indices, INT32)


def _batched_nms_trt(nodes: Nodes, inputs: list[str], **options: Any) -> Sequence[str]:
    """TensorRT's own: the count, and everything else by itself."""
    found = _batched(nodes, inputs, "keepTopK", **options)
    return _count(nodes, found, options["keep_topk"]), found.boxes, found.scores, nodes.cast(found.labels, FLOAT32)


def _count(nodes: Nodes, found: _Detections, limit: int) -> str:
    """How many were found in each batch, of shape (B, 1): a product with ones, as sums are written in two ways."""
    ones = nodes.filled(1, FLOAT32, limit, 1)
    return nodes.cast(nodes("MatMul", nodes.cast(found.found, FLOAT32), ones), INT32)


def _below(number: float) -> float:
    """The next smaller number."""
    return float(np.nextafter(FLOAT32(number), FLOAT32(-np.inf)))


def _efficient_nms(
    nodes: Nodes,
    inputs: list[str],
    max_output_boxes: int,
    iou_threshold: float,
    score_threshold: float,
    background_class: int,
    score_activation: int,
    class_agnostic: int,
    box_coding: int,
) -> Sequence[str]:
    boxes, scores = inputs
    boxes = nodes("Reshape", boxes, nodes.constant([0, 0, -1, 4]))  # those of all classes may lack the axis
    if box_coding:
        center, size = (nodes("Gather", boxes, nodes.constant(pair), axis=3) for pair in ([0, 1], [2, 3]))
        half = nodes("Mul", size, nodes.constant(0.5, FLOAT32))
        boxes = nodes("Concat", nodes("Sub", center, half), nodes("Add", center, half), axis=3)
    if score_activation:
        scores = nodes("Sigmoid", scores)
    found = _suppressed(
        nodes,
        boxes,
        scores,
        limit=_at_least_one("max_output_boxes", max_output_boxes),
        top_k=EFFICIENT_TOP_K,
        # Here a score may be equal to its threshold, and an IoU that is equal to its own suppresses.
        iou_threshold=max(_below(iou_threshold), 0.0),
        score_threshold=_below(score_threshold),
        background=background_class,
        agnostic=bool(class_agnostic),
    )
    labels = nodes("Where", found.found, found.labels, nodes.constant(0))
    return _count(nodes, found, max_output_boxes), found.boxes, found.scores, nodes.cast(labels, INT32)


def _gather_topk(nodes: Nodes, inputs: list[str]) -> Sequence[str]:
    """Of values (B, N, ...) those at indices (B, K), each in its batch."""
    values, indices = inputs
    batches, count = nodes.size(values, 0), nodes.size(values, 1)
    rest = nodes("Slice", nodes("Shape", values), nodes.constant([2]), nodes.constant([np.iinfo(INT64).max]))
    flat = nodes("Reshape", values, nodes("Concat", nodes.product(batches, count), rest, axis=0))
    start = nodes.product(nodes.counted(batches, -1, 1), count)
    return (nodes("Gather", flat, nodes("Add", nodes.cast(indices, INT64), start)),)


def _grid_priors(nodes: Nodes, inputs: list[str], stride_h: int, stride_w: int) -> Sequence[str]:
    anchors, rows, columns = inputs
    y = nodes.product(
        nodes.cast(nodes.counted(nodes.size(rows, 0), -1, 1, 1, 1), FLOAT32),
        nodes.constant(np.reshape([0, stride_h, 0, stride_h], (1, 1, 1, 4)), FLOAT32),
    )
    x = nodes.product(
        nodes.cast(nodes.counted(nodes.size(columns, 0), 1, -1, 1, 1), FLOAT32),
        nodes.constant(np.reshape([stride_w, 0, stride_w, 0], (1, 1, 1, 4)), FLOAT32),
    )
    return (nodes("Reshape", nodes("Add", nodes("Add", anchors, x), y), nodes.constant([-1, 4])),)


def _attention(nodes: Nodes, inputs: list[str]) -> Sequence[str]:
    """Of queries (B, T, E), keys and values (B, S, E); the mask is added to the weights."""
    query, key, value, *mask = inputs
    root = nodes("Sqrt", nodes.cast(nodes.size(query, 2), FLOAT32))
    weights = nodes("MatMul", nodes("Div", query, root), nodes("Transpose", key, perm=[0, 2, 1]))
    if mask:
        weights = nodes("Add", weights, mask[0])
    weights = nodes("Softmax", weights, axis=2)  # the last axis, where the older and the newer operator agree
    return nodes("MatMul", weights, value), weights


def _bicubic(nodes: Nodes, inputs: list[str], scale_factor: tuple[float, ...], align_corners: int) -> Sequence[str]:
    if len(scale_factor) != 2:
        raise ValueError(f"attribute scale_factor: expected two numbers, got {scale_factor}")
    (image,) = inputs
    sides = nodes("Gather", nodes("Shape", image), nodes.constant([2, 3]))
    scaled = nodes("Floor", nodes("Mul", nodes.cast(sides, FLOAT32), nodes.constant(scale_factor, FLOAT32)))
    sizes = nodes.shape(nodes.size(image, 0), nodes.size(image, 1), nodes.cast(scaled, INT64))
    nothing = nodes.constant(np.zeros(0), FLOAT32)
    return (
        nodes(
            "Resize",
            image,
            nothing,
            nothing,
            sizes,
            mode="cubic",
            cubic_coeff_a=-0.75,
            coordinate_transformation_mode="align_corners" if align_corners else "half_pixel",
        ),
    )


def _corner_pool(nodes: Nodes, inputs: list[str], mode: int) -> Sequence[str]:
    if not 0 <= mode <= 3:
        raise ValueError(f"attribute mode: expected 0 (top), 1 (bottom), 2 (left) or 3 (right), got {mode}")
    axis, from_the_end = 2 + mode // 2, mode % 2 == 0
    last, first = nodes.constant([-1]), nodes.constant([np.iinfo(INT64).min])

    def turned(value: str) -> str:
        if not from_the_end:
            return value
        return str(nodes("Slice", value, last, first, nodes.constant([axis]), last))

    highest, _ = nodes("cummax", turned(inputs[0]), domain="mmcv", dim=axis, count=2)
    return (turned(highest),)


def _multi_level_roi_align(
    nodes: Nodes,
    inputs: list[str],
    featmap_strides: tuple[float, ...],
    finest_scale: int,
    roi_scale_factor: float,
    pool_mode: int,
    **options: int,
) -> Sequence[str]:
    """Pool each roi from the level of its size, log2(size / finest_scale) rounded down, in the order of the rois."""
    rois, *features = inputs
    if len(features) != len(featmap_strides):
        raise ValueError(f"expected a map of features for each of {len(featmap_strides)} levels, got {len(features)}")
    x1, y1, x2, y2 = (nodes("Gather", rois, nodes.constant(column), axis=1) for column in range(1, 5))
    side = nodes("Sqrt", nodes.product(nodes("Sub", y2, y1), nodes("Sub", x2, x1)))
    size = nodes("Add", nodes("Div", side, nodes.constant(finest_scale, FLOAT32)), nodes.constant(1e-6, FLOAT32))
    level = nodes.filled(0, INT64, nodes.size(rois, 0))
    for k in range(1, len(features)):
        least = nodes.constant(2.0**k, FLOAT32)
        reached = nodes("Or", nodes("Greater", size, least), nodes("Equal", size, least))
        level = nodes("Add", level, nodes.cast(reached, INT64))
    places, pooled = [], []
    for k, (feature, stride) in enumerate(zip(features, featmap_strides, strict=True)):
        here = nodes("Reshape", nodes("NonZero", nodes("Equal", level, nodes.constant(k))), nodes.constant([-1]))
        places.append(here)
        pooled.append(
            nodes(
                "MMCVRoiAlign",
                feature,
                _rescaled(nodes, nodes("Gather", rois, here), roi_scale_factor),
                domain="mmdeploy",
                spatial_scale=1 / stride,
                mode="avg" if pool_mode else "max",
                **options,
            )
        )
    order = nodes("Concat", *places, axis=0)
    _, back = nodes("TopK", order, nodes.size(order, 0), largest=0, count=2)
    return (nodes("Gather", nodes("Concat", *pooled, axis=0), back),)


def _rescaled(nodes: Nodes, rois: str, factor: float) -> str:
    """Rois around the same centers, larger by a factor: in MMDeploy their sides count the pixels of both corners."""
    if factor in (0, 1):
        return rois
    batch, first, second = (nodes("Gather", rois, nodes.constant(part), axis=1) for part in ([0], [1, 2], [3, 4]))
    half, one = nodes.constant(0.5, FLOAT32), nodes.constant(1, FLOAT32)
    center = nodes("Mul", nodes("Add", first, second), half)
    sides = nodes("Mul", nodes("Add", nodes("Sub", second, first), one), nodes.constant(factor, FLOAT32))
    reach = nodes("Mul", nodes("Sub", sides, one), half)
    return str(nodes("Concat", batch, nodes("Sub", center, reach), nodes("Add", center, reach), axis=1))


_TENSORRT_NMS = (
    _attribute("keepTopK", "int", argument="keep_topk"),
    _attribute("topK", "int", -1, argument="topk"),
    _attribute("iouThreshold", "float", argument="iou_threshold"),
    _attribute("scoreThreshold", "float", argument="score_threshold"),
    _attribute("backgroundLabelId", "int", -1, argument="background_label_id"),
    _attribute("clipBoxes", "int", 1, argument="clip_boxes"),
)

COMPOSITIONS = (
    Composition("mmdeploy", "TRTBatchedNMS", (2, 2), _BATCHED, _trt_batched_nms),
    Composition("mmdeploy", "GatherTopk", (2, 2), (), _gather_topk),
    Composition(
        "mmdeploy",
        "GridPriorsTRT",
        (3, 3),
        (_attribute("stride_h", "int"), _attribute("stride_w", "int")),
        _grid_priors,
    ),
    Composition(
        "mmdeploy",
        "MMCVMultiLevelRoiAlign",
        (2, None),
        (
            _attribute("output_height", "int"),
            _attribute("output_width", "int"),
            _attribute("sampling_ratio", "int"),
            _attribute("roi_scale_factor", "float", 0.0),
            _attribute("finest_scale", "int"),
            _attribute("featmap_strides", "floats"),
            _attribute("aligned", "int", 1),
            _attribute("pool_mode", "int", 1),
        ),
        _multi_level_roi_align,
    ),
    Composition("mmdeploy", "ScaledDotProductAttentionTRT", (3, 4), (), _attention),
    Composition(
        "mmdeploy",
        "TRTBicubicInterpolate",
        (1, 1),
        (_attribute("scale_factor", "floats"), _attribute("align_corners", "int", 0)),
        _bicubic,
    ),
    Composition("mmcv", "MMCVCornerPool", (1, 1), (_attribute("mode", "int"),), _corner_pool),
    # TensorRT's plugins; exporters write its domain or none.
    *(
        composition
        for domain in ("TRT", "")
        for composition in (
            Composition(
                domain,
                "EfficientNMS_TRT",
                (2, 2),
                (
                    _attribute("max_output_boxes", "int", 100),
                    _attribute("iou_threshold", "float", 0.5),
                    _attribute("score_threshold", "float", 0.25),
                    _attribute("background_class", "int", -1),
                    _attribute("score_activation", "int", 0),
                    _attribute("class_agnostic", "int", 0),
                    _attribute("box_coding", "int", 0),
                ),
                _efficient_nms,
            ),
            *(
                Composition(domain, name, (2, 2), _TENSORRT_NMS, _batched_nms_trt)
                for name in ("BatchedNMS_TRT", "BatchedNMSDynamic_TRT")
            ),
        )
    ),
)
_BY_NAME = {(each.domain, each.name): each for each in COMPOSITIONS}
