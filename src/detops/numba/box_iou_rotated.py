"""box_iou_rotated inside compiled code."""

import functools

import numpy as np
from numba import types

from detops._numba.box_iou_rotated import compare, measure
from detops.numba import _kinds
from detops.numba._operator import operator
from detops.operators.box_iou_rotated import DOUBLE, MODES


@functools.partial(operator, constants=("mode", "aligned"))
def box_iou_rotated(boxes_a, boxes_b, *, mode="iou", clockwise=True, aligned=False):
    """``detops.box_iou_rotated`` for compiled code, which must know `mode` and `aligned`."""
    found = [_kinds.array(name, got, ("num_boxes", "5")) for name, got in (("boxes_a", boxes_a), ("boxes_b", boxes_b))]
    given = np.result_type(_kinds.coordinates("boxes_a", found[0]), _kinds.coordinates("boxes_b", found[1]))
    as_a, as_b = _kinds.cast(found[0], DOUBLE), _kinds.cast(found[1], DOUBLE)
    code, pairs = MODES[_kinds.text("mode", mode, MODES)], _kinds.constant("aligned", aligned)
    as_given = _kinds.cast(types.float64[:, ::1], given)
    turned = _kinds.flag("clockwise", clockwise)

    def box_iou_rotated(boxes_a, boxes_b, mode, clockwise, aligned):
        if boxes_a.shape[1] != 5:
            raise ValueError("boxes_a: expected shape (num_a, 5)")
        if boxes_b.shape[1] != 5 or (pairs and boxes_b.shape[0] != boxes_a.shape[0]):
            raise ValueError("boxes_b: expected shape (num_b, 5), as many as boxes_a where aligned")
        way = turned(clockwise)
        a, b = measure(as_a(boxes_a), way), measure(as_b(boxes_b), way)
        out = np.empty((a.shape[1], 1 if pairs else b.shape[1]), np.float64)
        compare(0, out.shape[0], a, b, pairs, code, out)
        result = as_given(out)
        if pairs:
            return result.reshape(result.size)
        return result

    return box_iou_rotated
