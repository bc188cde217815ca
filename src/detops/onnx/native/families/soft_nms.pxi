# SoftNonMaxSuppression: the boxes that are taken, as many as they are


cdef int plan_soft_nms(NodeCall* call) noexcept nogil:
    cdef const Tensor* boxes = &call.inputs[SOFT_IN_BOXES]
    cdef const Tensor* scores = &call.inputs[SOFT_IN_SCORES]
    cdef double sigma = call.values[SOFT_SIGMA].number[0], least = call.values[SOFT_MIN_SCORE].number[0]
    if boxes.rank != 2 or is_other(boxes, 1, 4):
        return wrong_shape(call, SOFT_IN_BOXES, "(num_boxes, 4)")
    if scores.rank != 1 or differ(scores, 0, boxes, 0):
        return wrong_shape(call, SOFT_IN_SCORES, "(num_boxes,) as in boxes")
    if not 0 <= call.values[SOFT_OFFSET].whole[0] <= 1:
        return wrong_value(call, SOFT_OFFSET, "0 or 1")
    if not 0 < sigma < INFINITY:
        return wrong_number(call, SOFT_SIGMA, "a finite number above 0")
    if not isfinite(least):
        return wrong_number(call, SOFT_MIN_SCORE, "a finite number")
    if check_iou_threshold(call, call.values[SOFT_IOU_THRESHOLD].number[0]):
        return REFUSED
    call.outputs[0].rank = 2
    settle(call, 0, 0, 0, False)
    settle(call, 0, 1, 5, True)
    call.outputs[1].rank = 1
    settle(call, 1, 0, 0, False)
    return 0


cdef int compute_soft_nms(NodeCall* call) noexcept nogil:
    """Into scratch memory: how many, their indices, and the dets."""
    cdef SoftNms work
    cdef Py_ssize_t count = call.inputs[SOFT_IN_SCORES].shape[0]
    call.scratch = allocate((count + 1) * sizeof(long long) + 5 * count * width(call.kernel.overload.computed))
    if call.scratch is NULL:
        return out_of_memory(call)
    work.found = <long long*> call.scratch
    work.found[0] = 0
    if count == 0:
        return 0
    work.selected = work.found + 1
    work.dets = <real*> (work.selected + count)
    work.boxes = <const real*> call.inputs[SOFT_IN_BOXES].data
    work.scores = <const real*> call.inputs[SOFT_IN_SCORES].data
    work.count = work.limit = count
    work.iou_threshold = call.values[SOFT_IOU_THRESHOLD].number[0]
    work.method = call.values[SOFT_METHOD].whole[0]
    work.sigma = call.values[SOFT_SIGMA].number[0]
    work.min_score = call.values[SOFT_MIN_SCORE].number[0]
    work.offset = call.values[SOFT_OFFSET].whole[0]
    return run_kernel(call, SOFT_RUN_SOFT_NMS, &work)


cdef int deliver_soft_nms(NodeCall* call) noexcept nogil:
    cdef const long long* found = <const long long*> call.scratch
    cdef const void* dets = found + 1 + call.inputs[SOFT_IN_SCORES].shape[0]
    call.outputs[0].shape[0] = call.outputs[1].shape[0] = found[0]
    if place_output(call, 0) or place_output(call, 1):
        return -1
    memcpy(call.outputs[0].data, dets, call.outputs[0].size * width(call.kernel.overload.computed))
    memcpy(call.outputs[1].data, found + 1, call.outputs[1].size * sizeof(long long))
    return 0
