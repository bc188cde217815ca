"""Weighted sums of samples from maps of several sizes, whose channels are innermost."""

from libc.string cimport memset

include "scalar.pxi"
include "buffers.pxi"
include "parallel_for.pxi"
include "prefetch.pxi"
include "block_channels.pxi"
include "multi_scale_deform_attn.pxi"
include "../_core/sampling.py"


cdef enum:
    # Samples that are found together, and then added up in one block of channels after the other.
    SAMPLES = 64
    # Sampled numbers that are worth another thread.
    GRAIN = 32768


cdef struct Samples:
    # Elements from the first of the maps to the four neighbors of each sample; OUTSIDE for none, which counts as 0.
    Py_ssize_t[SAMPLES][4] corners
    real[SAMPLES][4] weights
    real[SAMPLES] shares
    Py_ssize_t count

cdef enum:
    OUTSIDE = -1


cdef inline Py_ssize_t corner_at(Py_ssize_t start, Py_ssize_t width, Py_ssize_t y, Py_ssize_t x,
                                 Py_ssize_t stride) noexcept nogil:
    return OUTSIDE if y < 0 or x < 0 else (start + y * width + x) * stride


cdef inline void find_samples(const Attention* attention, Py_ssize_t row, Py_ssize_t first,
                              Samples* samples) noexcept nogil:
    """The samples of a query and a head, whose row of weights is given, from the first on."""
    cdef Py_ssize_t stride = attention.heads * attention.channels
    cdef Py_ssize_t i, level, start, top, bottom, left, right, height, width
    cdef const real* location
    cdef real down, along
    for i in range(samples.count):
        level = (first + i) // attention.points
        height, width = attention.shapes[2 * level], attention.shapes[2 * level + 1]
        start = attention.starts[level]
        location = attention.locations + 2 * (row + first + i)
        left, right, along = linear_taps(element_position(location[0], width), width)
        top, bottom, down = linear_taps(element_position(location[1], height), height)
        samples.corners[i][0] = corner_at(start, width, top, left, stride)
        samples.corners[i][1] = corner_at(start, width, top, right, stride)
        samples.corners[i][2] = corner_at(start, width, bottom, left, stride)
        samples.corners[i][3] = corner_at(start, width, bottom, right, stride)
        (samples.weights[i][0], samples.weights[i][1], samples.weights[i][2],
         samples.weights[i][3]) = bilinear_weights(down, along)
        samples.shares[i] = attention.weights[row + first + i]


cdef inline void fetch_ahead(const Samples* samples, const real* maps, Py_ssize_t channels) noexcept nogil:
    """Ask for all that will be read: queries that follow each other often look at parts of a map that are far apart."""
    cdef Py_ssize_t i, j, k
    for i in range(samples.count):
        for j in range(4):
            if samples.corners[i][j] != OUTSIDE:
                k = 0
                while k < channels:
                    prefetch(maps + samples.corners[i][j] + k)
                    k += BLOCK_CHANNELS


cdef inline always_inline add_samples(const Samples* samples, const real* maps, const real* zeros, Py_ssize_t lanes,
                                      real* out) noexcept nogil:
    """Add the samples to as many channels, the first of which `maps` begins with."""
    cdef real[BLOCK_CHANNELS] total
    cdef const real* corner[4]
    cdef Py_ssize_t i, j, k
    for k in range(lanes):
        total[k] = out[k]
    for i in range(samples.count):
        for j in range(4):
            corner[j] = zeros if samples.corners[i][j] == OUTSIDE else maps + samples.corners[i][j]
        for k in range(lanes):
            total[k] += samples.shares[i] * blend(
                corner[0][k], corner[1][k], corner[2][k], corner[3][k],
                samples.weights[i][0], samples.weights[i][1], samples.weights[i][2], samples.weights[i][3])
    for k in range(lanes):
        out[k] = total[k]


cdef void attend(const Attention* attention, Py_ssize_t item, Py_ssize_t head, const real* zeros,
                 Samples* samples) noexcept nogil:
    """One head of one query."""
    cdef Py_ssize_t channels = attention.channels, count = attention.levels * attention.points
    cdef Py_ssize_t row = item * attention.heads + head, first = 0, channel
    cdef const real* maps = attention.value + (
        item // attention.queries * attention.keys * attention.heads + head) * channels
    cdef real* out = attention.out + row * channels
    memset(out, 0, channels * sizeof(real))
    while first < count:
        samples.count = min(count - first, <Py_ssize_t> SAMPLES)
        find_samples(attention, row * count, first, samples)
        fetch_ahead(samples, maps, channels)
        channel = 0
        while channel + BLOCK_CHANNELS <= channels:
            # The compiler makes a loop of its own for the whole block.
            add_samples(samples, maps + channel, zeros, BLOCK_CHANNELS, out + channel)
            channel += BLOCK_CHANNELS
        if channel < channels:
            add_samples(samples, maps + channel, zeros, channels - channel, out + channel)
        first += SAMPLES


cdef int attend_loop(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is one query of one image."""
    cdef const Attention* attention = <const Attention*> arguments
    cdef real[BLOCK_CHANNELS] zeros
    cdef Samples samples
    cdef Py_ssize_t item, head
    memset(zeros, 0, sizeof(zeros))
    for item in range(begin, end):
        for head in range(attention.heads):
            attend(attention, item, head, zeros, &samples)
    return 0


cdef api int multi_scale_deform_attn_operator(const void* arguments, const Executor* executor) noexcept nogil:
    cdef const Attention* attention = <const Attention*> arguments
    cdef Py_ssize_t samples = attention.heads * attention.levels * attention.points
    return executor.parallel_for(executor, attend_loop, attention, attention.images * attention.queries,
                                 1 + GRAIN // (1 + samples * attention.channels))


def multi_scale_deform_attn(value, spatial_shapes, level_start_index, sampling_locations, attention_weights, out):
    cdef Attention attention
    attention.value = <const real*> address(value)
    attention.shapes = <const long long*> address(spatial_shapes)
    attention.starts = <const long long*> address(level_start_index)
    attention.locations = <const real*> address(sampling_locations)
    attention.weights = <const real*> address(attention_weights)
    attention.out = <real*> mutable(out)
    attention.images, attention.keys, attention.heads, attention.channels = value.shape
    attention.queries = attention_weights.shape[1]
    attention.levels, attention.points = attention_weights.shape[3:]
    execute(multi_scale_deform_attn_operator, &attention)
