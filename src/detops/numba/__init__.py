"""The operators for a user's own ``@njit`` code.

They have the signatures of the public functions, without ``out`` and ``backend``. They take and return arrays, hold no
Python object and run on the calling thread without the GIL. Types are checked when code that calls them is compiled,
shapes and values in the call; docs/numba.md says what they take. The formulas of one element that operators are made of
are in :mod:`detops.numba.scalar`.
"""

from detops._core import jit as _jit
from detops.numba.box_iou import box_iou
from detops.numba.box_iou_rotated import box_iou_rotated
from detops.numba.boxes import decode_bbox, encode_bbox
from detops.numba.cumulative import cummax, cummin
from detops.numba.deform_conv import deform_conv2d
from detops.numba.grid_sample import grid_sample
from detops.numba.instance_norm import instance_norm
from detops.numba.multi_scale_deform_attn import multi_scale_deform_attn
from detops.numba.nms import batched_nms, nms, non_max_suppression, non_max_suppression_padded
from detops.numba.nms_rotated import nms_rotated
from detops.numba.roi_align import roi_align
from detops.numba.roi_pool import roi_pool
from detops.numba.scatter_nd import scatter_nd
from detops.numba.soft_nms import soft_nms

_jit.register()

__all__ = [
    "batched_nms",
    "box_iou",
    "box_iou_rotated",
    "cummax",
    "cummin",
    "decode_bbox",
    "deform_conv2d",
    "encode_bbox",
    "grid_sample",
    "instance_norm",
    "multi_scale_deform_attn",
    "nms",
    "nms_rotated",
    "non_max_suppression",
    "non_max_suppression_padded",
    "roi_align",
    "roi_pool",
    "scatter_nd",
    "soft_nms",
]
