# Columns of a deformable convolution: weights and images copied into the order that they are used in, and the
# elements that are sampled for each position.
cdef enum:
    # Pixels that are copied together.
    PIXELS = 32


cdef struct Step:
    const DeformConv* conv
    # Images [first, first + count).
    Py_ssize_t first
    Py_ssize_t count
    # Copies with the channels innermost: (count, pixels + 1, channels). The last pixel is zero: what lies outside.
    real* copies
    # Weights in panels: (groups, panels, terms, LANES).
    real* packed
    Py_ssize_t pixels
    Py_ssize_t positions
    Py_ssize_t taps
    # Of one group: channels and outputs, panels of LANES outputs, terms of a sum, and elements from column to column.
    Py_ssize_t width
    Py_ssize_t outputs
    Py_ssize_t panels
    Py_ssize_t terms
    Py_ssize_t stride
    # Positions of a block, a multiple of ROWS.
    Py_ssize_t block


cdef int pack_loop(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is one panel of weights: its terms run over the taps, and for each over the channels."""
    cdef const Step* step = <const Step*> arguments
    cdef Py_ssize_t item, first, lanes, lane, channel, tap
    cdef const real* source
    cdef real* target
    for item in range(begin, end):
        first = item % step.panels * LANES
        target = step.packed + item * step.terms * LANES
        memset(target, 0, step.terms * LANES * sizeof(real))
        source = step.conv.weight + (item // step.panels * step.outputs + first) * step.terms
        lanes = min(<Py_ssize_t> LANES, step.outputs - first)
        for channel in range(step.width):
            for tap in range(step.taps):
                for lane in range(lanes):
                    target[(tap * step.width + channel) * LANES + lane] = source[
                        lane * step.terms + channel * step.taps + tap]
    return 0


cdef int copy_loop(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is a run of pixels of one image, the zero pixel among the last."""
    cdef const Step* step = <const Step*> arguments
    cdef Py_ssize_t runs = step.pixels // PIXELS + 1, channels = step.conv.channels
    cdef Py_ssize_t item, image, first
    cdef const real* source
    cdef real* target
    for item in range(begin, end):
        image = item // runs
        first = item % runs * PIXELS
        source = step.conv.x + (step.first + image) * channels * step.pixels + first
        target = step.copies + (image * (step.pixels + 1) + first) * channels
        transpose(source, step.pixels, target, channels, channels, min(<Py_ssize_t> PIXELS, step.pixels - first))
        if step.pixels - first < PIXELS:
            memset(target + (step.pixels - first) * channels, 0, channels * sizeof(real))
    return 0


cdef inline void blend_run(const real* map, const Py_ssize_t* corner, Py_ssize_t count, real fraction_y, real fraction_x,
                           real factor, real* out) noexcept nogil:
    """The blend of four corners in a run of channels."""
    cdef const real* first = map + corner[0]
    cdef const real* second = map + corner[1]
    cdef const real* third = map + corner[2]
    cdef const real* fourth = map + corner[3]
    cdef Py_ssize_t i
    cdef real a, b, c, d
    a, b, c, d = bilinear_weights(fraction_y, fraction_x)
    for i in range(count):
        out[i] = blend(first[i], second[i], third[i], fourth[i], a, b, c, d) * factor


cdef inline Py_ssize_t corner_at(const Step* step, Py_ssize_t y, Py_ssize_t x) noexcept nogil:
    """Where in a copy the channels of an element start; those of the zero pixel where there is no such element."""
    return (step.pixels if y < 0 or x < 0 else y * step.conv.width + x) * step.conv.channels


cdef void sample_tap(const Step* step, const real* map, Py_ssize_t tap, Py_ssize_t channel, Py_ssize_t end,
                     const Py_ssize_t* corner, real fraction_y, real fraction_x, real factor,
                     real* column) noexcept nogil:
    """The part of a column that belongs to a tap and to the channels of an offset group."""
    cdef Py_ssize_t group, stop
    # The channels of an offset group may belong to several groups, and the other way round.
    while channel < end:
        group = channel // step.width
        stop = min(end, (group + 1) * step.width)
        blend_run(map + channel, corner, stop - channel, fraction_y, fraction_x, factor,
                  column + group * step.block * step.stride + tap * step.width + channel - group * step.width)
        channel = stop


cdef void sample_column(const Step* step, Py_ssize_t image, Py_ssize_t position, real* column) noexcept nogil:
    """The column of one position: a run of channels for each tap, apart for each group."""
    cdef const DeformConv* conv = step.conv
    cdef const real* map = step.copies + image * (step.pixels + 1) * conv.channels
    cdef Py_ssize_t shared = conv.channels // conv.offset_groups
    cdef Py_ssize_t y = position // conv.out_width, x = position % conv.out_width
    cdef Py_ssize_t group, tap, plane, top, bottom, left, right
    cdef const real* offset
    cdef real fraction_y, fraction_x, factor
    cdef Py_ssize_t[4] corner
    for group in range(conv.offset_groups):
        for tap in range(step.taps):
            plane = ((step.first + image) * conv.offset_groups + group) * step.taps + tap
            offset = conv.offset + 2 * plane * step.positions + position
            factor = conv.mask[plane * step.positions + position] if conv.mask else 1
            top, bottom, fraction_y = linear_taps(
                deformed(y, tap // conv.kernel_width, conv.stride[0], conv.padding[0], conv.dilation[0], offset[0]),
                conv.height)
            left, right, fraction_x = linear_taps(
                deformed(x, tap % conv.kernel_width, conv.stride[1], conv.padding[1], conv.dilation[1],
                         offset[step.positions]),
                conv.width)
            corner[0] = corner_at(step, top, left)
            corner[1] = corner_at(step, top, right)
            corner[2] = corner_at(step, bottom, left)
            corner[3] = corner_at(step, bottom, right)
            sample_tap(step, map, tap, group * shared, (group + 1) * shared, corner, fraction_y, fraction_x, factor,
                       column)
