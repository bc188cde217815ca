# MMCVMultiScaleDeformableAttention


cdef int plan_deform_attn(NodeCall* call) noexcept nogil:
    cdef const Tensor* value = &call.inputs[ATTN_IN_VALUE]
    cdef const Tensor* shapes = &call.inputs[ATTN_IN_SPATIAL_SHAPES]
    cdef const Tensor* starts = &call.inputs[ATTN_IN_LEVEL_START_INDEX]
    cdef const Tensor* locations = &call.inputs[ATTN_IN_SAMPLING_LOCATIONS]
    cdef const Tensor* weights = &call.inputs[ATTN_IN_ATTENTION_WEIGHTS]
    cdef int i
    if value.rank != 4:
        return wrong_shape(call, ATTN_IN_VALUE, "(num_images, num_keys, num_heads, channels)")
    if weights.rank != 5 or differ(weights, 0, value, 0) or differ(weights, 2, value, 2):
        return wrong_shape(call, ATTN_IN_ATTENTION_WEIGHTS,
                           "(num_images, num_queries, num_heads, num_levels, num_points) as the value")
    if locations.rank != 6 or is_other(locations, 5, 2):
        return wrong_shape(call, ATTN_IN_SAMPLING_LOCATIONS, "of the attention's weights and 2")
    for i in range(5):
        if differ(locations, i, weights, i):
            return wrong_shape(call, ATTN_IN_SAMPLING_LOCATIONS, "of the attention's weights and 2")
    if shapes.rank != 2 or differ(shapes, 0, weights, 3) or is_other(shapes, 1, 2):
        return wrong_shape(call, ATTN_IN_SPATIAL_SHAPES, "(num_levels, 2) as the attention's weights")
    if starts.rank != 1 or differ(starts, 0, weights, 3):
        return wrong_shape(call, ATTN_IN_LEVEL_START_INDEX, "(num_levels,) as the attention's weights")
    call.outputs[0].rank = 3
    take(call, 0, 0, value, 0)
    take(call, 0, 1, weights, 1)
    settle(call, 0, 2, capped_product(value.shape[2], value.shape[3]), known(value, 2) and known(value, 3))
    return 0


cdef int check_levels(NodeCall* call, const Attention* attention) noexcept nogil:
    """Whether each map lies within the keys; a quotient does not overflow."""
    cdef int64_t height, width, start
    cdef Py_ssize_t level
    for level in range(attention.levels):
        height, width = attention.shapes[2 * level], attention.shapes[2 * level + 1]
        start = attention.starts[level]
        if height < 0 or width < 0 or start < 0 or start > attention.keys or (
                width > 0 and height > (attention.keys - start) // width):
            snprintf(call.message, MESSAGE, "%s: expected maps within %lld keys, got %lld x %lld elements from %lld on in level %lld",
                     input_name(call, ATTN_IN_SPATIAL_SHAPES), <long long> attention.keys, <long long> height,
                     <long long> width, <long long> start, <long long> level)
            return REFUSED
    return 0


cdef int compute_deform_attn(NodeCall* call) noexcept nogil:
    cdef const Tensor* value = &call.inputs[ATTN_IN_VALUE]
    cdef const Tensor* weights = &call.inputs[ATTN_IN_ATTENTION_WEIGHTS]
    cdef Attention attention
    attention.value = <const real*> value.data
    attention.shapes = <const long long*> call.inputs[ATTN_IN_SPATIAL_SHAPES].data
    attention.starts = <const long long*> call.inputs[ATTN_IN_LEVEL_START_INDEX].data
    attention.locations = <const real*> call.inputs[ATTN_IN_SAMPLING_LOCATIONS].data
    attention.weights = <const real*> weights.data
    attention.out = <real*> call.outputs[0].data
    attention.images, attention.keys = value.shape[0], value.shape[1]
    attention.heads, attention.channels = value.shape[2], value.shape[3]
    attention.queries, attention.levels, attention.points = weights.shape[1], weights.shape[3], weights.shape[4]
    if check_levels(call, &attention):
        return REFUSED
    if call.outputs[0].size == 0:
        return 0
    return run_kernel(call, ATTN_RUN_MULTI_SCALE_DEFORM_ATTN, &attention)
