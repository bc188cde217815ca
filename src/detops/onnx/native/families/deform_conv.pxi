# MMCVDeformConv2d, MMCVModulatedDeformConv2d and DeformConv


cdef int plan_conv_options(NodeCall* call) noexcept nogil:
    cdef const Value* padding = &call.values[CONV_PADDING]
    cdef int i, j
    for i in range(CONV_STRIDE, CONV_DILATION + 1):
        if call.values[i].count != 2 and not (i == CONV_PADDING and padding.count == 4):
            return wrong_value(call, i, "2 or 4 numbers" if i == CONV_PADDING else "2 numbers")
        for j in range(call.values[i].count):
            if call.values[i].whole[j] < (0 if i == CONV_PADDING else 1):
                return wrong_value(call, i, "at least 0" if i == CONV_PADDING else "at least 1")
    for i in range(CONV_GROUPS, CONV_IM2COL_STEP + 1):
        if call.values[i].count and call.values[i].whole[0] < 1:
            return wrong_value(call, i, "at least 1")
    return 0


cdef int plan_conv_weight(NodeCall* call) noexcept nogil:
    cdef const Tensor* x = &call.inputs[CONV_IN_X]
    cdef const Tensor* weight = &call.inputs[CONV_IN_WEIGHT]
    cdef const Value* kernel = &call.values[CONV_KERNEL_SHAPE]
    cdef int64_t groups = call.values[CONV_GROUPS].whole[0]
    if x.rank != 4:
        return wrong_shape(call, CONV_IN_X, "(N, C, H, W)")
    if known(x, 1) and (x.shape[1] % groups or x.shape[1] % call.values[CONV_OFFSET_GROUPS].whole[0]):
        return wrong_shape(call, CONV_IN_X, "with a number of channels that all groups divide")
    if weight.rank != 4 or (known(x, 1) and is_other(weight, 1, x.shape[1] // groups)) or (
            known(weight, 0) and weight.shape[0] % groups) or weight.shape[2] < 1 or weight.shape[3] < 1:
        return wrong_shape(call, CONV_IN_WEIGHT, "(O, C / groups, kernel_H, kernel_W) as the input and its groups ask for")
    if kernel.count and (
            kernel.count != 2 or is_other(weight, 2, kernel.whole[0]) or is_other(weight, 3, kernel.whole[1])):
        return wrong_value(call, CONV_KERNEL_SHAPE, "the kernel's shape of the weight")
    return 0


cdef int64_t planes_of(const NodeCall* call) noexcept nogil:
    """How many planes a mask has; OPEN where that is not known."""
    cdef const Tensor* weight = &call.inputs[CONV_IN_WEIGHT]
    if not (known(weight, 2) and known(weight, 3)):
        return OPEN
    return capped_product(call.values[CONV_OFFSET_GROUPS].whole[0], capped_product(weight.shape[2], weight.shape[3]))


cdef bint fits(const Tensor* tensor, const Tensor* out, int64_t planes) noexcept nogil:
    return tensor.rank == 4 and not differ(tensor, 0, out, 0) and not (planes >= 0 and is_other(tensor, 1, planes)) and (
        not differ(tensor, 2, out, 2) and not differ(tensor, 3, out, 3))


cdef int plan_windows(NodeCall* call, int axis) noexcept nogil:
    """One of the two last axes of the result."""
    cdef const Tensor* x = &call.inputs[CONV_IN_X]
    cdef const Tensor* weight = &call.inputs[CONV_IN_WEIGHT]
    cdef const Value* padding = &call.values[CONV_PADDING]
    cdef int64_t padded = capped_sum(padding.whole[axis], padding.whole[(axis + 2) % padding.count])
    cdef int64_t window = capped_product(call.values[CONV_DILATION].whole[axis], weight.shape[2 + axis] - 1)
    cdef bint from_known = known(x, 2 + axis) and known(weight, 2 + axis)
    padded = capped_sum(padded, x.shape[2 + axis]) - 1
    if from_known and padded < window:
        return wrong_shape(call, CONV_IN_X, "at least as large with its padding as the kernel")
    settle(call, 0, 2 + axis, (padded - window) // call.values[CONV_STRIDE].whole[axis] + 1, from_known)
    return 0


cdef int plan_deform_conv(NodeCall* call) noexcept nogil:
    cdef const Tensor* offset = &call.inputs[CONV_IN_OFFSET]
    cdef const Tensor* bias = &call.inputs[CONV_IN_BIAS]
    cdef Tensor* out = &call.outputs[0]
    cdef int64_t planes
    cdef int i
    if plan_conv_options(call) or plan_conv_weight(call):
        return REFUSED
    out.rank = 4
    take(call, 0, 0, &call.inputs[CONV_IN_X], 0)
    take(call, 0, 1, &call.inputs[CONV_IN_WEIGHT], 0)
    for i in range(2):
        if plan_windows(call, i):
            return REFUSED
    planes = planes_of(call)
    if not fits(offset, out, planes if planes < 0 else 2 * planes):
        return wrong_shape(call, CONV_IN_OFFSET, "(N, 2 * offset_groups * kernel_H * kernel_W, out_H, out_W)")
    if call.inputs[CONV_IN_MASK].present and not fits(&call.inputs[CONV_IN_MASK], out, planes):
        return wrong_shape(call, CONV_IN_MASK, "(N, offset_groups * kernel_H * kernel_W, out_H, out_W)")
    if bias.present and (bias.rank != 1 or differ(bias, 0, &call.inputs[CONV_IN_WEIGHT], 0)):
        return wrong_shape(call, CONV_IN_BIAS, "(O,) as the weight")
    for i in range(2, 4):
        if not known(out, i):  # the offsets say as much
            take(call, 0, i, offset, i)
    return 0


cdef const real* data_of(const NodeCall* call, int slot) noexcept nogil:
    """An input's elements, NULL where it is absent."""
    return <const real*> call.inputs[slot].data if call.inputs[slot].present else NULL


cdef int compute_deform_conv(NodeCall* call) noexcept nogil:
    cdef const Tensor* x = &call.inputs[CONV_IN_X]
    cdef const Tensor* weight = &call.inputs[CONV_IN_WEIGHT]
    cdef const Tensor* out = &call.outputs[0]
    cdef DeformConv conv
    cdef int i
    if out.size == 0:
        return 0
    conv.x = data_of(call, CONV_IN_X)
    conv.offset = data_of(call, CONV_IN_OFFSET)
    conv.mask = data_of(call, CONV_IN_MASK)
    conv.weight = data_of(call, CONV_IN_WEIGHT)
    conv.bias = data_of(call, CONV_IN_BIAS)
    conv.out = <real*> out.data
    conv.images, conv.channels, conv.height, conv.width = x.shape[0], x.shape[1], x.shape[2], x.shape[3]
    conv.outputs, conv.out_height, conv.out_width = out.shape[1], out.shape[2], out.shape[3]
    conv.kernel_height, conv.kernel_width = weight.shape[2], weight.shape[3]
    for i in range(2):
        conv.stride[i] = call.values[CONV_STRIDE].whole[i]
        conv.padding[i] = call.values[CONV_PADDING].whole[i]
        conv.dilation[i] = call.values[CONV_DILATION].whole[i]
    conv.groups = call.values[CONV_GROUPS].whole[0]
    conv.offset_groups = call.values[CONV_OFFSET_GROUPS].whole[0]
    conv.im2col_step = call.values[CONV_IM2COL_STEP].whole[0] if call.values[CONV_IM2COL_STEP].count else 0
    return run_kernel(call, CONV_RUN_DEFORM_CONV2D, &conv)
