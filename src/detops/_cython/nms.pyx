"""Non-maximum suppression: of one set of boxes, of boxes with labels, and of every class of every batch."""

include "scalar.pxi"
include "buffers.pxi"
include "parallel_for.pxi"
include "../_core/iou.py"
include "lazy_sort.pxi"
include "kept_boxes.pxi"
include "upright_boxes.pxi"
include "suppression.pxi"
include "nms.pxi"
include "candidates.pxi"
include "labels.pxi"
include "one_set.pxi"


cdef enum:
    NUMBERS = 4
    # Scores of all classes that are worth another thread.
    GRAIN = 65536


cdef inline Rule rule_of(const Nms* nms) noexcept nogil:
    cdef Rule rule
    rule.form, rule.offset, rule.threshold = BoxForm.CORNERS, <real> nms.offset, <real> nms.iou_threshold
    return rule


cdef api int nms_operator(const void* arguments, const Executor* executor) noexcept nogil:
    return select_of_set(<const Nms*> arguments, executor)


cdef int select_classes(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is one class of one batch."""
    cdef const NonMaxSuppression* work = <const NonMaxSuppression*> arguments
    cdef Candidate* items = <Candidate*> allocate(2 * work.count * sizeof(Candidate))
    cdef Candidate* spare = items + work.count
    cdef Py_ssize_t item, found, i
    cdef real threshold = <real> work.score_threshold
    cdef Rule rule
    cdef int failed = 0
    if items == NULL:
        return -1
    rule.form, rule.offset, rule.threshold = work.form, <real> work.offset, <real> work.iou_threshold
    for item in range(begin, end):
        if work.score_thresholds != NULL:
            threshold = work.score_thresholds[item % work.classes]
        found = collect(work.scores + item * work.count, work.count, threshold, work.strict, spare)
        found = select(items, spare, found, work.boxes + item // work.classes * work.count * 4, &rule, work.top_k,
                       work.limit)
        failed |= found < 0
        work.found[item] = found
        for i in range(found):
            work.selected[item * work.limit + i] = items[i].index
    free(items)
    return -1 if failed else 0


cdef api int non_max_suppression_operator(const void* arguments, const Executor* executor) noexcept nogil:
    cdef const NonMaxSuppression* work = <const NonMaxSuppression*> arguments
    return executor.parallel_for(executor, select_classes, work, work.batches * work.classes, 1 + GRAIN // work.count)


cdef Py_ssize_t gather(const BestOfClasses* work, Py_ssize_t batch, Candidate* candidates) noexcept nogil:
    """Write a candidate for each box that was found in a batch, with its class for an index; return how many."""
    cdef Py_ssize_t c, i, item
    cdef Py_ssize_t at = 0
    for c in range(work.classes):
        item = batch * work.classes + c
        for i in range(work.found[item]):
            candidates[at].key = falling(work.scores[item * work.count + work.selected[item * work.limit + i]])
            candidates[at].index = c
            at += 1
    return at


cdef int limit_batches(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is one batch."""
    cdef const BestOfClasses* work = <const BestOfClasses*> arguments
    cdef Py_ssize_t room = work.classes * work.limit
    cdef Candidate* items = <Candidate*> allocate(2 * room * sizeof(Candidate))
    cdef Py_ssize_t batch, i
    cdef Queue queue
    cdef int failed = items == NULL
    for batch in range(begin, end):
        if failed:
            break
        i = gather(work, batch, items + room)
        if i <= work.total:
            continue
        failed = open_queue(&queue, items, items + room, i)
        if not failed:
            sort_until(&queue, work.total - 1)
            memset(work.found + batch * work.classes, 0, work.classes * sizeof(long long))
            for i in range(work.total):
                work.found[batch * work.classes + items[i].index] += 1
        free(queue.ends)
    free(items)
    return -1 if failed else 0


cdef api int best_of_classes_operator(const void* arguments, const Executor* executor) noexcept nogil:
    cdef const BestOfClasses* work = <const BestOfClasses*> arguments
    return executor.parallel_for(executor, limit_batches, work, work.batches, 1 + GRAIN // (work.classes * work.limit))


cdef api int selected_rows_operator(const void* arguments, const Executor* executor) noexcept nogil:
    cdef const SelectedRows* work = <const SelectedRows*> arguments
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t item, i, j
    cdef long long[3] row
    for item in range(work.batches * work.classes):
        for i in range(work.found[item]):
            row[0], row[1] = item // work.classes, item % work.classes
            row[2] = work.selected[item * work.limit + i]
            for j in range(3):
                if work.rows32 == NULL:
                    work.rows64[at + j] = row[j]
                else:
                    work.rows32[at + j] = <int> row[j]
            at += 3
    for i in range(at, 3 * work.rows):
        if work.rows32 == NULL:
            work.rows64[i] = -1
        else:
            work.rows32[i] = -1
    return 0


def nms(boxes, scores, labels, thresholds, double iou_threshold, double score_threshold, bint strict,
        Py_ssize_t top_k, Py_ssize_t limit, double offset, selected, found):
    cdef Nms work
    work.boxes = <const real*> address(boxes)
    work.scores = <const real*> address(scores)
    work.labels = <const long long*> address(labels)
    work.score_thresholds = <const real*> address(thresholds)
    work.selected = <long long*> mutable(selected)
    work.found = <long long*> mutable(found)
    work.count = len(scores)
    work.top_k = top_k
    work.limit = limit
    work.iou_threshold = iou_threshold
    work.score_threshold = score_threshold
    work.strict = strict
    work.offset = offset
    execute(nms_operator, &work)


def non_max_suppression(boxes, scores, thresholds, double iou_threshold, double score_threshold, bint strict,
                        Py_ssize_t top_k, Py_ssize_t form, double offset, selected, found):
    cdef NonMaxSuppression work
    work.boxes = <const real*> address(boxes)
    work.scores = <const real*> address(scores)
    work.score_thresholds = <const real*> address(thresholds)
    work.selected = <long long*> mutable(selected)
    work.found = <long long*> mutable(found)
    work.batches, work.classes, work.count = scores.shape
    work.top_k = top_k
    work.limit = selected.shape[2]
    work.iou_threshold = iou_threshold
    work.score_threshold = score_threshold
    work.strict = strict
    work.form = form
    work.offset = offset
    execute(non_max_suppression_operator, &work)


def best_of_classes(scores, selected, Py_ssize_t total, found):
    cdef BestOfClasses work
    work.scores = <const real*> address(scores)
    work.selected = <const long long*> address(selected)
    work.found = <long long*> mutable(found)
    work.batches, work.classes, work.count = scores.shape
    work.limit = selected.shape[2]
    work.total = total
    execute(best_of_classes_operator, &work)


def selected_rows(selected, found, rows):
    cdef SelectedRows work
    work.selected = <const long long*> address(selected)
    work.found = <const long long*> address(found)
    work.batches, work.classes, work.limit = selected.shape
    work.rows = len(rows)
    work.rows64 = NULL
    work.rows32 = NULL
    if rows.itemsize == 4:
        work.rows32 = <int*> mutable(rows)
    else:
        work.rows64 = <long long*> mutable(rows)
    execute(selected_rows_operator, &work)
