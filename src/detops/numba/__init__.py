"""The operators, and the scalar functions of the shared core, for a user's own ``@njit`` and ``@cuda.jit`` code.

The operators have the signatures of the public functions, without ``out`` and ``backend``. They take and return arrays,
hold no Python object and run on the calling thread without the GIL. Types are checked when code that calls them is
compiled, shapes and values in the call; docs/numba.md says what they take. The scalar functions (:func:`decode_span`,
...) can be called from ``@njit`` and from ``@cuda.jit`` code alike.
"""

from detops._core import jit as _jit
from detops._core.boxes import decode_span, encode_span, rescale, unscale
from detops._core.cumulative import takes_over_max, takes_over_min
from detops._core.iou import box_area, box_iou
from detops._core.normalization import merged_moments, normal_factor, normalized, shifted_moments, sum_and_rest
from detops._core.roi import (
    grid_points,
    is_finite,
    larger,
    largest_part,
    pool_range,
    pool_side,
    roi_grid,
    roi_side,
    round_away,
    sample_position,
    within,
)
from detops._core.sampling import (
    bilinear_taps,
    bilinear_weights,
    blend,
    confine,
    cubic_weight,
    deformed,
    first_tap,
    floor_split,
    fold,
    linear_taps,
    reflect,
    tap_index,
    tap_weight,
    unnormalise,
)
from detops._core.scatter import in_range, next_offset, reduced
from detops.numba.boxes import decode_bbox, encode_bbox
from detops.numba.cumulative import cummax, cummin
from detops.numba.deform_conv import deform_conv2d
from detops.numba.grid_sample import grid_sample
from detops.numba.instance_norm import instance_norm
from detops.numba.nms import batched_nms, nms, non_max_suppression, non_max_suppression_padded
from detops.numba.roi_align import roi_align
from detops.numba.roi_pool import roi_pool
from detops.numba.scatter_nd import scatter_nd

_jit.register()

__all__ = [
    "batched_nms",
    "bilinear_taps",
    "bilinear_weights",
    "blend",
    "box_area",
    "box_iou",
    "confine",
    "cubic_weight",
    "cummax",
    "cummin",
    "decode_bbox",
    "decode_span",
    "deform_conv2d",
    "deformed",
    "encode_bbox",
    "encode_span",
    "first_tap",
    "floor_split",
    "fold",
    "grid_points",
    "grid_sample",
    "in_range",
    "instance_norm",
    "is_finite",
    "larger",
    "largest_part",
    "linear_taps",
    "merged_moments",
    "next_offset",
    "nms",
    "non_max_suppression",
    "non_max_suppression_padded",
    "normal_factor",
    "normalized",
    "pool_range",
    "pool_side",
    "reduced",
    "reflect",
    "rescale",
    "roi_align",
    "roi_grid",
    "roi_pool",
    "roi_side",
    "round_away",
    "sample_position",
    "scatter_nd",
    "shifted_moments",
    "sum_and_rest",
    "takes_over_max",
    "takes_over_min",
    "tap_index",
    "tap_weight",
    "unnormalise",
    "unscale",
    "within",
]
