# cummax and cummin


cdef int plan_cumulative(NodeCall* call) noexcept nogil:
    cdef int64_t axes = max(call.inputs[SCAN_IN_X].rank, 1)
    if not -axes <= call.values[SCAN_AXIS].whole[0] < axes:
        snprintf(call.message, MESSAGE, "%s: expected an axis from %d to %d, got %lld", attribute_name(call, SCAN_AXIS),
                 <int> -axes, <int> axes - 1, <long long> call.values[SCAN_AXIS].whole[0])
        return REFUSED
    copy_shape(call, SCAN_IN_X, 0)
    copy_shape(call, SCAN_IN_X, 1)
    return 0


cdef int compute_cumulative(NodeCall* call) noexcept nogil:
    cdef const Tensor* x = &call.inputs[SCAN_IN_X]
    cdef int axis = <int> call.values[SCAN_AXIS].whole[0]
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
    scan.smallest = call.values[SCAN_SMALLEST].whole[0]
    return run_kernel(call, SCAN_RUN_CUMULATIVE, &scan)
