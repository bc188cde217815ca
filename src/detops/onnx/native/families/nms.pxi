# The NonMaxSuppression that MMCV prepares for TensorRT, whose result is filled up with -1


cdef int number_or_input(NodeCall* call, int attribute, int slot, Value* value) noexcept nogil:
    """A number that a node holds as an attribute or takes as an input of one element; UNKNOWN before there is data."""
    cdef const Tensor* tensor = &call.inputs[slot]
    value[0] = call.values[attribute]
    if not tensor.present:
        return 0
    if call.kernel is NULL:
        return UNKNOWN
    if tensor.size != 1:
        return wrong_shape(call, slot, "() or (1,)")
    if attribute == NMS_MAX_OUTPUT_BOXES_PER_CLASS:
        value.whole[0] = (<const int64_t*> tensor.data)[0]
    else:
        value.number[0] = (<const float*> tensor.data)[0]
    return 0


cdef int64_t nms_top_k(NodeCall* call) noexcept nogil:
    """How many boxes of each class take part."""
    cdef int64_t count = call.inputs[NMS_IN_BOXES].shape[1]
    cdef int64_t top_k = call.values[NMS_PRE_NMS_TOP_K].whole[0]
    return min(top_k, count) if top_k else count


cdef int nms_limit(NodeCall* call, int64_t* limit) noexcept nogil:
    """How many boxes each class may give; OPEN before that is known."""
    cdef Value value
    cdef const Tensor* boxes = &call.inputs[NMS_IN_BOXES]
    cdef int failed = number_or_input(call, NMS_MAX_OUTPUT_BOXES_PER_CLASS, NMS_IN_MAX_OUTPUT_BOXES_PER_CLASS, &value)
    limit[0] = OPEN
    if failed:
        return REFUSED if failed == REFUSED else 0
    if value.whole[0] < 0:
        snprintf(call.message, MESSAGE, "max_output_boxes_per_class: expected at least 0, got %lld",
                 <long long> value.whole[0])
        return REFUSED
    if known(boxes, 1):  # of a limit and an unknown number of boxes, either may be the smaller
        limit[0] = min(value.whole[0], nms_top_k(call)) if value.whole[0] else nms_top_k(call)
    return 0


cdef int plan_nms(NodeCall* call) noexcept nogil:
    cdef const Tensor* boxes = &call.inputs[NMS_IN_BOXES]
    cdef const Tensor* scores = &call.inputs[NMS_IN_SCORES]
    cdef int64_t limit = 0
    if boxes.rank != 3 or is_other(boxes, 2, 4):
        return wrong_shape(call, NMS_IN_BOXES, "(num_batches, num_boxes, 4)")
    if scores.rank != 3 or differ(scores, 0, boxes, 0) or differ(scores, 2, boxes, 1):
        return wrong_shape(call, NMS_IN_SCORES, "(num_batches, num_classes, num_boxes) as in boxes")
    if not 0 <= call.values[NMS_CENTER_POINT_BOX].whole[0] <= 1:
        return wrong_value(call, NMS_CENTER_POINT_BOX, "0 or 1")
    if not 0 <= call.values[NMS_OFFSET].whole[0] <= 1:
        return wrong_value(call, NMS_OFFSET, "0 or 1")
    if call.values[NMS_PRE_NMS_TOP_K].whole[0] < 0:
        return wrong_value(call, NMS_PRE_NMS_TOP_K, "at least 0")
    if nms_limit(call, &limit):
        return REFUSED
    call.outputs[0].rank = 2
    settle(call, 0, 0, boxes.shape[0] * scores.shape[1] * limit, limit != OPEN and known(boxes, 0) and known(scores, 1))
    settle(call, 0, 1, 3, True)
    return 0


cdef int check_iou_threshold(NodeCall* call, double threshold) noexcept nogil:
    if 0 <= threshold <= 1:
        return 0
    snprintf(call.message, MESSAGE, "iou_threshold: expected a number from 0 to 1, got %.9g", threshold)
    return REFUSED


cdef int compute_nms(NodeCall* call) noexcept nogil:
    cdef const Tensor* scores = &call.inputs[NMS_IN_SCORES]
    cdef NonMaxSuppression work
    cdef SelectedRows rows
    cdef Value iou, score
    cdef int64_t limit = 0
    cdef int failed
    if nms_limit(call, &limit) or number_or_input(call, NMS_IOU_THRESHOLD, NMS_IN_IOU_THRESHOLD, &iou) or (
            number_or_input(call, NMS_SCORE_THRESHOLD, NMS_IN_SCORE_THRESHOLD, &score)):
        return REFUSED
    if check_iou_threshold(call, iou.number[0]):
        return REFUSED
    if isnan(score.number[0]):
        snprintf(call.message, MESSAGE, "score_threshold: expected a number, got nan")
        return REFUSED
    if call.outputs[0].size == 0:
        return 0
    work.boxes = <const real*> call.inputs[NMS_IN_BOXES].data
    work.scores = <const real*> scores.data
    work.score_thresholds = NULL
    work.batches, work.classes, work.count = scores.shape[0], scores.shape[1], scores.shape[2]
    work.top_k = nms_top_k(call)
    work.limit = limit
    work.iou_threshold = iou.number[0]
    work.score_threshold = score.number[0] if score.number[0] > 0 else -INFINITY
    work.strict = False
    work.form = BoxForm.CENTER_AND_SIZE if call.values[NMS_CENTER_POINT_BOX].whole[0] else BoxForm.CORNERS
    work.offset = call.values[NMS_OFFSET].whole[0]
    work.selected = <long long*> allocate((limit + 1) * work.batches * work.classes * sizeof(long long))
    if work.selected is NULL:
        return out_of_memory(call)
    work.found = work.selected + limit * work.batches * work.classes
    failed = run_kernel(call, NMS_RUN_NON_MAX_SUPPRESSION, &work)
    if not failed:
        rows.selected, rows.found = work.selected, work.found
        rows.batches, rows.classes, rows.limit = work.batches, work.classes, limit
        rows.rows = call.outputs[0].shape[0]
        rows.rows64, rows.rows32 = NULL, <int*> call.outputs[0].data
        failed = run_kernel(call, NMS_RUN_SELECTED_ROWS, &rows)
    free(work.selected)
    return failed


# The NonMaxSuppression that MMCV's exporter writes: the boxes that are kept, as many as they are


cdef int plan_keep(NodeCall* call) noexcept nogil:
    cdef const Tensor* boxes = &call.inputs[KEEP_IN_BOXES]
    cdef const Tensor* scores = &call.inputs[KEEP_IN_SCORES]
    if boxes.rank != 2 or is_other(boxes, 1, 4):
        return wrong_shape(call, KEEP_IN_BOXES, "(num_boxes, 4)")
    if scores.rank != 1 or differ(scores, 0, boxes, 0):
        return wrong_shape(call, KEEP_IN_SCORES, "(num_boxes,) as in boxes")
    if not 0 <= call.values[KEEP_OFFSET].whole[0] <= 1:
        return wrong_value(call, KEEP_OFFSET, "0 or 1")
    if check_iou_threshold(call, call.values[KEEP_IOU_THRESHOLD].number[0]):
        return REFUSED
    call.outputs[0].rank = 1
    settle(call, 0, 0, 0, False)
    return 0


cdef int compute_keep(NodeCall* call) noexcept nogil:
    cdef Nms work
    cdef long long* selected
    work.count = call.inputs[KEEP_IN_SCORES].shape[0]
    selected = <long long*> allocate((work.count + 1) * sizeof(long long))
    if selected is NULL:
        return out_of_memory(call)
    call.scratch = selected
    work.found = selected + work.count
    work.found[0] = 0
    if work.count == 0:
        return 0
    work.boxes = <const real*> call.inputs[KEEP_IN_BOXES].data
    work.scores = <const real*> call.inputs[KEEP_IN_SCORES].data
    work.labels = NULL
    work.score_thresholds = NULL
    work.selected = selected
    work.top_k = work.limit = work.count
    work.iou_threshold = call.values[KEEP_IOU_THRESHOLD].number[0]
    work.score_threshold = -INFINITY
    work.strict = False
    work.offset = call.values[KEEP_OFFSET].whole[0]
    return run_kernel(call, KEEP_RUN_NMS, &work)


cdef int deliver_keep(NodeCall* call) noexcept nogil:
    cdef const long long* selected = <const long long*> call.scratch
    call.outputs[0].shape[0] = selected[call.inputs[KEEP_IN_SCORES].shape[0]]
    if place_output(call, 0):
        return -1
    memcpy(call.outputs[0].data, selected, call.outputs[0].size * sizeof(long long))
    return 0
