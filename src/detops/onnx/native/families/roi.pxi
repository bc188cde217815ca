# MMCVRoiAlign and RoiAlign

cdef enum:
    MAX_POINTS = 1 << 24  # samples of one roi


cdef int plan_rois(NodeCall* call, int scale) noexcept nogil:
    """Check the inputs of an operator on rois, all of which number them alike, and the attribute that is the scale."""
    cdef const Tensor* features = &call.inputs[ROI_IN_FEATURES]
    cdef const Tensor* rois = &call.inputs[ROI_IN_ROIS]
    if features.rank != 4:
        return wrong_shape(call, ROI_IN_FEATURES, "(batch, channels, height, width)")
    if call.inputs[ROI_IN_BATCH_INDICES].present:
        if rois.rank != 2 or is_other(rois, 1, 4):
            return wrong_shape(call, ROI_IN_ROIS, "(num_rois, 4)")
        if call.inputs[ROI_IN_BATCH_INDICES].rank != 1 or differ(&call.inputs[ROI_IN_BATCH_INDICES], 0, rois, 0):
            return wrong_shape(call, ROI_IN_BATCH_INDICES, "(num_rois,) as the rois")
    elif rois.rank != 2 or is_other(rois, 1, 5):
        return wrong_shape(call, ROI_IN_ROIS, "(num_rois, 5)")
    if not 0 < call.values[scale].number[0] < INFINITY:
        return wrong_number(call, scale, "a number above 0")
    call.outputs[0].rank = 4
    take(call, 0, 0, rois, 0)
    take(call, 0, 1, features, 1)
    return 0


cdef int plan_roi_align(NodeCall* call) noexcept nogil:
    cdef int i
    if plan_rois(call, ROI_SPATIAL_SCALE):
        return REFUSED
    for i in range(ROI_OUTPUT_HEIGHT, ROI_OUTPUT_WIDTH + 1):
        if call.values[i].whole[0] < 1:
            return wrong_value(call, i, "at least 1")
    if not 0 <= call.values[ROI_ALIGNED].whole[0] <= 1:
        return wrong_value(call, ROI_ALIGNED, "0 or 1")
    settle(call, 0, 2, call.values[ROI_OUTPUT_HEIGHT].whole[0], True)
    settle(call, 0, 3, call.values[ROI_OUTPUT_WIDTH].whole[0], True)
    return 0


cdef int find_images(NodeCall* call, long long* images) noexcept nogil:
    """Find the number of each roi's image: the first column of the rois, or an input of its own."""
    cdef const Tensor* rois = &call.inputs[ROI_IN_ROIS]
    cdef const Tensor* apart = &call.inputs[ROI_IN_BATCH_INDICES]
    cdef int64_t batch = call.inputs[ROI_IN_FEATURES].shape[0]
    cdef Py_ssize_t row
    cdef double index
    for row in range(rois.shape[0]):
        index = <double> (<const int64_t*> apart.memory)[row] if apart.present else element_at(rois, 5 * row)
        if not (0 <= index < batch and index == <double> <long long> index):
            snprintf(call.message, MESSAGE, "%s: expected whole batch indices in [0, %lld), got %g in row %lld",
                     input_name(call, ROI_IN_BATCH_INDICES if apart.present else ROI_IN_ROIS), <long long> batch, index,
                     <long long> row)
            return REFUSED
        images[row] = <long long> index
    return 0


cdef void describe_rois(NodeCall* call, Rois* rois, const long long* images, double scale) noexcept nogil:
    cdef const Tensor* features = &call.inputs[ROI_IN_FEATURES]
    cdef const Tensor* output = &call.outputs[0]
    rois.features = <const real*> features.data
    rois.rois = <const real*> call.inputs[ROI_IN_ROIS].data
    rois.images = images
    rois.out = <real*> output.data
    rois.batch, rois.channels = features.shape[0], features.shape[1]
    rois.height, rois.width = features.shape[2], features.shape[3]
    rois.num_rois, rois.roi_columns = output.shape[0], 4 if call.inputs[ROI_IN_BATCH_INDICES].present else 5
    rois.out_height, rois.out_width = output.shape[2], output.shape[3]
    rois.spatial_scale = scale


cdef int compute_roi_align(NodeCall* call) noexcept nogil:
    cdef Py_ssize_t count = call.outputs[0].shape[0]
    cdef Rois rois
    cdef Py_ssize_t crowded = -1
    cdef int failed
    cdef long long* images = <long long*> allocate((count + 1) * sizeof(long long))
    if images is NULL:
        return out_of_memory(call)
    describe_rois(call, &rois, images, call.values[ROI_SPATIAL_SCALE].number[0])
    rois.crowded = &crowded
    rois.ratio = max(min(call.values[ROI_SAMPLING_RATIO].whole[0], <int64_t> MAX_POINTS + 1), <int64_t> 0)
    rois.mode = <int> call.values[ROI_MODE].whole[0]
    rois.aligned = call.values[ROI_ALIGNED].whole[0]
    failed = find_images(call, images) or run_kernel(call, ROI_RUN_ROI_ALIGN, &rois)
    free(images)
    if crowded >= 0:
        snprintf(call.message, MESSAGE, "%s: expected at most %d points to sample in a roi, got more in row %lld",
                 input_name(call, ROI_IN_ROIS), <int> MAX_POINTS, <long long> crowded)
        return REFUSED
    return failed


# MaxRoiPool


cdef int plan_roi_pool(NodeCall* call) noexcept nogil:
    cdef const Value* size = &call.values[POOL_OUTPUT_SIZE]
    if plan_rois(call, POOL_SPATIAL_SCALE):
        return REFUSED
    if size.count != 2 or size.whole[0] < 1 or size.whole[1] < 1:
        return wrong_value(call, POOL_OUTPUT_SIZE, "2 numbers of at least 1")
    settle(call, 0, 2, size.whole[0], True)
    settle(call, 0, 3, size.whole[1], True)
    return 0


cdef int compute_roi_pool(NodeCall* call) noexcept nogil:
    cdef Rois rois
    cdef int failed
    cdef long long* images = <long long*> allocate((call.outputs[0].shape[0] + 1) * sizeof(long long))
    if images is NULL:
        return out_of_memory(call)
    describe_rois(call, &rois, images, call.values[POOL_SPATIAL_SCALE].number[0])
    failed = find_images(call, images)
    if not failed and call.outputs[0].size:
        failed = run_kernel(call, POOL_RUN_ROI_POOL, &rois)
    free(images)
    return failed
