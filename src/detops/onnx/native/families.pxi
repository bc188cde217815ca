# The families of operators: which shapes they take and give, and how their kernels are called. Argument names and their
# slots are listed for the table in FAMILIES, in the order of each family's enum.


cdef int wrong_shape(Call* call, int slot, const char* wanted) noexcept nogil:
    """Say which shape an input should have, and which it has."""
    cdef const Tensor* tensor = &call.inputs[slot]
    cdef char[MESSAGE] shape
    cdef int i, used = 0
    shape[0] = 0
    for i in range(tensor.rank):
        used += snprintf(shape + used, MESSAGE - used, ", %lld" if i else "%lld", <long long> tensor.shape[i])
    snprintf(call.message, MESSAGE, "%s: expected shape %s, got (%s%s)", input_name(call, slot), wanted, shape,
             "," if tensor.rank == 1 else "")
    return -1


cdef int wrong_value(Call* call, int slot, const char* wanted) noexcept nogil:
    """Say what an attribute should be, and what it is."""
    cdef const Value* value = &call.values[slot]
    cdef char[MESSAGE] got
    cdef int i, used = 0
    got[0] = 0
    for i in range(value.count):
        used += snprintf(got + used, MESSAGE - used, ", %lld" if i else "%lld", <long long> value.whole[i])
    snprintf(call.message, MESSAGE, "%s: expected %s, got %s", attribute_name(call, slot), wanted, got)
    return -1


cdef int wrong_number(Call* call, int slot, const char* wanted) noexcept nogil:
    snprintf(call.message, MESSAGE, "%s: expected %s, got %g", attribute_name(call, slot), wanted,
             call.values[slot].number[0])
    return -1


cdef const char* input_name(const Call* call, int slot) noexcept nogil:
    cdef int i
    for i in range(call.row.input_count):
        if call.row.inputs[i].slot == slot:
            return call.row.inputs[i].name
    return ""


cdef const char* attribute_name(const Call* call, int slot) noexcept nogil:
    cdef int i
    for i in range(call.row.attribute_count):
        if call.row.attributes[i].slot == slot:
            return call.row.attributes[i].names[0]
    return ""


cdef void copy_shape(Call* call, int slot, int output) noexcept nogil:
    """Plan a result of an input's shape."""
    call.outputs[output].rank = call.inputs[slot].rank
    memcpy(call.outputs[output].shape, call.inputs[slot].shape, sizeof(call.outputs[output].shape))


cdef bint same_shape(const Tensor* one, const Tensor* other) noexcept nogil:
    cdef int i
    if one.rank != other.rank:
        return False
    for i in range(one.rank):
        if one.shape[i] != other.shape[i]:
            return False
    return True


# cummax and cummin

cdef enum:
    CUM_X = 0
cdef enum:
    CUM_AXIS = 0
    CUM_SMALLEST


cdef int plan_cumulative(Call* call) noexcept nogil:
    cdef int64_t axes = max(call.inputs[CUM_X].rank, 1)
    if not -axes <= call.values[CUM_AXIS].whole[0] < axes:
        snprintf(call.message, MESSAGE, "%s: expected an axis from %d to %d, got %lld", attribute_name(call, CUM_AXIS),
                 <int> -axes, <int> axes - 1, <long long> call.values[CUM_AXIS].whole[0])
        return -1
    copy_shape(call, CUM_X, 0)
    copy_shape(call, CUM_X, 1)
    return 0


cdef int compute_cumulative(Call* call) noexcept nogil:
    cdef const Tensor* x = &call.inputs[CUM_X]
    cdef int axis = <int> call.values[CUM_AXIS].whole[0]
    cdef Cumulative scan
    if x.size == 0:
        return 0
    if axis < 0:
        axis += max(x.rank, 1)
    scan.x = <const element*> x.data
    scan.values = <element*> call.outputs[0].data
    scan.indices = <long long*> call.outputs[1].data
    scan.outer = extent(x, 0, axis)
    scan.length = x.shape[axis] if x.rank else 1
    scan.inner = extent(x, axis + 1, x.rank)
    scan.smallest = call.values[CUM_SMALLEST].whole[0]
    return run_kernel(call, 0, &scan)


# DecodeBbox and DecodeBboxV2

cdef enum:
    BOX_PREDICTIONS = 0
    BOX_ANCHORS
cdef enum:
    BOX_DECODE_CLIP = 0
    BOX_LOWER_CLIP
    BOX_SCALES
    BOX_MEANS
    BOX_AXIS


cdef bint shares_anchors(const Tensor* predictions, const Tensor* anchors) noexcept nogil:
    """Whether each anchor has several boxes along the last axis."""
    cdef int i
    cdef int last = predictions.rank - 1
    if anchors.rank != predictions.rank or anchors.shape[last] != 4 or predictions.shape[last] % 4:
        return False
    for i in range(last):
        if anchors.shape[i] != predictions.shape[i]:
            return False
    return True


cdef int plan_decode_bbox(Call* call) noexcept nogil:
    cdef const Tensor* predictions = &call.inputs[BOX_PREDICTIONS]
    cdef const Tensor* anchors = &call.inputs[BOX_ANCHORS]
    cdef int64_t axis = call.values[BOX_AXIS].whole[0]
    cdef double lower = call.values[BOX_LOWER_CLIP].number[0]
    cdef double upper = call.values[BOX_DECODE_CLIP].number[0]
    cdef int i
    if predictions.rank == 0:
        return wrong_shape(call, BOX_PREDICTIONS, "(..., 4)")
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
    axis = axis + predictions.rank if axis < 0 else axis
    if not (axis == predictions.rank - 1 and shares_anchors(predictions, anchors)):
        if predictions.shape[axis] % 4 or (predictions.shape[axis] != 4 and axis != predictions.rank - 1):
            return wrong_shape(call, BOX_PREDICTIONS, "with 4 coordinates along the axis")
        if not same_shape(predictions, anchors):
            return wrong_shape(call, BOX_ANCHORS, "that of box_predictions with 4 coordinates")
    copy_shape(call, BOX_PREDICTIONS, 0)
    return 0


cdef int compute_decode_bbox(Call* call) noexcept nogil:
    cdef const Tensor* predictions = &call.inputs[BOX_PREDICTIONS]
    cdef int axis = <int> call.values[BOX_AXIS].whole[0]
    cdef Boxes boxes
    if axis < 0:
        axis += predictions.rank
    boxes.subject = <const real*> predictions.data
    boxes.anchors = <const real*> call.inputs[BOX_ANCHORS].data
    boxes.out = <real*> call.outputs[0].data
    boxes.count = predictions.size // 4
    boxes.classes = 1
    if axis == predictions.rank - 1:
        boxes.classes = max(predictions.shape[axis] // 4, 1)
    boxes.inner = max(extent(predictions, axis + 1, predictions.rank), 1)
    memcpy(boxes.scales, call.values[BOX_SCALES].number, sizeof(boxes.scales))
    memcpy(boxes.means, call.values[BOX_MEANS].number, sizeof(boxes.means))
    boxes.lower_clip = call.values[BOX_LOWER_CLIP].number[0]
    boxes.decode_clip = call.values[BOX_DECODE_CLIP].number[0]
    return run_kernel(call, 0, &boxes)
