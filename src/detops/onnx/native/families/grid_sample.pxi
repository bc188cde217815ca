# grid_sampler and GridSample


cdef int plan_grid_sample(NodeCall* call) noexcept nogil:
    cdef const Tensor* x = &call.inputs[GRID_IN_X]
    cdef const Tensor* grid = &call.inputs[GRID_IN_GRID]
    cdef int i
    if x.rank not in (4, 5):
        return wrong_shape(call, GRID_IN_X, "(N, C, H, W) or (N, C, D, H, W)")
    if grid.rank != x.rank or differ(grid, 0, x, 0) or is_other(grid, x.rank - 1, x.rank - 2):
        return wrong_shape(
            call, GRID_IN_GRID, "(N, out_H, out_W, 2) as x" if x.rank == 4 else "(N, out_D, out_H, out_W, 3) as x")
    if not 0 <= call.values[GRID_ALIGN_CORNERS].whole[0] <= 1:
        return wrong_value(call, GRID_ALIGN_CORNERS, "0 or 1")
    if call.values[GRID_PADDING_MODE].whole[0] and extent(x, 2, x.rank) == 0:
        return wrong_shape(call, GRID_IN_X, "with spatial axes of at least 1 for this padding_mode")
    call.outputs[0].rank = x.rank
    take(call, 0, 0, x, 0)
    take(call, 0, 1, x, 1)
    for i in range(2, x.rank):
        take(call, 0, i, grid, i - 1)
    return 0


cdef int compute_grid_sample(NodeCall* call) noexcept nogil:
    cdef const Tensor* x = &call.inputs[GRID_IN_X]
    cdef const Tensor* output = &call.outputs[0]
    cdef GridSample sample
    cdef int i
    if output.size == 0:
        return 0
    sample.x = <const real*> x.data
    sample.grid = <const real*> call.inputs[GRID_IN_GRID].data
    sample.out = <real*> output.data
    sample.images, sample.channels = x.shape[0], x.shape[1]
    sample.points = extent(output, 2, output.rank)
    sample.axes = x.rank - 2
    sample.sizes[2] = sample.strides[0] = 1
    for i in range(sample.axes):
        sample.sizes[i] = x.shape[x.rank - 1 - i]
    for i in range(3):
        sample.strides[i + 1] = sample.strides[i] * sample.sizes[i]
    sample.taps = call.values[GRID_MODE].whole[0]
    sample.border = call.values[GRID_PADDING_MODE].whole[0]
    if sample.border == Border.REFLECTION and sample.taps == GridMode.NEAREST and call.values[GRID_REFLECT_FIRST].whole[0]:
        sample.border = Border.REFLECT_FIRST
    sample.align_corners = call.values[GRID_ALIGN_CORNERS].whole[0]
    return run_kernel(call, GRID_RUN_GRID_SAMPLE, &sample)
