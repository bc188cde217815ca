"""box_iou inside compiled code."""

import functools

import numpy as np

from detops._codes import BoxIouMode, words
from detops._numba.box_iou import compare_all, compare_pairs, measure
from detops.numba import _kinds
from detops.numba._operator import operator

MODES = words(BoxIouMode)


@functools.partial(operator, constants=("mode", "aligned"))
def box_iou(boxes_a, boxes_b, *, mode="iou", aligned=False, offset=0):
    """``detops.box_iou`` for compiled code, which must know `mode` and `aligned`."""
    found = [_kinds.array(name, got, ("num_boxes", "4")) for name, got in (("boxes_a", boxes_a), ("boxes_b", boxes_b))]
    dtype = np.result_type(_kinds.coordinates("boxes_a", found[0]), _kinds.coordinates("boxes_b", found[1]))
    as_a, as_b, element = _kinds.cast(found[0], dtype), _kinds.cast(found[1], dtype), dtype.type
    code, pairs = MODES[_kinds.text("mode", mode, MODES)], _kinds.constant("aligned", aligned)
    added = _kinds.integer("offset", offset, 0, 1)

    def box_iou(boxes_a, boxes_b, mode, aligned, offset):
        if boxes_a.shape[1] != 4:
            raise ValueError("boxes_a: expected shape (num_a, 4)")
        if boxes_b.shape[1] != 4 or (pairs and boxes_b.shape[0] != boxes_a.shape[0]):
            raise ValueError("boxes_b: expected shape (num_b, 4), as many as boxes_a where aligned")
        growth = element(added(offset))
        a, b = measure(as_a(boxes_a), growth, code), measure(as_b(boxes_b), growth, code)
        if pairs:
            out = np.empty(a.shape[1], element)
            compare_pairs(0, out.size, a, b, growth, code, out)
        else:
            out = np.empty((a.shape[1], b.shape[1]), element)
            compare_all(0, a.shape[1], a, b, growth, code, out)
        return out

    return box_iou
