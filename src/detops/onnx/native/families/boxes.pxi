# DecodeBbox and DecodeBboxV2


cdef bint anchors_fit(const Tensor* predictions, const Tensor* anchors, int axis) noexcept nogil:
    """Whether anchors have the predictions' shape with 4 on the axis, leading axes missing or of length 1 aside."""
    cdef int missing = predictions.rank - anchors.rank
    cdef int i
    cdef bint leading = True
    if not 0 <= missing <= axis:
        return False
    for i in range(missing, predictions.rank):
        leading = leading and i < axis and not is_other(anchors, i - missing, 1)
        if leading:
            continue
        if is_other(anchors, i - missing, 4) if i == axis else differ(anchors, i - missing, predictions, i):
            return False
    return True


cdef int plan_decode_bbox(NodeCall* call) noexcept nogil:
    cdef const Tensor* predictions = &call.inputs[BOX_IN_BOX_PREDICTIONS]
    cdef const Tensor* anchors = &call.inputs[BOX_IN_ANCHORS]
    cdef int64_t axis = call.values[BOX_AXIS].whole[0]
    cdef double lower = call.values[BOX_LOWER_CLIP].number[0]
    cdef double upper = call.values[BOX_DECODE_CLIP].number[0]
    cdef int i
    if predictions.rank == 0:
        return wrong_shape(call, BOX_IN_BOX_PREDICTIONS, "(..., 4)")
    if not -predictions.rank <= axis < predictions.rank:
        return wrong_value(call, BOX_AXIS, "an axis of the predictions")
    if not -INFINITY < upper <= INFINITY:
        return wrong_number(call, BOX_DECODE_CLIP, "a number or inf")
    if not -INFINITY <= lower < INFINITY:
        return wrong_number(call, BOX_LOWER_CLIP, "a number or -inf")
    for i in range(4):
        if call.values[BOX_SCALES].count != 4 or not isfinite(call.values[BOX_SCALES].number[i]) or (
                call.values[BOX_SCALES].number[i] == 0):
            return wrong_number(call, BOX_SCALES, "4 finite numbers other than 0")
        if call.values[BOX_MEANS].count != 4 or not isfinite(call.values[BOX_MEANS].number[i]):
            return wrong_number(call, BOX_MEANS, "4 finite numbers")
    if not 0 <= call.values[BOX_OFFSET].whole[0] <= 1:
        return wrong_value(call, BOX_OFFSET, "0 or 1")
    axis = axis + predictions.rank if axis < 0 else axis
    if known(predictions, <int> axis) and (
            predictions.shape[axis] % 4 or (predictions.shape[axis] != 4 and axis != predictions.rank - 1)):
        return wrong_shape(call, BOX_IN_BOX_PREDICTIONS, "with 4 coordinates along the axis")
    if not anchors_fit(predictions, anchors, <int> axis):
        return wrong_shape(call, BOX_IN_ANCHORS, "that of box_predictions with 4 coordinates, or its last axes")
    copy_shape(call, BOX_IN_BOX_PREDICTIONS, 0)
    return 0


cdef int compute_decode_bbox(NodeCall* call) noexcept nogil:
    cdef const Tensor* predictions = &call.inputs[BOX_IN_BOX_PREDICTIONS]
    cdef int axis = <int> call.values[BOX_AXIS].whole[0]
    cdef Boxes boxes
    if axis < 0:
        axis += predictions.rank
    boxes.subject = <const real*> predictions.data
    boxes.anchors = <const real*> call.inputs[BOX_IN_ANCHORS].data
    boxes.out = <real*> call.outputs[0].data
    boxes.count = predictions.size // 4
    boxes.anchor_count = call.inputs[BOX_IN_ANCHORS].size // 4
    boxes.classes = 1
    if axis == predictions.rank - 1:
        boxes.classes = max(predictions.shape[axis] // 4, 1)
    boxes.inner = max(extent(predictions, axis + 1, predictions.rank), 1)
    memcpy(boxes.scales, call.values[BOX_SCALES].number, sizeof(boxes.scales))
    memcpy(boxes.means, call.values[BOX_MEANS].number, sizeof(boxes.means))
    boxes.form = call.values[BOX_ANCHOR_FORM].whole[0]
    boxes.offset = call.values[BOX_OFFSET].whole[0]
    boxes.lower_clip = call.values[BOX_LOWER_CLIP].number[0]
    boxes.decode_clip = call.values[BOX_DECODE_CLIP].number[0]
    return run_kernel(call, BOX_RUN_DECODE_BBOX, &boxes)
