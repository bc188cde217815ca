"""Formulas of one element, numbers in and numbers out, for a user's own ``@njit`` and ``@cuda.jit`` code.

They are what the kernels of all backends are compiled from. docs/numba.md lists them.
"""

from detops._core import jit as _jit
from detops._core.boxes import center_and_size, decode_span, encode_span
from detops._core.iou import box_area, intersection_over_union
from detops._core.sampling import bilinear_taps, bilinear_weights, blend, cubic_weight

_jit.register()

__all__ = [
    "bilinear_taps",
    "bilinear_weights",
    "blend",
    "box_area",
    "center_and_size",
    "cubic_weight",
    "decode_span",
    "encode_span",
    "intersection_over_union",
]
