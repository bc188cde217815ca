"""Non-maximum suppression inside compiled code."""

import numpy as np

from detops._codes import BoxForm
from detops._numba import nms as kernels
from detops.numba import _kinds
from detops.numba._kinds import inlined
from detops.numba._operator import operator
from detops.numba._suppression import ONE_SET, Options, check_set, limit_of, score_threshold_of

ALL_CLASSES = ("num_batches", "num_boxes", "4"), ("num_batches", "num_classes", "num_boxes")


def _score_thresholds(got, element):
    """Return a function for the threshold of each class, and whether a score must be above its class's."""
    if not _kinds.several(got):
        one = score_threshold_of(got)

        @inlined
        def repeated(value, classes):
            threshold, strict = one(value)
            # np.full takes Numba a quarter of a second.
            thresholds = np.empty(classes, element)
            for c in range(classes):
                thresholds[c] = threshold
            return thresholds, strict

        return repeated
    numbers = _kinds.reals("score_threshold", got)

    @inlined
    def each(values, classes):
        thresholds = numbers(values)
        if thresholds.size != classes:
            raise ValueError("score_threshold: expected a number for each class")
        return thresholds.astype(element), True

    return each


def _above_zero(got, element):
    """As _score_thresholds, where a score may be equal to its threshold, and only one above 0 counts."""
    if _kinds.absent(got):
        _kinds.refuse("score_threshold", "a real number", None)
    thresholds_of = _score_thresholds(got, np.float64)

    @inlined
    def counting(value, classes):
        thresholds = thresholds_of(value, classes)[0]
        # np.where takes Numba longer to compile than all the rest.
        least = np.empty(classes, element)
        for c in range(classes):
            least[c] = thresholds[c] if thresholds[c] > 0 else -np.inf
        return least, False

    return counting


def _candidates(got, element):
    """Return a function for the boxes that pass the threshold that all share, or that of their label, in order."""
    if not _kinds.several(got):
        one = score_threshold_of(got)

        @inlined
        def passing(scores, labels, value):
            threshold, strict = one(value)
            return kernels.in_order(scores, element(threshold), strict)

        return passing
    numbers = _kinds.reals("score_threshold", got)

    @inlined
    def passing_their_own(scores, labels, values):
        thresholds = numbers(values).astype(element)
        for label in labels:
            if not 0 <= label < thresholds.size:
                raise ValueError("labels: expected labels from 0 on, one for each score_threshold")
        order = kernels.in_order(scores, element(-np.inf), False)
        return kernels.drop_below(order, scores, labels, thresholds, True)

    return passing_their_own


@operator
def nms(boxes, scores, iou_threshold, *, score_threshold=None, max_output_boxes=None, offset=0, pre_nms_top_k=None):
    """``detops.nms`` for compiled code: the int64 indices of the boxes that are kept."""
    options = Options(ONE_SET, boxes, scores, iou_threshold, offset)
    as_boxes, as_scores, iou, added, real = options.boxes, options.scores, options.iou, options.offset, options.element
    score, limit = score_threshold_of(score_threshold), limit_of("max_output_boxes", max_output_boxes)
    top_k = limit_of("pre_nms_top_k", pre_nms_top_k)

    def nms(boxes, scores, iou_threshold, score_threshold, max_output_boxes, offset, pre_nms_top_k):
        check_set(boxes, scores)
        threshold, least, most = iou(iou_threshold), score(score_threshold), limit(max_output_boxes, boxes.shape[0])
        growth, first = real(added(offset)), top_k(pre_nms_top_k, boxes.shape[0])
        order = kernels.in_order(as_scores(scores), real(least[0]), least[1])[:first]
        return order[: kernels.select(order, as_boxes(boxes), real(threshold), most, 0, growth)]

    return nms


@operator
def batched_nms(
    boxes,
    scores,
    labels,
    iou_threshold,
    *,
    score_threshold=None,
    max_output_boxes=None,
    offset=0,
    pre_nms_top_k=None,
):
    """``detops.batched_nms`` for compiled code: the int64 indices of the boxes that are kept."""
    options = Options(ONE_SET, boxes, scores, iou_threshold, offset)
    as_boxes, as_scores, iou, added, real = options.boxes, options.scores, options.iou, options.offset, options.element
    candidates, limit = _candidates(score_threshold, real), limit_of("max_output_boxes", max_output_boxes)
    top_k = limit_of("pre_nms_top_k", pre_nms_top_k)
    labels = _kinds.array("labels", labels, ("num_boxes",))
    as_labels = _kinds.whole("labels", labels)

    def batched_nms(boxes, scores, labels, iou_threshold, score_threshold, max_output_boxes, offset, pre_nms_top_k):
        check_set(boxes, scores)
        if labels.shape[0] != boxes.shape[0]:
            raise ValueError("labels: expected shape (num_boxes,)")
        threshold, most = iou(iou_threshold), limit(max_output_boxes, boxes.shape[0])
        growth, first, own = real(added(offset)), top_k(pre_nms_top_k, boxes.shape[0]), as_labels(labels)
        order = candidates(as_scores(scores), own, score_threshold)
        kept = kernels.select_labeled(order, as_boxes(boxes), own, real(threshold), first, most, growth)
        return order[:kept]

    return batched_nms


@inlined
def _check_classes(boxes, scores):
    if boxes.shape[2] != 4:
        raise ValueError("boxes: expected shape (num_batches, num_boxes, 4)")
    if scores.shape[0] != boxes.shape[0] or scores.shape[2] != boxes.shape[1]:
        raise ValueError("scores: expected shape (num_batches, num_classes, num_boxes)")


class _ClassOptions(Options):
    """As Options, of all classes of all batches."""

    def __init__(self, boxes, scores, limit, iou_threshold, center_point_box, top_k, total, offset=0):
        super().__init__(ALL_CLASSES, boxes, scores, iou_threshold, offset)
        self.at_most = _kinds.integer("max_output_boxes_per_class", limit, 0)
        self.centered = _kinds.flag("center_point_box", center_point_box)
        self.top_k, self.total = limit_of("pre_nms_top_k", top_k), limit_of("max_output_boxes_total", total)
        self.confine = _keep_all if _kinds.absent(total) else _keep_best


@inlined
def _keep_all(scores, selected, total, found):
    pass


@inlined
def _keep_best(scores, selected, total, found):
    if total < selected.shape[1] * selected.shape[2]:
        kernels.limit_batches(0, selected.shape[0], scores, selected, total, found)


@inlined
def _room(scores, limit):
    """Room for what is selected of each class of each batch, and for how many they are."""
    shape = scores.shape[0], scores.shape[1]
    return np.empty((*shape, limit), np.int64), np.empty(shape, np.int64)


@operator
def non_max_suppression(
    boxes,
    scores,
    max_output_boxes_per_class=0,
    iou_threshold=0.0,
    score_threshold=None,
    *,
    center_point_box=False,
    pre_nms_top_k=None,
    max_output_boxes_total=None,
):
    """``detops.non_max_suppression`` for compiled code: int64 rows (batch, class, box)."""
    options = _ClassOptions(
        boxes,
        scores,
        max_output_boxes_per_class,
        iou_threshold,
        center_point_box,
        pre_nms_top_k,
        max_output_boxes_total,
    )
    as_boxes, as_scores, iou, real = options.boxes, options.scores, options.iou, options.element
    score = _score_thresholds(score_threshold, real)
    at_most, centered, top_k, total = options.at_most, options.centered, options.top_k, options.total
    confine = options.confine

    def non_max_suppression(
        boxes,
        scores,
        max_output_boxes_per_class,
        iou_threshold,
        score_threshold,
        center_point_box,
        pre_nms_top_k,
        max_output_boxes_total,
    ):
        _check_classes(boxes, scores)
        threshold, least = real(iou(iou_threshold)), score(score_threshold, scores.shape[1])
        form = BoxForm.CENTER_AND_SIZE.value if centered(center_point_box) else BoxForm.CORNERS_IN_ANY_ORDER.value
        first = top_k(pre_nms_top_k, scores.shape[2])
        limit = min(at_most(max_output_boxes_per_class), first)
        most = total(max_output_boxes_total, scores.shape[1] * limit)
        selected, found = _room(scores, min(limit, most))
        reads = as_boxes(boxes), as_scores(scores), least[0], threshold, least[1], first, form, real(0)
        kernels.select_classes(0, found.size, *reads, selected, found)
        confine(reads[1], selected, most, found)
        rows_found = 0
        for count in found.flat:
            rows_found += count
        rows = np.empty((rows_found, 3), np.int64)
        kernels.selected_rows(selected, found, rows)
        return rows

    return non_max_suppression


@operator
def non_max_suppression_padded(
    boxes,
    scores,
    max_output_boxes_per_class=0,
    iou_threshold=0.0,
    score_threshold=0.0,
    *,
    center_point_box=False,
    offset=0,
    pre_nms_top_k=None,
    max_output_boxes_total=None,
):
    """``detops.non_max_suppression_padded`` for compiled code: int32 rows (batch, class, box), then rows of -1."""
    options = _ClassOptions(
        boxes,
        scores,
        max_output_boxes_per_class,
        iou_threshold,
        center_point_box,
        pre_nms_top_k,
        max_output_boxes_total,
        offset,
    )
    as_boxes, as_scores, iou, added, real = options.boxes, options.scores, options.iou, options.offset, options.element
    score = _above_zero(score_threshold, real)
    at_most, centered, top_k, total = options.at_most, options.centered, options.top_k, options.total
    confine = options.confine

    def non_max_suppression_padded(
        boxes,
        scores,
        max_output_boxes_per_class,
        iou_threshold,
        score_threshold,
        center_point_box,
        offset,
        pre_nms_top_k,
        max_output_boxes_total,
    ):
        _check_classes(boxes, scores)
        threshold, growth = real(iou(iou_threshold)), real(added(offset))
        least = score(score_threshold, scores.shape[1])
        form = BoxForm.CENTER_AND_SIZE.value if centered(center_point_box) else BoxForm.CORNERS.value
        first, limit = top_k(pre_nms_top_k, scores.shape[2]), at_most(max_output_boxes_per_class)
        limit = min(limit, first) if limit > 0 else first
        most = total(max_output_boxes_total, scores.shape[1] * limit)
        selected, found = _room(scores, min(limit, most))
        reads = as_boxes(boxes), as_scores(scores), least[0], threshold, least[1], first, form, growth
        kernels.select_classes(0, found.size, *reads, selected, found)
        confine(reads[1], selected, most, found)
        rows = np.empty((selected.shape[0] * most, 3), np.int32)
        kernels.selected_rows(selected, found, rows)
        return rows

    return non_max_suppression_padded
