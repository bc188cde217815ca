"""instance_norm over (instances, size): each instance is read once for its moments, and once more to be written."""

cimport cython
from libc.math cimport sqrt
from libc.string cimport memcpy

# Not scalar.pxi: real, in which moments are taken, is a double in every build here; a mean far from 0 needs the digits.
cdef extern from *:
    """
    typedef DETOPS_ELEMENT detops_element;
    """
    ctypedef double element "detops_element"
ctypedef double real

include "buffers.pxi"
include "parallel_for.pxi"
include "stream.pxi"
include "instance_norm.pxi"
include "../_core/normalization.py"


cdef enum:
    # Elements whose moments are taken together.
    BLOCK = 1024
    # Sums that run side by side, so that they can be vectors.
    LANES = 32


cdef inline real total(const real* sums) noexcept nogil:
    cdef real[LANES] left
    cdef Py_ssize_t half = LANES, j
    memcpy(left, sums, sizeof(left))
    while half > 1:
        half //= 2
        for j in range(half):
            left[j] += left[j + half]
    return left[0]


cdef inline void moments_of_block(const element* x, Py_ssize_t count, real* mean, real* spread) noexcept nogil:
    """Mean and spread of up to BLOCK elements."""
    cdef real[LANES] sums, squares
    cdef Py_ssize_t whole = count - count % LANES
    cdef Py_ssize_t i, j
    cdef real origin = x[0], apart, sum = 0, sum_of_squares = 0
    if whole == 0:
        for j in range(count):
            apart = x[j] - origin
            sum += apart
            sum_of_squares += apart * apart
        mean[0], spread[0] = shifted_moments(count, origin, sum, sum_of_squares)
        return
    for j in range(LANES):
        apart = x[whole + j] - origin if whole + j < count else 0
        sums[j] = apart
        squares[j] = apart * apart
    i = 0
    while i < whole:
        for j in range(LANES):
            apart = x[i + j] - origin
            sums[j] += apart
            squares[j] += apart * apart
        i += LANES
    mean[0], spread[0] = shifted_moments(count, origin, total(sums), total(squares))


cdef inline void moments_of(const element* x, Py_ssize_t size, real* mean, real* spread) noexcept nogil:
    """Mean and spread of an instance, block after block."""
    cdef real count = 0, block_mean, block_spread
    cdef Py_ssize_t start = 0, length
    mean[0] = 0
    spread[0] = 0
    while start < size:
        length = min(size - start, <Py_ssize_t> BLOCK)
        moments_of_block(x + start, length, &block_mean, &block_spread)
        count, mean[0], spread[0] = merged_moments(count, mean[0], spread[0], length, block_mean, block_spread)
        start += length


cdef int normalize_instances(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is one instance."""
    cdef const InstanceNorm* norm = <const InstanceNorm*> arguments
    cdef element[BLOCK] staged
    cdef bint streamed = norm.instances * norm.size * <Py_ssize_t> sizeof(element) >= STREAM_FROM_BYTES
    cdef const element* x
    cdef element* out
    cdef real mean, spread
    cdef element mean_high, mean_low, factor, bias
    cdef Py_ssize_t instance, channel, start, length, j
    for instance in range(begin, end):
        channel = instance % norm.channels
        x = norm.x + instance * norm.size
        out = norm.out + instance * norm.size
        moments_of(x, norm.size, &mean, &spread)
        mean_high = <element> mean
        mean_low = <element> (mean - mean_high)
        factor = <element> normal_factor(
            norm.size, spread, norm.epsilon, 1 if norm.scale == NULL else norm.scale[channel])
        bias = 0 if norm.bias == NULL else norm.bias[channel]
        start = 0
        while start < norm.size:
            length = min(norm.size - start, <Py_ssize_t> BLOCK)
            for j in range(length):
                staged[j] = normalized(x[start + j], mean_high, mean_low, factor, bias)
            if streamed:
                stream(out + start, staged, length * sizeof(element))
            else:
                memcpy(out + start, staged, length * sizeof(element))
            start += length
    stream_end()
    return 0


cdef api int instance_norm_operator(const void* arguments, const Executor* executor) noexcept nogil:
    cdef const InstanceNorm* norm = <const InstanceNorm*> arguments
    return executor.parallel_for(executor, normalize_instances, norm, norm.instances, 1 + 16384 // norm.size)


def instance_norm(x, scale, bias, double epsilon, out):
    cdef InstanceNorm norm
    norm.x = <const element*> address(x)
    norm.scale = <const element*> address(scale)
    norm.bias = <const element*> address(bias)
    norm.out = <element*> mutable(out)
    norm.channels, norm.size = x.shape[1:]
    norm.instances = x.shape[0] * norm.channels
    norm.epsilon = epsilon
    execute(instance_norm_operator, &norm)
