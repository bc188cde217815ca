"""Deformable convolution: columns of sampled elements, block by block, times the kernel's weights."""

from libc.string cimport memset

include "scalar.pxi"
include "buffers.pxi"
include "parallel_for.pxi"
include "scratch.pxi"
include "gemm.pxi"
include "transpose.pxi"
include "deform_conv.pxi"
include "../_core/sampling.py"
include "im2col.pxi"


cdef enum:
    # The columns of a block of positions stay in a thread's second-level cache.
    BLOCK_BYTES = 3 << 18
    MAX_BLOCK = 96
    # Bytes of images that are copied at a time where im2col_step is not given.
    STEP_BYTES = 1 << 23
    LINE = 64
    # Multiplications that are worth another thread.
    GRAIN = 1 << 20


cdef void multiply(const Step* step, Py_ssize_t group, const real* columns, Py_ssize_t count, real* out) noexcept nogil:
    """The outputs of one group at the positions of a block."""
    cdef real[ROWS * LANES] sums
    cdef Py_ssize_t panel, tile, first, row, lane, output, lanes
    for panel in range(step.panels):
        output = group * step.outputs + panel * LANES
        lanes = min(<Py_ssize_t> LANES, step.outputs - panel * LANES)
        for tile in range((count + ROWS - 1) // ROWS):
            first = tile * ROWS
            panel_product(columns + first * step.stride, step.stride,
                          step.packed + (group * step.panels + panel) * step.terms * LANES, step.terms, sums)
            if step.conv.bias:
                for row in range(ROWS):
                    for lane in range(lanes):
                        sums[row * LANES + lane] += step.conv.bias[output + lane]
            transpose(sums, LANES, out + output * step.positions + first, step.positions,
                      min(<Py_ssize_t> ROWS, count - first), lanes)


cdef int convolve_loop(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is one block of positions of one image."""
    cdef const Step* step = <const Step*> arguments
    cdef Py_ssize_t blocks = (step.positions + step.block - 1) // step.block
    cdef Py_ssize_t item, image, first, count, row, group
    cdef Py_ssize_t size = step.conv.groups * step.block * step.stride
    cdef Scratch scratch
    cdef real* columns
    if borrow(&scratch, size * sizeof(real)):
        return -1
    columns = <real*> scratch.address
    for item in range(begin, end):
        image = item // blocks
        first = item % blocks * step.block
        count = min(step.block, step.positions - first)
        for row in range(count):
            sample_column(step, image, first + row, columns + row * step.stride)
        for group in range(step.conv.groups):
            # The last tile of a block may lack rows: zeros, for the product looks at nothing that was never written.
            memset(columns + (group * step.block + count) * step.stride, 0,
                   ((count + ROWS - 1) // ROWS * ROWS - count) * step.stride * sizeof(real))
            multiply(step, group, columns + group * step.block * step.stride, count,
                     step.conv.out + (step.first + image) * step.conv.outputs * step.positions + first)
    give_back(&scratch)
    return 0


cdef int run_steps(Step* step, Py_ssize_t images, const Executor* executor) noexcept nogil:
    """Step by step: copy some images, and convolve the copies."""
    cdef Py_ssize_t blocks = (step.positions + step.block - 1) // step.block
    cdef Py_ssize_t grain = 1 + GRAIN // max(step.block * step.terms * step.conv.outputs, <Py_ssize_t> 1)
    cdef int failed = executor.parallel_for(executor, pack_loop, step, step.conv.groups * step.panels,
                                  1 + GRAIN // 64 // max(step.terms * LANES, <Py_ssize_t> 1))
    while not failed and step.first < step.conv.images:
        step.count = min(images, step.conv.images - step.first)
        failed = executor.parallel_for(executor, copy_loop, step, step.count * (step.pixels // PIXELS + 1), 4)
        if not failed:
            failed = executor.parallel_for(executor, convolve_loop, step, step.count * blocks, grain)
        step.first += step.count
    return failed


cdef api int deform_conv2d_operator(const void* arguments, const Executor* executor) noexcept nogil:
    cdef const DeformConv* conv = <const DeformConv*> arguments
    cdef Py_ssize_t images, bytes, rows
    cdef int failed = -1
    cdef Scratch scratch
    cdef Step step
    step.conv = conv
    step.first = 0
    step.pixels = conv.height * conv.width
    step.positions = conv.out_height * conv.out_width
    step.taps = conv.kernel_height * conv.kernel_width
    step.width = conv.channels // conv.groups
    step.outputs = conv.outputs // conv.groups
    step.panels = (step.outputs + LANES - 1) // LANES
    step.terms = step.taps * step.width
    # An odd number of cache lines apart: the columns of a tile must not all compete for the same few sets of a cache.
    step.stride = ((step.terms * sizeof(real) + LINE - 1) // LINE | 1) * (LINE // sizeof(real))
    bytes = step.stride * conv.groups * sizeof(real)
    rows = min(<Py_ssize_t> MAX_BLOCK, BLOCK_BYTES // bytes, conv.images * step.positions // (4 * executor.threads))
    step.block = max(rows // ROWS, <Py_ssize_t> 1) * ROWS
    bytes = (step.pixels + 1) * conv.channels * sizeof(real)
    images = min(conv.images, conv.im2col_step if conv.im2col_step else STEP_BYTES // max(bytes, <Py_ssize_t> 1) + 1)
    if not borrow(&scratch, images * bytes + conv.groups * step.panels * step.terms * LANES * sizeof(real)):
        step.packed = <real*> scratch.address
        step.copies = step.packed + conv.groups * step.panels * step.terms * LANES
        failed = run_steps(&step, images, executor)
    give_back(&scratch)
    return failed


def deform_conv2d(x, offset, weight, bias, mask, stride, padding, dilation, groups, offset_groups, im2col_step, out):
    cdef DeformConv conv
    conv.x = <const real*> address(x)
    conv.offset = <const real*> address(offset)
    conv.weight = <const real*> address(weight)
    conv.bias = <const real*> address(bias)
    conv.mask = <const real*> address(mask)
    conv.out = <real*> mutable(out)
    conv.images, conv.channels, conv.height, conv.width = x.shape
    conv.outputs, _, conv.kernel_height, conv.kernel_width = weight.shape
    conv.out_height, conv.out_width = out.shape[2:]
    conv.stride = stride
    conv.padding = padding
    conv.dilation = dilation
    conv.groups = groups
    conv.offset_groups = offset_groups
    conv.im2col_step = im2col_step
    execute(deform_conv2d_operator, &conv)
