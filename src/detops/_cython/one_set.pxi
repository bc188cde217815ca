# Suppression of one set of boxes, with or without labels.


cdef int select_of_set(const Nms* nms, const Executor* executor) noexcept nogil:
    cdef Labeled work
    cdef Py_ssize_t count, found, i
    work.nms = nms
    work.rule = rule_of(nms)
    work.starts = NULL
    work.items = <Candidate*> allocate(2 * nms.count * sizeof(Candidate))
    if work.items == NULL:
        return -1
    cdef Candidate* scratch = work.items
    work.spare = work.items + nms.count
    count = collect(nms.scores, nms.count, <real> nms.score_threshold, nms.strict, work.spare)
    if nms.score_thresholds != NULL:
        count = drop_below(nms, work.spare, count)
    if nms.labels == NULL or count == 0:
        found = select(work.items, work.spare, count, nms.boxes, &work.rule, nms.top_k, nms.limit)
    else:
        found = select_labeled(&work, count, executor)
    for i in range(found):
        nms.selected[i] = work.items[i].index
    free(work.starts)
    free(scratch)
    nms.found[0] = found
    return -1 if found < 0 else 0
