"""scatter_nd over (slots, row) in memory; the check of its indices."""

from libc.string cimport memcpy

include "scalar.pxi"
include "buffers.pxi"
include "parallel_for.pxi"
include "stream.pxi"
include "scatter_nd.pxi"
include "../_core/scatter.py"


cdef enum:
    # Bytes of a row from which on it pays that every thread looks at all tuples for those in its slots.
    SHARED_FROM_BYTES = 64
    # Bytes of updates, and elements to copy or check, that are worth another thread.
    GRAIN = 1 << 17
    COPY_GRAIN = 1 << 19


cdef struct Plan:
    const Scatter* scatter
    # Slots of a part.
    Py_ssize_t share


cdef int check_loop(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is one index tuple."""
    cdef const Scatter* scatter = <const Scatter*> arguments
    cdef Py_ssize_t i, axis
    cdef Py_ssize_t depth = scatter.depth
    cdef const long long* indices
    cdef long long length
    cdef int bad = 0
    for axis in range(depth):
        indices = scatter.indices + axis
        length = scatter.lengths[axis]
        for i in range(begin, end):
            bad |= not in_range(indices[i * depth], length)
    if bad:
        scatter.bad[0] = 1
    return 0


cdef int copy_loop(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is one element."""
    cdef const Scatter* scatter = <const Scatter*> arguments
    memcpy(scatter.out + begin, scatter.data + begin, (end - begin) * sizeof(element))
    return 0


cdef inline void scatter_part(
    const Scatter* scatter, Py_ssize_t reduction, Py_ssize_t first, Py_ssize_t last
) noexcept nogil:
    """The updates of the slots [first, last), in their order. The compiler makes a loop per constant reduction."""
    cdef Py_ssize_t depth = scatter.depth, row = scatter.row
    cdef const long long* tuple = scatter.indices
    cdef const element* update = scatter.updates
    cdef element* target
    cdef Py_ssize_t i, j, axis, slot
    for i in range(scatter.tuples):
        slot = 0
        for axis in range(depth):
            slot = next_offset(slot, tuple[axis], scatter.lengths[axis])
        if first <= slot < last:
            target = scatter.out + slot * row
            if row == 1:
                target[0] = reduced(reduction, target[0], update[0])
            elif reduction == Reduction.NONE:
                memcpy(target, update, row * sizeof(element))
            else:
                for j in range(row):
                    target[j] = reduced(reduction, target[j], update[j])
        tuple += depth
        update += row


cdef int scatter_parts(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is a range of slots: it takes its updates in their order, whatever the other parts do."""
    cdef const Plan* plan = <const Plan*> arguments
    cdef const Scatter* scatter = plan.scatter
    cdef Py_ssize_t part, first, last
    for part in range(begin, end):
        first = part * plan.share
        last = min(first + plan.share, scatter.slots)
        if scatter.reduction == Reduction.NONE:
            scatter_part(scatter, Reduction.NONE, first, last)
        elif scatter.reduction == Reduction.ADD:
            scatter_part(scatter, Reduction.ADD, first, last)
        elif scatter.reduction == Reduction.MUL:
            scatter_part(scatter, Reduction.MUL, first, last)
        elif scatter.reduction == Reduction.MIN:
            scatter_part(scatter, Reduction.MIN, first, last)
        else:
            scatter_part(scatter, Reduction.MAX, first, last)
    return 0


cdef api int scatter_check_operator(const void* arguments, const Executor* executor) noexcept nogil:
    return executor.parallel_for(executor, check_loop, arguments, (<const Scatter*> arguments).tuples, COPY_GRAIN)


cdef api int scatter_nd_operator(const void* arguments, const Executor* executor) noexcept nogil:
    """The indices must have passed the check."""
    cdef const Scatter* scatter = <const Scatter*> arguments
    cdef Plan plan
    cdef Py_ssize_t parts = 1
    plan.scatter = scatter
    if scatter.row * <Py_ssize_t> sizeof(element) >= SHARED_FROM_BYTES:
        parts = min(<Py_ssize_t> executor.threads, 1 + scatter.tuples * scatter.row * <Py_ssize_t> sizeof(element) // GRAIN)
    parts = max(min(parts, scatter.slots), <Py_ssize_t> 1)
    plan.share = (scatter.slots + parts - 1) // parts
    if scatter.out != scatter.data:
        executor.parallel_for(executor, copy_loop, scatter, scatter.slots * scatter.row, COPY_GRAIN)
    return executor.parallel_for(executor, scatter_parts, &plan, parts, 1)


def scatter_check(indices, lengths, bad):
    cdef Scatter scatter
    scatter.indices = <const long long*> address(indices)
    scatter.lengths = <const long long*> address(lengths)
    scatter.bad = <long long*> mutable(bad)
    scatter.tuples, scatter.depth = indices.shape
    execute(scatter_check_operator, &scatter)


def scatter_nd(data, indices, updates, lengths, Py_ssize_t reduction, out):
    cdef Scatter scatter
    scatter.data = <const element*> address(data)
    scatter.indices = <const long long*> address(indices)
    scatter.updates = <const element*> address(updates)
    scatter.out = <element*> mutable(out)
    scatter.lengths = <const long long*> address(lengths)
    scatter.slots, scatter.row = out.shape
    scatter.tuples, scatter.depth = indices.shape
    scatter.reduction = reduction
    execute(scatter_nd_operator, &scatter)
