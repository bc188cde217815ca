"""What each operator takes, gives and calls: the one place where that is written.

The registry of kernels, the slots of the native library, its numbers for words, the shapes that inference knows, the
tables of the documentation, and strategies for tests are made of :data:`OPERATORS`. Signatures and docstrings of the
public functions, of ``detops.numba`` and of all kernels are written by hand; ``tests/test_specification.py`` holds them
against it.

This module imports nothing but the standard library: ``setup.py`` reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from detops._codes import (
    OF_DISTANCE,
    AnchorForm,
    Border,
    BoxIouMode,
    GridMode,
    Reduction,
    RoiMode,
    SoftNmsMethod,
    words,
)

REQUIRED: Any = object()  # the default of an argument that has none

FLOATS = ("float16", "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
COORDINATES = (*FLOATS, *INTEGERS)
NUMBERS = (*COORDINATES, "bool")

Kind = Literal["bool", "integer", "number", "integers", "numbers", "word", "numbers per class"]


@dataclass(frozen=True)
class Array:
    """An array argument.

    ``dtypes`` are those that it may have, ``ranks`` how many axes (empty for any number of them).
    """

    name: str
    dtypes: tuple[str, ...] = FLOATS
    ranks: tuple[int, ...] = ()
    optional: bool = False

    @property
    def default(self) -> Any:
        """The value that the public function takes where the argument is not given."""
        return None if self.optional else REQUIRED


@dataclass(frozen=True)
class Option:
    """An argument that is no array.

    ``kind`` is what it holds: one number or several, a bool, or a word, which ``words`` turns into what kernels know.
    ``least`` and ``most`` bound its numbers, or with ``above`` exclude the lower bound; ``optional`` options may be
    None.
    """

    name: str
    kind: Kind
    default: Any = REQUIRED
    least: float | None = None
    most: float | None = None
    above: float | None = None
    words: Mapping[str, int] = field(default_factory=dict)
    optional: bool = False


@dataclass(frozen=True)
class Result:
    """An array that an operator gives.

    ``dtype`` is its type and ``rank`` the number of its axes, or either names the array argument that has the same; two
    names stand for the wider dtype of the two.
    """

    name: str
    dtype: str
    rank: int | str


@dataclass(frozen=True)
class Kernel:
    """A function of every backend: its module and its parameters.

    It computes in float32 and float64; in integers, too; or in float64 alone, whatever dtype its operator is given.
    """

    module: str
    parameters: tuple[str, ...]
    integers: bool = False
    double: bool = False


@dataclass(frozen=True)
class Operator:
    """A public function: its parameters in order (``by_name`` counts those at the end that are given by name alone)."""

    parameters: tuple[Array | Option, ...]
    results: tuple[Result, ...]
    kernels: tuple[str, ...]
    by_name: int = 0

    @property
    def arrays(self) -> Iterator[Array]:
        """Its array arguments."""
        return (each for each in self.parameters if isinstance(each, Array))

    @property
    def options(self) -> Iterator[Option]:
        """Its other arguments."""
        return (each for each in self.parameters if isinstance(each, Option))

    def option(self, name: str) -> Option:
        """Return the option of a name."""
        return next(each for each in self.options if each.name == name)


def _kernel(module: str, parameters: str, integers: bool = False, double: bool = False) -> Kernel:
    return Kernel(module, tuple(parameters.split()), integers, double)


_CODER = "scales means form offset classes inner"
_SUPPRESSION = "thresholds iou_threshold score_threshold strict top_k"

KERNELS = {
    "best_of_classes": _kernel("nms", "scores selected total found"),
    "box_iou": _kernel("box_iou", "boxes_a boxes_b mode aligned offset out"),
    "box_iou_rotated": _kernel("box_iou_rotated", "boxes_a boxes_b mode clockwise aligned out", double=True),
    "cumulative": _kernel("cumulative", "x smallest values indices", integers=True),
    "decode_bbox": _kernel("boxes", f"box_predictions anchors lower_clip decode_clip {_CODER} out"),
    "deform_conv2d": _kernel(
        "deform_conv",
        "x offset weight bias mask stride padding dilation groups offset_groups im2col_step out",
    ),
    "encode_bbox": _kernel("boxes", f"boxes anchors {_CODER} out"),
    "grid_sample": _kernel("grid_sample", "x grid taps border align_corners out"),
    "instance_norm": _kernel("instance_norm", "x scale bias epsilon out"),
    "multi_scale_deform_attn": _kernel(
        "multi_scale_deform_attn",
        "value spatial_shapes level_start_index sampling_locations attention_weights out",
    ),
    "nms": _kernel("nms", f"boxes scores labels {_SUPPRESSION} limit offset selected found"),
    "nms_rotated": _kernel(
        "nms_rotated",
        "boxes scores labels iou_threshold score_threshold strict limit clockwise selected found",
        double=True,
    ),
    "non_max_suppression": _kernel("nms", f"boxes scores {_SUPPRESSION} form offset selected found"),
    "roi_align": _kernel(
        "roi_align", "features rois batch_indices output_size spatial_scale sampling_ratio aligned mode out"
    ),
    "roi_pool": _kernel("roi_pool", "features rois batch_indices output_size spatial_scale out"),
    "scatter_check": _kernel("scatter_nd", "indices lengths bad"),
    "scatter_nd": _kernel("scatter_nd", "data indices updates lengths reduction out", integers=True),
    "selected_rows": _kernel("nms", "selected found rows"),
    "soft_nms": _kernel(
        "soft_nms", "boxes scores iou_threshold method sigma min_score limit offset dets selected found"
    ),
}

_ROIS = (Array("features", ranks=(4,)), Array("rois", COORDINATES, (2,)), Option("output_size", "integers", least=1))
_SCALE = Option("spatial_scale", "number", 1.0, above=0)
_IMAGES = Array("batch_indices", COORDINATES, (1,), optional=True)
_ONE_SET = (Array("boxes", COORDINATES, (2,)), Array("scores", ranks=(1,)))
_ALL_CLASSES = (Array("boxes", COORDINATES, (3,)), Array("scores", ranks=(3,)))
_IOU = Option("iou_threshold", "number", least=0, most=1)
_OFFSET = Option("offset", "integer", 0, least=0, most=1)
_CLOCKWISE = Option("clockwise", "bool", True)
_TOP_K = Option("pre_nms_top_k", "integer", None, least=0, optional=True)
_TOTAL = Option("max_output_boxes_total", "integer", None, least=0, optional=True)
_AT_MOST = Option("max_output_boxes", "integer", None, least=0, optional=True)
_PER_CLASS = Option("max_output_boxes_per_class", "integer", 0, least=0)
_IOU_OR_NONE = Option("iou_threshold", "number", 0.0, least=0, most=1)
_CENTERED = Option("center_point_box", "bool", False)
_KEPT = (Result("kept", "int64", 1),)
_LAST_AXIS = Option("axis", "integer", -1)
_CODER_OPTIONS = (
    Option("scales", "numbers", (1, 1, 1, 1)),
    Option("means", "numbers", (0, 0, 0, 0)),
    Option("anchor_form", "word", "corner", words=words(AnchorForm)),
    _OFFSET,
    _LAST_AXIS,
)
_SUPPRESSION_KERNELS = ("non_max_suppression", "best_of_classes", "selected_rows")


def _extremes() -> Operator:
    results = (Result("values", "x", "x"), Result("indices", "int64", "x"))
    return Operator((Array("x", NUMBERS), _LAST_AXIS), results, ("cumulative",))


def _score_threshold(default: float | None, per_class: bool = True) -> Option:
    kind: Kind = "numbers per class" if per_class else "number"
    return Option("score_threshold", kind, default, optional=default is None)


OPERATORS = {
    "batched_nms": Operator(
        (
            *_ONE_SET,
            Array("labels", COORDINATES, (1,)),
            _IOU,
            _score_threshold(None),
            _AT_MOST,
            _OFFSET,
            _TOP_K,
        ),
        _KEPT,
        ("nms",),
        by_name=4,
    ),
    "box_iou": Operator(
        (
            Array("boxes_a", COORDINATES, (2,)),
            Array("boxes_b", COORDINATES, (2,)),
            Option("mode", "word", "iou", words=words(BoxIouMode)),
            Option("aligned", "bool", False),
            _OFFSET,
        ),
        # Of one axis where aligned.
        (Result("overlaps", "boxes_a boxes_b", 2),),
        ("box_iou",),
        by_name=3,
    ),
    "box_iou_rotated": Operator(
        (
            Array("boxes_a", COORDINATES, (2,)),
            Array("boxes_b", COORDINATES, (2,)),
            Option("mode", "word", "iou", words=words(BoxIouMode, OF_DISTANCE)),
            _CLOCKWISE,
            Option("aligned", "bool", False),
        ),
        # Of one axis where aligned.
        (Result("overlaps", "boxes_a boxes_b", 2),),
        ("box_iou_rotated",),
        by_name=3,
    ),
    "cummax": _extremes(),
    "cummin": _extremes(),
    "decode_bbox": Operator(
        (
            Array("box_predictions"),
            Array("anchors", COORDINATES),
            Option("decode_clip", "number", None, optional=True),
            Option("lower_clip", "number", None, optional=True),
            *_CODER_OPTIONS,
        ),
        (Result("decoded_boxes", "box_predictions", "box_predictions"),),
        ("decode_bbox",),
        by_name=7,
    ),
    "deform_conv2d": Operator(
        (
            Array("x", ranks=(4,)),
            Array("offset", ranks=(4,)),
            Array("weight", ranks=(4,)),
            Array("bias", ranks=(1,), optional=True),
            Array("mask", ranks=(4,), optional=True),
            Option("stride", "integers", 1, least=1),
            Option("padding", "integers", 0, least=0),
            Option("dilation", "integers", 1, least=1),
            Option("groups", "integer", None, least=1, optional=True),
            Option("offset_groups", "integer", None, least=1, optional=True),
            Option("im2col_step", "integer", None, least=1, optional=True),
        ),
        (Result("out", "x", 4),),
        ("deform_conv2d",),
        by_name=7,
    ),
    "encode_bbox": Operator(
        (Array("boxes", COORDINATES), Array("anchors", COORDINATES), *_CODER_OPTIONS),
        (Result("encoded_boxes", "boxes", "boxes"),),
        ("encode_bbox",),
        by_name=5,
    ),
    "grid_sample": Operator(
        (
            Array("x", ranks=(4, 5)),
            Array("grid", ranks=(4, 5)),
            Option("mode", "word", "linear", words=words(GridMode)),
            Option("padding_mode", "word", "zeros", words=words(Border, without=[Border.REFLECT_FIRST])),
            Option("align_corners", "bool", False),
            Option("reflect_first", "bool", False),
        ),
        (Result("out", "x", "x"),),
        ("grid_sample",),
        by_name=4,
    ),
    "instance_norm": Operator(
        (
            Array("x"),
            Array("scale", ranks=(1,), optional=True),
            Array("bias", ranks=(1,), optional=True),
            Option("epsilon", "number", 1e-5, above=0),
        ),
        (Result("out", "x", "x"),),
        ("instance_norm",),
        by_name=1,
    ),
    "multi_scale_deform_attn": Operator(
        (
            Array("value", ranks=(4,)),
            Array("spatial_shapes", INTEGERS, (2,)),
            Array("level_start_index", INTEGERS, (1,)),
            Array("sampling_locations", ranks=(6,)),
            Array("attention_weights", ranks=(5,)),
        ),
        (Result("out", "value", 3),),
        ("multi_scale_deform_attn",),
    ),
    "nms": Operator(
        (*_ONE_SET, _IOU, _score_threshold(None, per_class=False), _AT_MOST, _OFFSET, _TOP_K),
        _KEPT,
        ("nms",),
        by_name=4,
    ),
    "nms_rotated": Operator(
        (
            *_ONE_SET,
            _IOU,
            Array("labels", COORDINATES, (1,), optional=True),
            _score_threshold(None, per_class=False),
            _AT_MOST,
            _CLOCKWISE,
        ),
        _KEPT,
        ("nms_rotated",),
        by_name=3,
    ),
    "non_max_suppression": Operator(
        (*_ALL_CLASSES, _PER_CLASS, _IOU_OR_NONE, _score_threshold(None), _CENTERED, _TOP_K, _TOTAL),
        (Result("selected_indices", "int64", 2),),
        _SUPPRESSION_KERNELS,
        by_name=3,
    ),
    "non_max_suppression_padded": Operator(
        (*_ALL_CLASSES, _PER_CLASS, _IOU_OR_NONE, _score_threshold(0.0), _CENTERED, _OFFSET, _TOP_K, _TOTAL),
        (Result("selected_indices", "int32", 2),),
        _SUPPRESSION_KERNELS,
        by_name=4,
    ),
    "roi_align": Operator(
        (
            *_ROIS,
            _SCALE,
            Option("sampling_ratio", "integer", 0),
            Option("aligned", "bool", True),
            Option("mode", "word", "avg", words=words(RoiMode)),
            _IMAGES,
        ),
        (Result("out", "features", 4),),
        ("roi_align",),
        by_name=5,
    ),
    "roi_pool": Operator((*_ROIS, _SCALE, _IMAGES), (Result("out", "features", 4),), ("roi_pool",), by_name=2),
    "scatter_nd": Operator(
        (
            Array("data", ()),
            Array("indices", INTEGERS),
            Array("updates", ()),
            Option("reduction", "word", "none", words=words(Reduction)),
        ),
        (Result("out", "data", "data"),),
        ("scatter_check", "scatter_nd"),
        by_name=1,
    ),
    "soft_nms": Operator(
        (
            *_ONE_SET,
            Option("iou_threshold", "number", 0.3, least=0, most=1),
            Option("method", "word", "linear", words=words(SoftNmsMethod)),
            Option("sigma", "number", 0.5, above=0),
            Option("min_score", "number", 1e-3),
            _OFFSET,
            _AT_MOST,
        ),
        (Result("dets", "boxes scores", 2), *_KEPT),
        ("soft_nms",),
        by_name=5,
    ),
}

# Public functions that NumPy computes, without a kernel, and what they give.
PLAIN = {
    "box_area": ("areas",),
    "box_convert": ("converted",),
    "clip_boxes": ("clipped",),
    "decode_distance": ("boxes",),
    "decode_yolo": ("boxes", "scores"),
    "masks_to_boxes": ("boxes",),
    "remove_small_boxes": ("kept",),
}
