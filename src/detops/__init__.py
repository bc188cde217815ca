"""The detection operators that model export and runtimes lack, for NumPy arrays."""

import importlib
from typing import TYPE_CHECKING, Any

from detops._config import set_num_threads, show_config
from detops._version import __version__
from detops.operators.box_convert import box_convert
from detops.operators.box_iou import box_iou
from detops.operators.box_iou_rotated import box_iou_rotated
from detops.operators.box_sets import box_area, clip_boxes, masks_to_boxes, remove_small_boxes
from detops.operators.boxes import decode_bbox, encode_bbox
from detops.operators.cumulative import cummax, cummin
from detops.operators.decode_distance import decode_distance
from detops.operators.decode_yolo import decode_yolo
from detops.operators.deform_conv import deform_conv2d
from detops.operators.grid_sample import grid_sample
from detops.operators.instance_norm import instance_norm
from detops.operators.multi_scale_deform_attn import multi_scale_deform_attn
from detops.operators.nms import batched_nms, nms
from detops.operators.nms_rotated import nms_rotated
from detops.operators.non_max_suppression import non_max_suppression, non_max_suppression_padded
from detops.operators.roi_align import roi_align
from detops.operators.roi_pool import roi_pool
from detops.operators.scatter_nd import scatter_nd
from detops.operators.soft_nms import soft_nms
from detops.runtime._registry import BackendError, use_backend
from detops.runtime._threads import get_num_threads

if TYPE_CHECKING:
    from detops import graph as graph
    from detops import numba as numba
    from detops import onnx as onnx
    from detops import testing as testing

__all__ = [
    "BackendError",
    "__version__",
    "batched_nms",
    "box_area",
    "box_convert",
    "box_iou",
    "box_iou_rotated",
    "clip_boxes",
    "cummax",
    "cummin",
    "decode_bbox",
    "decode_distance",
    "decode_yolo",
    "deform_conv2d",
    "encode_bbox",
    "get_num_threads",
    "grid_sample",
    "instance_norm",
    "masks_to_boxes",
    "multi_scale_deform_attn",
    "nms",
    "nms_rotated",
    "non_max_suppression",
    "non_max_suppression_padded",
    "remove_small_boxes",
    "roi_align",
    "roi_pool",
    "scatter_nd",
    "set_num_threads",
    "show_config",
    "soft_nms",
    "use_backend",
]

_PACKAGES = ("graph", "numba", "onnx", "testing")


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:  # imported when they are asked for: they need packages that detops itself does not
        return importlib.import_module(f"detops.{name}")
    raise AttributeError(f"module 'detops' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PACKAGES})
