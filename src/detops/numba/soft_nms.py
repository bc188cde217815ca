"""soft_nms inside compiled code."""

import numpy as np

from detops._numba.soft_nms import take_boxes
from detops.numba import _kinds
from detops.numba._operator import operator
from detops.numba._suppression import ONE_SET, Options, check_set, limit_of
from detops.operators.soft_nms import METHODS


@operator
def soft_nms(
    boxes,
    scores,
    iou_threshold=0.3,
    *,
    method="linear",
    sigma=0.5,
    min_score=1e-3,
    offset=0,
    max_output_boxes=None,
):
    """``detops.soft_nms`` for compiled code: dets and the int64 indices of the boxes that are taken."""
    options = Options(ONE_SET, boxes, scores, iou_threshold, offset)
    as_boxes, as_scores, iou, added, real = options.boxes, options.scores, options.iou, options.offset, options.element
    code = METHODS[_kinds.text("method", method, METHODS)]
    width, least = _kinds.real("sigma", sigma, positive=True), _kinds.real("min_score", min_score)
    limit = limit_of("max_output_boxes", max_output_boxes)

    def soft_nms(boxes, scores, iou_threshold, method, sigma, min_score, offset, max_output_boxes):
        check_set(boxes, scores)
        threshold, spread, floor = real(iou(iou_threshold)), real(width(sigma)), real(least(min_score))
        growth, most = real(added(offset)), limit(max_output_boxes, boxes.shape[0])
        dets, selected = np.empty((most, 5), real), np.empty(most, np.int64)
        given = as_boxes(boxes), as_scores(scores)
        taken = take_boxes(given[0], given[1], threshold, code, spread, floor, most, growth, dets, selected)
        return dets[:taken], selected[:taken]

    return soft_nms
