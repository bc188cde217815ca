# Suppression for each label by itself: candidates are parted by label, and what is kept is joined again.
cdef struct Labeled:
    # The candidates of each label side by side, from starts[label] on.
    const Nms* nms
    Rule rule
    Candidate* items
    Candidate* spare
    Py_ssize_t* starts
    Py_ssize_t* found


cdef Py_ssize_t drop_below(const Nms* nms, Candidate* candidates, Py_ssize_t count) noexcept nogil:
    """Leave at the head the candidates that pass the threshold of their label; return how many."""
    cdef Py_ssize_t i, index
    cdef Py_ssize_t left = 0
    for i in range(count):
        index = candidates[i].index
        candidates[left] = candidates[i]
        left += is_candidate(nms.scores[index], nms.score_thresholds[nms.labels[index]], nms.strict)
    return left


cdef int select_labels(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is one label."""
    cdef const Labeled* work = <const Labeled*> arguments
    cdef Py_ssize_t label, start
    cdef int failed = 0
    for label in range(begin, end):
        start = work.starts[label]
        work.found[label] = select(work.items + start, work.spare + start, work.starts[label + 1] - start,
                                   work.nms.boxes, &work.rule, work.nms.top_k, work.nms.limit)
        failed |= work.found[label] < 0
    return -1 if failed else 0


cdef Py_ssize_t part_by_label(Labeled* work, Py_ssize_t count) noexcept nogil:
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
    work.starts = <Py_ssize_t*> allocate((2 * labels + 1) * sizeof(Py_ssize_t))
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


cdef Py_ssize_t join_labels(Labeled* work, Py_ssize_t labels, Py_ssize_t limit) noexcept nogil:
    """Bring what was kept of all labels in order of score, at the head of spare; return how many, up to the limit."""
    cdef Queue queue
    cdef Candidate* held = work.items
    cdef Py_ssize_t total = 0
    cdef Py_ssize_t label, i
    for label in range(labels):
        for i in range(work.starts[label], work.starts[label] + work.found[label]):
            work.items[total] = work.items[i]
            total += 1
    if total == 0:
        return 0
    if open_queue(&queue, work.spare, work.items, total):
        return -1
    work.items = work.spare
    work.spare = held
    limit = min(limit, total)
    sort_until(&queue, limit - 1)
    free(queue.ends)
    return limit


cdef Py_ssize_t select_labeled(Labeled* work, Py_ssize_t count, const Executor* executor) noexcept nogil:
    cdef Py_ssize_t labels = part_by_label(work, count)
    if labels < 0 or executor.parallel_for(executor, select_labels, work, labels, 1):
        return -1
    return join_labels(work, labels, work.nms.limit)
