"""Non-maximum suppression of boxes that are turned by angles, with or without labels."""

include "scalar.pxi"
include "buffers.pxi"
include "parallel_for.pxi"
include "../_core/iou.py"
include "../_core/box_iou.py"
include "../_core/rotated.py"
include "lazy_sort.pxi"
include "rotated_box.pxi"
include "kept_boxes.pxi"
include "turned_boxes.pxi"
include "suppression.pxi"
include "nms.pxi"
include "candidates.pxi"
include "labels.pxi"
include "one_set.pxi"


cdef enum:
    NUMBERS = 5


cdef inline Rule rule_of(const Nms* nms) noexcept nogil:
    cdef Rule rule
    rule.clockwise, rule.offset, rule.threshold = nms.clockwise, 0, <real> nms.iou_threshold
    return rule


cdef api int nms_rotated_operator(const void* arguments, const Executor* executor) noexcept nogil:
    return select_of_set(<const Nms*> arguments, executor)


def nms_rotated(boxes, scores, labels, double iou_threshold, double score_threshold, bint strict, Py_ssize_t limit,
                bint clockwise, selected, found):
    cdef Nms work
    work.boxes = <const real*> address(boxes)
    work.scores = <const real*> address(scores)
    work.labels = <const long long*> address(labels)
    work.score_thresholds = NULL
    work.selected = <long long*> mutable(selected)
    work.found = <long long*> mutable(found)
    work.count = work.top_k = len(scores)
    work.limit = limit
    work.iou_threshold = iou_threshold
    work.score_threshold = score_threshold
    work.strict = strict
    work.clockwise = clockwise
    execute(nms_rotated_operator, &work)
