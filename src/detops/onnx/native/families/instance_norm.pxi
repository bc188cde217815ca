# MMCVInstanceNormalization, TRTInstanceNormalization and InstanceNormalization


cdef int plan_instance_norm(NodeCall* call) noexcept nogil:
    cdef const Tensor* x = &call.inputs[NORM_IN_X]
    cdef const Tensor* each
    cdef int i
    if x.rank < 3:
        return wrong_shape(call, NORM_IN_X, "(num_images, num_channels, d1, ...)")
    for i in range(NORM_IN_SCALE, NORM_IN_BIAS + 1):
        each = &call.inputs[i]
        if each.rank != 1 or differ(each, 0, x, 1):
            return wrong_shape(call, i, "(num_channels,) as the input")
    if not 0 < call.values[NORM_EPSILON].number[0] < INFINITY and not (
            call.values[NORM_EPSILON].number[0] == 0 and strcmp(call.row.name, "InstanceNormalization") == 0):
        return wrong_number(call, NORM_EPSILON, "a number above 0")
    copy_shape(call, NORM_IN_X, 0)
    return 0


cdef int compute_instance_norm(NodeCall* call) noexcept nogil:
    cdef const Tensor* x = &call.inputs[NORM_IN_X]
    cdef InstanceNorm norm
    if x.size == 0:
        return 0
    norm.x = <const element*> x.data
    norm.scale = <const element*> call.inputs[NORM_IN_SCALE].data
    norm.bias = <const element*> call.inputs[NORM_IN_BIAS].data
    norm.out = <element*> call.outputs[0].data
    norm.instances = x.shape[0] * x.shape[1]
    norm.channels = x.shape[1]
    norm.size = extent(x, 2, x.rank)
    norm.epsilon = call.values[NORM_EPSILON].number[0]
    return run_kernel(call, NORM_RUN_INSTANCE_NORM, &norm)
