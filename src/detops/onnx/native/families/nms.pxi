# MMCV's NonMaxSuppression, whose result has a size of its own and is filled up with -1

cdef enum:
    NMS_BOXES = 0
    NMS_SCORES
    NMS_LIMIT_INPUT
    NMS_IOU_INPUT
    NMS_SCORE_INPUT
cdef enum:
    NMS_CENTER_POINT_BOX = 0
    NMS_OFFSET
    NMS_LIMIT
    NMS_IOU
    NMS_SCORE


cdef int number_or_input(Call* call, int attribute, int slot, Value* value) noexcept nogil:
    """A number that a node holds as an attribute or takes as an input of one element; UNKNOWN before there is data."""
    cdef const Tensor* tensor = &call.inputs[slot]
    value[0] = call.values[attribute]
    if not tensor.present:
        return 0
    if tensor.size != 1:
        return wrong_shape(call, slot, "() or (1,)")
    if tensor.data is NULL:
        return UNKNOWN
    if attribute == NMS_LIMIT:
        value.whole[0] = (<const int64_t*> tensor.data)[0]
    else:
        value.number[0] = (<const float*> tensor.data)[0]
    return 0


cdef int nms_limit(Call* call, int64_t* limit) noexcept nogil:
    """How many boxes each class may give."""
    cdef Value value
    cdef int64_t count = call.inputs[NMS_BOXES].shape[1]
    cdef int failed = number_or_input(call, NMS_LIMIT, NMS_LIMIT_INPUT, &value)
    if failed:
        return failed
    if value.whole[0] < 0:
        snprintf(call.message, MESSAGE, "max_output_boxes_per_class: expected at least 0, got %lld",
                 <long long> value.whole[0])
        return REFUSED
    limit[0] = min(value.whole[0], count) if value.whole[0] else count
    return 0


cdef int plan_nms(Call* call) noexcept nogil:
    cdef const Tensor* boxes = &call.inputs[NMS_BOXES]
    cdef const Tensor* scores = &call.inputs[NMS_SCORES]
    cdef int64_t limit = 0
    cdef int failed
    if boxes.rank != 3 or boxes.shape[2] != 4:
        return wrong_shape(call, NMS_BOXES, "(num_batches, num_boxes, 4)")
    if scores.rank != 3 or scores.shape[0] != boxes.shape[0] or scores.shape[2] != boxes.shape[1]:
        return wrong_shape(call, NMS_SCORES, "(num_batches, num_classes, num_boxes) as in boxes")
    if not 0 <= call.values[NMS_CENTER_POINT_BOX].whole[0] <= 1:
        return wrong_value(call, NMS_CENTER_POINT_BOX, "0 or 1")
    if not 0 <= call.values[NMS_OFFSET].whole[0] <= 1:
        return wrong_value(call, NMS_OFFSET, "0 or 1")
    failed = nms_limit(call, &limit)
    if failed:
        return failed
    call.outputs[0].rank = 2
    call.outputs[0].shape[0] = boxes.shape[0] * scores.shape[1] * limit
    call.outputs[0].shape[1] = 3
    return 0


cdef int compute_nms(Call* call) noexcept nogil:
    cdef const Tensor* scores = &call.inputs[NMS_SCORES]
    cdef NonMaxSuppression work
    cdef SelectedRows rows
    cdef Value iou, score
    cdef int64_t limit = 0
    cdef int failed
    if nms_limit(call, &limit) or number_or_input(call, NMS_IOU, NMS_IOU_INPUT, &iou) or (
            number_or_input(call, NMS_SCORE, NMS_SCORE_INPUT, &score)):
        return REFUSED
    if not 0 <= iou.number[0] <= 1:
        snprintf(call.message, MESSAGE, "iou_threshold: expected a number from 0 to 1, got %g", iou.number[0])
        return REFUSED
    if isnan(score.number[0]):
        snprintf(call.message, MESSAGE, "score_threshold: expected a number, got nan")
        return REFUSED
    if call.outputs[0].size == 0:
        return 0
    work.boxes = <const real*> call.inputs[NMS_BOXES].data
    work.scores = <const real*> scores.data
    work.batches, work.classes, work.count = scores.shape[0], scores.shape[1], scores.shape[2]
    work.limit = limit
    work.iou_threshold = iou.number[0]
    work.score_threshold = score.number[0] if score.number[0] > 0 else -INFINITY
    work.strict = False
    work.form = 2 if call.values[NMS_CENTER_POINT_BOX].whole[0] else 0
    work.offset = call.values[NMS_OFFSET].whole[0]
    work.selected = <long long*> malloc((limit + 1) * work.batches * work.classes * sizeof(long long))
    if work.selected is NULL:
        return out_of_memory(call)
    work.found = work.selected + limit * work.batches * work.classes
    failed = run_kernel(call, 0, &work)
    if not failed:
        rows.selected, rows.found = work.selected, work.found
        rows.batches, rows.classes, rows.limit = work.batches, work.classes, limit
        rows.rows = call.outputs[0].shape[0]
        rows.rows64, rows.rows32 = NULL, <int*> call.outputs[0].data
        failed = run_kernel(call, 1, &rows)
    free(work.selected)
    return failed
