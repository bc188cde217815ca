"""Non-maximum suppression: of one set of boxes, of boxes with labels, and of every class of every batch."""

include "scalar.pxi"
include "buffers.pxi"
include "spread.pxi"
include "../_core/iou.py"
include "ordering.pxi"
include "suppression.pxi"
include "nms.pxi"


cdef extern from *:
    """
    #ifdef _MSC_VER
    #include <intrin.h>
    static inline int detops_lowest_bit(uint64_t word) {
        unsigned long found;
        _BitScanForward64(&found, word);
        return (int) found;
    }
    #else
    #define detops_lowest_bit(word) __builtin_ctzll(word)
    #endif
    """
    int lowest_bit "detops_lowest_bit" (uint64_t word) noexcept nogil

cdef enum:
    # Scores whose candidates are found together, one byte for each.
    STRETCH = 32
    WORDS = 4
    # From so many candidates on it is quicker to look at every score.
    MANY = 8
    # Times this, the bytes of a word add up in its uppermost.
    EVERY_BYTE = 0x0101010101010101
    # Scores of all classes that are worth another thread.
    GRAIN = 65536


cdef inline Py_ssize_t collect_marked(
    const real* scores, Py_ssize_t start, uint64_t marks, Candidate* candidates
) noexcept nogil:
    """Candidates among eight scores, where a byte of marks is 1."""
    cdef Py_ssize_t found = 0
    cdef Py_ssize_t i
    while marks != 0:
        i = start + lowest_bit(marks) // 8
        candidates[found].key = falling(scores[i])
        candidates[found].index = i
        found += 1
        marks &= marks - 1
    return found


cdef Py_ssize_t collect(const real* scores, Py_ssize_t count, real threshold, bint strict,
                        Candidate* candidates) noexcept nogil:
    """Write a candidate for each score that takes part; return how many."""
    cdef unsigned char[STRETCH] marks
    cdef uint64_t[WORDS] words
    cdef uint64_t together
    cdef Py_ssize_t i, j
    cdef Py_ssize_t start = 0, found = 0
    while start < count:
        together = MANY
        if start + STRETCH <= count:
            for i in range(STRETCH):
                marks[i] = is_candidate(scores[start + i], threshold, strict)
            memcpy(words, marks, STRETCH)
            together = words[0] + words[1] + words[2] + words[3]
        if together == 0:
            pass
        elif (together * EVERY_BYTE) >> 56 < MANY:
            for j in range(WORDS):
                found += collect_marked(scores, start + 8 * j, words[j], candidates + found)
        else:
            for i in range(start, min(start + STRETCH, count)):
                # Written in any case, and overwritten unless it is counted: a branch would often be guessed wrong.
                candidates[found].key = falling(scores[i])
                candidates[found].index = i
                found += is_candidate(scores[i], threshold, strict)
        start += STRETCH
    return found


cdef struct Labelled:
    # The candidates of each label side by side, from starts[label] on.
    const Nms* nms
    Rule rule
    Candidate* items
    Candidate* spare
    Py_ssize_t* starts
    Py_ssize_t* found


cdef int select_labels(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is one label."""
    cdef const Labelled* work = <const Labelled*> arguments
    cdef Py_ssize_t label, start
    cdef int failed = 0
    for label in range(begin, end):
        start = work.starts[label]
        work.found[label] = select(work.items + start, work.spare + start, work.starts[label + 1] - start,
                                   work.nms.boxes, &work.rule, work.nms.limit)
        failed |= work.found[label] < 0
    return -1 if failed else 0


cdef Py_ssize_t part_by_label(Labelled* work, Py_ssize_t count) noexcept nogil:
    """Bring the candidates in spare in order of their labels; return the number of labels, -1 without memory."""
    cdef Queue queue
    cdef Candidate* held
    cdef Py_ssize_t labels = 0
    cdef Py_ssize_t i
    for i in range(count):
        work.spare[i].key = <uint64_t> work.nms.labels[work.spare[i].index]
    if open_queue(&queue, work.items, work.spare, count):
        return -1
    sort_until(&queue, count - 1)
    free(queue.ends)
    for i in range(count):
        labels += i == 0 or work.items[i].key != work.items[i - 1].key
    work.starts = <Py_ssize_t*> malloc((2 * labels + 1) * sizeof(Py_ssize_t))
    if work.starts == NULL:
        return -1
    work.found = work.starts + labels + 1
    labels = 0
    for i in range(count):
        if i == 0 or work.items[i].key != work.items[i - 1].key:
            work.starts[labels] = i
            labels += 1
    work.starts[labels] = count
    for i in range(count):
        work.items[i].key = falling(work.nms.scores[work.items[i].index])
    held = work.items
    work.items = work.spare
    work.spare = held
    return labels


cdef Py_ssize_t join_labels(Labelled* work, Py_ssize_t labels, Py_ssize_t limit) noexcept nogil:
    """Bring what was kept of all labels in order of score, at the head of spare; return how many, up to the limit."""
    cdef Queue queue
    cdef Candidate* held = work.items
    cdef Py_ssize_t total = 0
    cdef Py_ssize_t label, i
    for label in range(labels):
        for i in range(work.starts[label], work.starts[label] + work.found[label]):
            work.items[total] = work.items[i]
            total += 1
    if open_queue(&queue, work.spare, work.items, total):
        return -1
    work.items = work.spare
    work.spare = held
    limit = min(limit, total)
    sort_until(&queue, limit - 1)
    free(queue.ends)
    return limit


cdef Py_ssize_t select_labelled(Labelled* work, Py_ssize_t count, const Team* team) noexcept nogil:
    cdef Py_ssize_t labels = part_by_label(work, count)
    if labels < 0 or team.spread(team, select_labels, work, labels, 1):
        return -1
    return join_labels(work, labels, work.nms.limit)


cdef api int nms_operator(const void* arguments, const Team* team) noexcept nogil:
    cdef const Nms* nms = <const Nms*> arguments
    cdef Labelled work
    cdef Py_ssize_t count, found, i
    work.nms = nms
    work.rule.form, work.rule.offset, work.rule.threshold = 0, <real> nms.offset, <real> nms.iou_threshold
    work.starts = NULL
    work.items = <Candidate*> malloc(2 * nms.count * sizeof(Candidate))
    if work.items == NULL:
        return -1
    cdef Candidate* scratch = work.items
    work.spare = work.items + nms.count
    count = collect(nms.scores, nms.count, <real> nms.score_threshold, nms.strict, work.spare)
    if nms.labels == NULL or count == 0:
        found = select(work.items, work.spare, count, nms.boxes, &work.rule, nms.limit)
    else:
        found = select_labelled(&work, count, team)
    for i in range(found):
        nms.selected[i] = work.items[i].index
    free(work.starts)
    free(scratch)
    nms.found[0] = found
    return -1 if found < 0 else 0


cdef int select_classes(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is one class of one batch."""
    cdef const NonMaxSuppression* work = <const NonMaxSuppression*> arguments
    cdef Candidate* items = <Candidate*> malloc(2 * work.count * sizeof(Candidate))
    cdef Candidate* spare = items + work.count
    cdef Py_ssize_t item, found, i
    cdef Rule rule
    cdef int failed = 0
    if items == NULL:
        return -1
    rule.form, rule.offset, rule.threshold = work.form, <real> work.offset, <real> work.iou_threshold
    for item in range(begin, end):
        found = collect(work.scores + item * work.count, work.count, <real> work.score_threshold, work.strict, spare)
        found = select(items, spare, found, work.boxes + item // work.classes * work.count * 4, &rule, work.limit)
        failed |= found < 0
        work.found[item] = found
        for i in range(found):
            work.selected[item * work.limit + i] = items[i].index
    free(items)
    return -1 if failed else 0


cdef api int non_max_suppression_operator(const void* arguments, const Team* team) noexcept nogil:
    cdef const NonMaxSuppression* work = <const NonMaxSuppression*> arguments
    return team.spread(team, select_classes, work, work.batches * work.classes, 1 + GRAIN // work.count)


cdef api int selected_rows_operator(const void* arguments, const Team* team) noexcept nogil:
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


def nms(boxes, scores, labels, double iou_threshold, double score_threshold, bint strict, Py_ssize_t limit,
        double offset, selected, found):
    cdef Nms work
    work.boxes = <const real*> data(boxes)
    work.scores = <const real*> data(scores)
    work.labels = <const long long*> data(labels)
    work.selected = <long long*> mutable(selected)
    work.found = <long long*> mutable(found)
    work.count = len(scores)
    work.limit = limit
    work.iou_threshold = iou_threshold
    work.score_threshold = score_threshold
    work.strict = strict
    work.offset = offset
    execute(nms_operator, &work)


def non_max_suppression(boxes, scores, double iou_threshold, double score_threshold, bint strict, Py_ssize_t form,
                        double offset, selected, found):
    cdef NonMaxSuppression work
    work.boxes = <const real*> data(boxes)
    work.scores = <const real*> data(scores)
    work.selected = <long long*> mutable(selected)
    work.found = <long long*> mutable(found)
    work.batches, work.classes, work.count = scores.shape
    work.limit = selected.shape[2]
    work.iou_threshold = iou_threshold
    work.score_threshold = score_threshold
    work.strict = strict
    work.form = form
    work.offset = offset
    execute(non_max_suppression_operator, &work)


def selected_rows(selected, found, rows):
    cdef SelectedRows work
    work.selected = <const long long*> data(selected)
    work.found = <const long long*> data(found)
    work.batches, work.classes, work.limit = selected.shape
    work.rows = len(rows)
    work.rows64 = NULL
    work.rows32 = NULL
    if rows.itemsize == 4:
        work.rows32 = <int*> mutable(rows)
    else:
        work.rows64 = <long long*> mutable(rows)
    execute(selected_rows_operator, &work)
