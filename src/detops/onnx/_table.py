"""The operators of the ONNX layer as data.

The evaluator's classes, the native library's registration and the documentation are all made from :data:`OPERATORS`.
The fusion writes two of these operators; ``detops.graph._schema`` has their attributes as a proof reads them, and a
test holds those against this table.
"""

from __future__ import annotations

import itertools
import math
import numbers
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from detops import _specification
from detops._specification import FLOATS, NUMBERS, REQUIRED


@dataclass(frozen=True)
class Input:
    """An input of a node: its name, the argument of the public function that it is, and its type.

    "T" stands for any of the operator's types. Where those are floats, inputs may differ in them, but for one that is
    ``like`` another argument; results have the type of the first input.
    """

    name: str
    argument: str
    dtype: str = "T"
    required: bool = True
    like: str = ""


@dataclass(frozen=True)
class Attribute:
    """An attribute of a node, and the argument of the public function that it becomes.

    ``spellings`` are other names for it. ``words`` translates what the node may hold to what the function takes (a
    float that is not among them stands for itself); ``order`` reorders a list of as many numbers. ``default`` is what
    the node would hold.
    """

    name: str
    argument: str
    kind: Literal["int", "float", "ints", "floats", "string"]
    default: Any = REQUIRED
    spellings: tuple[str, ...] = ()
    words: Mapping[Any, Any] = field(default_factory=dict)
    order: tuple[int, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All names that the attribute may have on a node."""
        return (self.name, *self.spellings)


@dataclass(frozen=True)
class NodeType:
    """An operator of a domain.

    ``family`` names the function that computes it, ``fixed`` the arguments that the operator itself settles,
    ``versions`` the opset versions that define it in this form, ``outputs`` the names and types of the results.
    ``native`` says whether the library for ONNX Runtime holds it.
    """

    domain: str
    name: str
    family: str
    inputs: tuple[Input, ...]
    outputs: tuple[tuple[str, str], ...]
    attributes: tuple[Attribute, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)
    dtypes: tuple[str, ...] = FLOATS
    versions: tuple[int, ...] = (1,)
    native: bool = True

    @property
    def title(self) -> str:
        """The operator as error messages name it."""
        return f"{self.domain or 'ai.onnx'}::{self.name}"

    @property
    def function(self) -> _specification.Operator:
        """The public function that computes it; those of a family that is more than one are alike."""
        return _specification.OPERATORS["cummax" if self.family == "cumulative" else self.family]

    @property
    def ranks(self) -> tuple[int | None, ...]:
        """How many axes each result has; None for as many as the first input."""
        ranks = (result.rank for result in self.function.results)
        return tuple(rank if isinstance(rank, int) else None for rank in ranks)

    @property
    def combinations(self) -> list[tuple[str, ...]]:
        """The types that the inputs of one node may have."""
        count = sum(each.dtype == "T" and not each.like for each in self.inputs)
        mixed = set(self.dtypes) <= set(FLOATS)
        chosen = itertools.product(self.dtypes, repeat=count) if mixed else ((dtype,) * count for dtype in self.dtypes)
        return [self._types(choice) for choice in chosen]

    def _types(self, choice: tuple[str, ...]) -> tuple[str, ...]:
        """The types of all inputs from those of the inputs that are free."""
        free = iter(choice)
        types: dict[str, str] = {}
        for each in self.inputs:
            fixed = types[each.like] if each.like else each.dtype
            types[each.argument] = next(free) if fixed == "T" else fixed
        return tuple(types.values())


def _optional(name: str, argument: str, dtype: str = "T", like: str = "") -> Input:
    return Input(name, argument, dtype, required=False, like=like)


def _onnx(name: str, family: str, versions: tuple[int, ...], *rest: Any, **more: Any) -> NodeType:
    return replace(NodeType("", name, family, *rest, **more), versions=versions)


_ROI_SIZE = (
    Attribute("sampling_ratio", "sampling_ratio", "int", 0),
    Attribute("spatial_scale", "spatial_scale", "float", 1.0),
)
_ONNX_ROI_ALIGN = (
    (Input("X", "features"), Input("rois", "rois"), Input("batch_indices", "batch_indices", "int64")),
    (("Y", "T"),),
    (
        # In ONNX the maximum is that of the weighted corners.
        Attribute("mode", "mode", "string", "avg", words={"avg": "avg", "max": "corner_max"}),
        Attribute("output_height", "output_height", "int", 1),
        Attribute("output_width", "output_width", "int", 1),
        *_ROI_SIZE,
    ),
)
_HALF_PIXEL = Attribute(
    "coordinate_transformation_mode",
    "aligned",
    "string",
    "half_pixel",
    words={"half_pixel": True, "output_half_pixel": False},
)
_MAX_ROI_POOL = (
    (Input("X", "features"), Input("rois", "rois")),
    (("Y", "T"),),
    (Attribute("pooled_shape", "output_size", "ints"), Attribute("spatial_scale", "spatial_scale", "float", 1.0)),
)
_NMS_INPUTS = (
    Input("boxes", "boxes"),
    Input("scores", "scores"),
    _optional("max_output_boxes_per_class", "max_output_boxes_per_class", "int64"),
    _optional("iou_threshold", "iou_threshold", "float32"),
    _optional("score_threshold", "score_threshold", "float32"),
)
_CENTER_POINT_BOX = Attribute("center_point_box", "center_point_box", "int", 0)
_GRID_SAMPLE = ((Input("X", "x"), Input("grid", "grid")), (("Y", "T"),))
_GRID_OPTIONS = (
    Attribute(
        "padding_mode",
        "padding_mode",
        "string",
        "zeros",
        words={word: word for word in ("zeros", "border", "reflection")},
    ),
    Attribute("align_corners", "align_corners", "int", 0),
)
_GRID_WORDS = {
    "linear": "linear",
    "bilinear": "linear",
    "nearest": "nearest",
    "cubic": "cubic",
    "bicubic": "cubic",
}
_INSTANCE_NORM = (
    (Input("input", "x"), Input("scale", "scale"), Input("B", "bias", like="scale")),
    (("output", "T"),),
    (Attribute("epsilon", "epsilon", "float", 1e-5),),
)
_SCATTER_INPUTS = (Input("data", "data"), Input("indices", "indices", "int64"), Input("updates", "updates"))


def _scatter_nd(version: int, *reductions: str) -> NodeType:
    words = {word: word for word in reductions}
    attributes = (Attribute("reduction", "reduction", "string", "none", words=words),) if reductions else ()
    return _onnx(
        "ScatterND",
        "scatter_nd",
        (version,),
        _SCATTER_INPUTS,
        (("output", "T"),),
        attributes,
        dtypes=(*NUMBERS, "string"),
        native=False,
    )


_DEFORM_CONV = _onnx(
    "DeformConv",
    "deform_conv2d",
    (19, 22),
    (
        Input("X", "x"),
        Input("W", "weight"),
        Input("offset", "offset"),
        _optional("B", "bias", like="weight"),
        _optional("mask", "mask", like="offset"),
    ),
    (("Y", "T"),),
    (
        Attribute("strides", "stride", "ints", (1, 1)),
        Attribute("pads", "padding", "ints", (0, 0, 0, 0)),
        Attribute("dilations", "dilation", "ints", (1, 1)),
        Attribute("group", "groups", "int", 1),
        Attribute("offset_group", "offset_groups", "int", 1),
        Attribute("kernel_shape", "kernel_shape", "ints", ()),
    ),
    fixed={"im2col_step": None},
)
_MMCV_CONV_OPTIONS = (
    Attribute("stride", "stride", "ints", (1, 1)),
    # Four numbers are MMDeploy's (top, bottom, left, right); detops and ONNX say (top, left, bottom, right).
    Attribute("padding", "padding", "ints", (0, 0), order=(0, 2, 1, 3)),
    Attribute("dilation", "dilation", "ints", (1, 1)),
    Attribute("groups", "groups", "int", 1, ("group",)),
    Attribute("deform_groups", "offset_groups", "int", 1, ("deformable_groups", "deformable_group", "deform_group")),
)

_DEFAULT = (
    _onnx("RoiAlign", "roi_align", (10,), *_ONNX_ROI_ALIGN, fixed={"aligned": False}, native=False),
    _onnx("RoiAlign", "roi_align", (16,), *_ONNX_ROI_ALIGN[:2], (*_ONNX_ROI_ALIGN[2], _HALF_PIXEL), native=False),
    _onnx("RoiAlign", "roi_align", (22,), *_ONNX_ROI_ALIGN[:2], (*_ONNX_ROI_ALIGN[2], _HALF_PIXEL)),
    _onnx("MaxRoiPool", "roi_pool", (1, 22), *_MAX_ROI_POOL),
    _scatter_nd(11),
    _scatter_nd(13),
    _scatter_nd(16, "none", "add", "mul"),
    _scatter_nd(18, "none", "add", "mul", "min", "max"),
    _onnx(
        "NonMaxSuppression",
        "non_max_suppression",
        (10, 11),
        _NMS_INPUTS,
        (("selected_indices", "int64"),),
        (_CENTER_POINT_BOX,),
        native=False,
    ),
    _DEFORM_CONV,
    _onnx(
        "GridSample",
        "grid_sample",
        (16, 20, 22),
        *_GRID_SAMPLE,
        # Version 16 says bilinear and bicubic, the later ones linear and cubic.
        (Attribute("mode", "mode", "string", "linear", words=_GRID_WORDS), *_GRID_OPTIONS),
        fixed={"reflect_first": False},
    ),
    _onnx("InstanceNormalization", "instance_norm", (6, 22), *_INSTANCE_NORM),
)


def _exported_anywhere(domain: str) -> tuple[NodeType, ...]:
    """The operators that MMCV has written in the default domain, too."""
    return (
        NodeType(
            domain,
            "MMCVDeformConv2d",
            "deform_conv2d",
            (Input("input", "x"), Input("offset", "offset"), Input("weight", "weight")),
            (("output", "T"),),
            # A bound of scratch memory: it never changes the result.
            (*_MMCV_CONV_OPTIONS, Attribute("im2col_step", "im2col_step", "int", None)),
            fixed={"kernel_shape": ()},
        ),
        NodeType(
            domain,
            "MMCVModulatedDeformConv2d",
            "deform_conv2d",
            (
                Input("input", "x"),
                Input("offset", "offset"),
                Input("mask", "mask", like="offset"),
                Input("weight", "weight"),
                _optional("bias", "bias", like="weight"),
            ),
            (("output", "T"),),
            _MMCV_CONV_OPTIONS,
            fixed={"kernel_shape": (), "im2col_step": None},
        ),
        NodeType(domain, "MMCVInstanceNormalization", "instance_norm", *_INSTANCE_NORM),
    )


def _exported(domain: str) -> tuple[NodeType, ...]:
    """The operators that MMCV or MMDeploy write: either has used the other's domain."""
    return (
        NodeType(
            domain,
            "MMCVRoiAlign",
            "roi_align",
            (Input("input", "features"), Input("rois", "rois")),
            (("output", "T"),),
            (
                Attribute("output_height", "output_height", "int"),
                Attribute("output_width", "output_width", "int"),
                *_ROI_SIZE,
                Attribute("mode", "mode", "string", "avg", words={"avg": "avg", "max": "max"}),
                Attribute("aligned", "aligned", "int", 1),
            ),
        ),
        NodeType(
            domain,
            "grid_sampler",
            "grid_sample",
            (Input("input", "x"), Input("grid", "grid")),
            (("output", "T"),),
            (
                Attribute("interpolation_mode", "mode", "int", 0, words={0: "linear", 1: "nearest", 2: "cubic"}),
                Attribute("padding_mode", "padding_mode", "int", 0, words={0: "zeros", 1: "border", 2: "reflection"}),
                Attribute("align_corners", "align_corners", "int", 0),
            ),
            fixed={"reflect_first": True},
        ),
        NodeType(domain, "TRTInstanceNormalization", "instance_norm", *_INSTANCE_NORM),
        *(
            NodeType(
                domain,
                name,
                "cumulative",
                (Input("input", "x"),),
                (("output", "T"), ("indices", "int64")),
                (Attribute("dim", "axis", "int"),),
                fixed={"smallest": name == "cummin"},
                dtypes=NUMBERS,
            )
            for name in ("cummax", "cummin")
        ),
        *_exported_anywhere(domain),
    )


_DEFORM_ATTN = NodeType(
    "mmdeploy",
    "MMCVMultiScaleDeformableAttention",
    "multi_scale_deform_attn",
    (
        Input("value", "value"),
        Input("value_spatial_shapes", "spatial_shapes", "int64"),
        Input("value_level_start_index", "level_start_index", "int64"),
        Input("sampling_locations", "sampling_locations"),
        Input("attention_weights", "attention_weights", like="sampling_locations"),
    ),
    (("output", "T"),),
    # Its im2col_step bounds the memory of TensorRT's plugin, and is not read.
)


def _padded_suppression(domain: str, *more: Attribute, **fixed: Any) -> NodeType:
    return NodeType(
        domain,
        "NonMaxSuppression",
        "non_max_suppression_padded",
        _NMS_INPUTS,
        (("indices", "int32"),),
        (
            _CENTER_POINT_BOX,
            Attribute("offset", "offset", "int", 0),
            Attribute("max_output_boxes_per_class", "max_output_boxes_per_class", "int", 0),
            Attribute("iou_threshold", "iou_threshold", "float", 0.0),
            Attribute("score_threshold", "score_threshold", "float", 0.0),
            *more,
        ),
        fixed=fixed,
    )


_SUPPRESSION = NodeType(
    "mmcv",
    "NonMaxSuppression",
    "nms",
    (Input("boxes", "boxes"), Input("scores", "scores")),
    (("indices", "int64"),),
    (Attribute("iou_threshold", "iou_threshold", "float"), Attribute("offset", "offset", "int", 0)),
)

_SOFT_SUPPRESSION = NodeType(
    "mmcv",
    "SoftNonMaxSuppression",
    "soft_nms",
    (Input("boxes", "boxes"), Input("scores", "scores", like="boxes")),
    (("dets", "T"), ("inds", "int64")),
    (
        Attribute("iou_threshold", "iou_threshold", "float"),
        Attribute("sigma", "sigma", "float"),
        Attribute("min_score", "min_score", "float"),
        Attribute("method", "method", "int", words={0: "naive", 1: "linear", 2: "gaussian"}),
        Attribute("offset", "offset", "int"),
    ),
    fixed={"max_output_boxes": None},
)

_BOXES = (
    (Input("box_predictions", "box_predictions"), Input("anchors", "anchors")),
    (("decoded_boxes", "T"),),
)
_AXIS = Attribute("axis", "axis", "int", -1)
_ANCHORS = (
    Attribute("anchor_form", "anchor_form", "string", "corner", words={"corner": "corner", "center": "center"}),
    Attribute("offset", "offset", "int", 0),
)
_DETOPS = (
    NodeType(
        "detops",
        "DecodeBbox",
        "decode_bbox",
        *_BOXES,
        (Attribute("decode_clip", "decode_clip", "float", math.inf), *_ANCHORS, _AXIS),
        fixed={"lower_clip": -math.inf, "scales": (1.0, 1.0, 1.0, 1.0), "means": (0.0, 0.0, 0.0, 0.0)},
    ),
    NodeType(
        "detops",
        "DecodeBboxV2",
        "decode_bbox",
        *_BOXES,
        (
            # As in CANN, 0 is no bound here.
            Attribute("decode_clip", "decode_clip", "float", 0.0, words={0: math.inf}),
            Attribute("lower_clip", "lower_clip", "float", -math.inf),
            Attribute("scales", "scales", "floats", (1.0, 1.0, 1.0, 1.0)),
            Attribute("means", "means", "floats", (0.0, 0.0, 0.0, 0.0)),
            *_ANCHORS,
            _AXIS,
        ),
    ),
)

OPERATORS = (
    *_DEFAULT,
    *_exported_anywhere(""),
    *_exported("mmcv"),
    _SUPPRESSION,
    _SOFT_SUPPRESSION,
    *_exported("mmdeploy"),
    _DEFORM_ATTN,
    _padded_suppression("mmdeploy", pre_nms_top_k=0),
    *_DETOPS,
    _padded_suppression("detops", Attribute("pre_nms_top_k", "pre_nms_top_k", "int", 0)),
)


def find(domain: str, name: str, version: int) -> NodeType | None:
    """Return what a node means in a model that imports this version of its domain; None if we have no such operator."""
    best = None
    for operator in OPERATORS:
        if (operator.domain, operator.name) == (domain, name) and min(operator.versions) <= version:
            best = operator
    return best


def attribute_arguments(declared: Iterable[Attribute], attributes: dict[str, Any]) -> dict[str, Any]:
    """Return what a node's attributes mean as arguments; those that are not declared are not read."""
    return {each.argument: attribute_argument(each, attributes) for each in declared}


def attribute_argument(declared: Attribute, attributes: dict[str, Any]) -> Any:
    name = next((name for name in declared.names if name in attributes), None)
    value = declared.default if name is None else attributes[name]
    if value is REQUIRED:
        raise ValueError(f"attribute {declared.name}: expected a value, got none")
    if name is not None and not _is_of_kind(value, declared.kind):
        raise ValueError(f"attribute {name}: expected {_WANTED[declared.kind]}, got {value!r}")
    if isinstance(value, bytes):
        value = value.decode()
    if declared.words and (declared.kind != "float" or value in declared.words):
        if value not in declared.words:
            wanted = ", ".join(map(str, declared.words))
            raise ValueError(f"attribute {declared.name}: expected one of {wanted}, got {value}")
        return declared.words[value]
    if declared.kind in ("ints", "floats"):
        value = tuple(value)
        return tuple(value[i] for i in declared.order) if len(value) == len(declared.order) else value
    return value


_WANTED = {
    "int": "an integer",
    "float": "a float",
    "string": "a text",
    "ints": "a list of integers",
    "floats": "a list of floats",
}


def _is_of_kind(value: Any, kind: str) -> bool:
    """Whether a value is of an attribute's kind: a node says which it holds, and 1 is no 1.0 there."""
    if kind == "string":
        return isinstance(value, (str, bytes))
    if kind in ("ints", "floats"):
        return (
            isinstance(value, (list, tuple)) and len(value) > 0 and all(_is_of_kind(each, kind[:-1]) for each in value)
        )
    whole = isinstance(value, numbers.Integral)
    return whole if kind == "int" else isinstance(value, numbers.Real) and not whole


def supported_ops() -> list[dict[str, Any]]:
    """Return a table of the operators that the ONNX layer runs.

    Returns
    -------
    list of dict
        For each operator ``domain``, ``operator``, ``versions`` (opset versions of the domain), ``dtypes``, ``inputs``
        (a name in brackets is optional), ``outputs``, ``attributes`` (by name the default, None where it is required)
        and ``native``: whether the library for ONNX Runtime holds it, or only :func:`reference_ops`.

    Examples
    --------
    >>> import detops.onnx
    >>> [row["operator"] for row in detops.onnx.supported_ops() if row["domain"] == "detops"]
    ['DecodeBbox', 'DecodeBboxV2', 'NonMaxSuppression']
    """
    return [
        {
            "domain": operator.domain,
            "operator": operator.name,
            "versions": operator.versions,
            "dtypes": operator.dtypes,
            "inputs": tuple(each.name if each.required else f"[{each.name}]" for each in operator.inputs),
            "outputs": tuple(name for name, _ in operator.outputs),
            "attributes": {
                each.name: None if each.default is REQUIRED else each.default for each in operator.attributes
            },
            "native": operator.native,
        }
        for operator in OPERATORS
    ]
