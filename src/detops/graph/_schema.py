"""The operators that the fusion writes: detops::DecodeBbox and detops::DecodeBboxV2.

The proof and the rewriters take the attributes from here. ``detops.onnx._table`` has them as nodes hold them, for the
engines that run these; a test holds one against the other.

Both take ``box_predictions`` and ``anchors`` (float16, float32 or float64, the same for both) and give
``decoded_boxes`` with the shape and dtype of ``box_predictions``. The coordinates lie along ``axis``: tx, ty, tw, th in
``box_predictions`` and x1, y1, x2, y2 in ``anchors`` (or y before x in both, which changes nothing). With
w = x2 - x1 + offset and cx = (x1 + x2) / 2 of the anchor, or these two as the anchor has them, and the same for y::

    t  = t / scales + means                        (DecodeBboxV2 only)
    cx' = tx * w + cx
    w'  = exp(min(max(tw, lower_clip), clip)) * w  (max: DecodeBboxV2 only)
    x1, x2 = cx' - (w' - offset) / 2, cx' + (w' - offset) / 2

==============  ======  ===============  =============================================================================
attribute       type    default          meaning
==============  ======  ===============  =============================================================================
``decode_clip`` float   DecodeBbox: inf  Upper bound of tw and th. DecodeBbox: infinity is no bound, and 0 clips at 0.
                        V2: 0            DecodeBboxV2: 0 is no bound, as in CANN.
``anchor_form`` string  "corner"         "center": anchors are cx, cy, w, h.
``offset``      int     0                1 counts pixels, as older detectors do.
``axis``        int     -1               The axis of the coordinates; may be negative.
``scales``      floats  1, 1, 1, 1       DecodeBboxV2 only: divisors of tx, ty, tw, th.
``means``       floats  0, 0, 0, 0       DecodeBboxV2 only: added after the division.
``lower_clip``  float   -inf             DecodeBboxV2 only: lower bound of tw and th.
==============  ======  ===============  =============================================================================

Anchors have the shape of box_predictions, or broadcast to it along the leading axes: (1, N, 4) or (N, 4) against
(B, N, 4). DecodeBboxV2 also takes K times as many predictions as anchors along the last axis (axis -1): (..., 4 * K)
against (..., 4), where every four predictions share their anchor. Other shapes are an error.

The writers put every attribute on the node. Models below opset 15, and GraphDefs, also get ``constants`` (and
``axis_value`` in a GraphDef), which repeat the numbers above as a tensor, in the order 0.5, decode_clip, lower_clip,
scales, means, offset, with infinities for no bound: the function body that stock runtimes run has no other way to turn
an attribute into a tensor. A kernel ignores them.

A function is made for one form of anchors, with an offset or without one: its body can't choose. It broadcasts anchors
along any axis, and fails where the result would be larger than box_predictions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

DOMAIN = "detops"
VERSION = 1
DECODE_BBOX = "DecodeBbox"
DECODE_BBOX_V2 = "DecodeBboxV2"
INPUTS = ("box_predictions", "anchors")
OUTPUT = "decoded_boxes"

CORNER, CENTER = "corner", "center"
ONES = (1.0, 1.0, 1.0, 1.0)
ZEROS = (0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Parameters:
    """The attributes of one decode, as plain numbers; every float is a float32 number."""

    decode_clip: float | None = None
    lower_clip: float | None = None
    scales: tuple[float, ...] = ONES
    means: tuple[float, ...] = ZEROS
    anchor_form: str = CORNER
    offset: int = 0
    axis: int = -1
    classes: int = 1

    @property
    def operator(self) -> str:
        """The simplest operator that says it all."""
        plain = self.scales == ONES and self.means == ZEROS and self.lower_clip is None and self.classes == 1
        return DECODE_BBOX if plain else DECODE_BBOX_V2

    @property
    def upper_bound(self) -> float:
        """The bound of tw and th as a number; infinity for none."""
        return math.inf if self.decode_clip is None else self.decode_clip

    @property
    def lower_bound(self) -> float:
        """The lower bound of tw and th as a number; minus infinity for none."""
        return -math.inf if self.lower_clip is None else self.lower_clip

    def attributes(self) -> dict[str, Any]:
        """Return the node's attributes."""
        common = {"anchor_form": self.anchor_form, "offset": self.offset, "axis": self.axis}
        if self.operator == DECODE_BBOX:
            return {"decode_clip": self.upper_bound, **common}
        return {
            "decode_clip": 0.0 if self.decode_clip is None else self.decode_clip,
            **common,
            "scales": list(self.scales),
            "means": list(self.means),
            "lower_clip": self.lower_bound,
        }

    def constants(self) -> list[float]:
        """Return the numbers that a function body computes with: a half, the bounds, scales, means, offset."""
        return [0.5, self.upper_bound, self.lower_bound, *self.scales, *self.means, float(self.offset)]
