"""cummax and cummin along the middle axis of (outer, length, inner)."""

from libc.string cimport memcpy

include "scalar.pxi"
include "buffers.pxi"
include "parallel_for.pxi"
include "allocate.pxi"
include "stream.pxi"
include "cumulative.pxi"
include "../_core/cumulative.py"


cdef enum:
    # Columns that are scanned together: their running extremes stay in the first-level cache.
    COLUMNS = 512
    # Results that are gathered before they are streamed out.
    STAGE = 1024
    # Elements of a row that are first asked whether any of them is a new extreme.
    RUN = 64
    # Elements that are worth another thread.
    GRAIN = 32768


cdef struct Plan:
    # An item is one chunk of rows of one block of columns of one outer index.
    const Cumulative* scan
    Py_ssize_t blocks
    Py_ssize_t chunks
    Py_ssize_t rows
    # The extremes of each chunk, (items, COLUMNS); NULL where a chunk is the whole length.
    element* best
    long long* at
    bint streamed


cdef inline void advance(
    const element* x, Py_ssize_t width, long long i, bint smallest,
    const element* before, const long long* before_at, element* best, long long* at,
) noexcept nogil:
    """One row: the running extremes before it become those with it."""
    cdef Py_ssize_t j
    cdef element candidate, current
    cdef long long current_at
    cdef bint newer
    for j in range(width):
        # Every load is unconditional: that is what lets a compiler choose among vectors.
        candidate, current, current_at = x[j], before[j], before_at[j]
        newer = takes_over_min(candidate, current) if smallest else takes_over_max(candidate, current)
        best[j] = candidate if newer else current
        at[j] = i if newer else current_at


cdef inline void advance_along(
    const element* x, Py_ssize_t length, long long i, bint smallest, element before, long long before_at,
    element* values, long long* indices,
) noexcept nogil:
    """Several rows of one column."""
    cdef Py_ssize_t k = 0, j, end
    cdef int newer
    while k < length:
        end = min(k + RUN, length)
        newer = 0
        for j in range(k, end):
            newer |= takes_over_min(x[j], before) if smallest else takes_over_max(x[j], before)
        if not newer:
            # A long way down the axis most runs end here.
            for j in range(k, end):
                values[j] = before
                indices[j] = before_at
        else:
            for j in range(k, end):
                if takes_over_min(x[j], before) if smallest else takes_over_max(x[j], before):
                    before = x[j]
                    before_at = i + j
                values[j] = before
                indices[j] = before_at
        k = end


cdef int scan_rows(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is one row of a contiguous axis."""
    cdef const Plan* plan = <const Plan*> arguments
    cdef const Cumulative* scan = plan.scan
    cdef element[STAGE] staged
    cdef long long[STAGE] staged_at
    cdef Py_ssize_t row, start, i, count
    cdef element best
    cdef long long at
    for row in range(begin, end):
        start = row * scan.length
        if not plan.streamed:
            advance_along(scan.x + start, scan.length, 0, scan.smallest, scan.x[start], 0,
                          scan.values + start, scan.indices + start)
            continue
        best, at = scan.x[start], 0
        i = 0
        while i < scan.length:
            count = min(scan.length - i, <Py_ssize_t> STAGE)
            advance_along(scan.x + start + i, count, i, scan.smallest, best, at, staged, staged_at)
            best, at = staged[count - 1], staged_at[count - 1]
            stream(scan.values + start + i, staged, count * sizeof(element))
            stream(scan.indices + start + i, staged_at, count * sizeof(long long))
            i += count
    stream_end()
    return 0


cdef inline Py_ssize_t locate(
    const Plan* plan, Py_ssize_t item, Py_ssize_t* row, Py_ssize_t* width
) noexcept nogil:
    """Where the item's first element lies; its first row and its number of columns."""
    cdef Py_ssize_t part = item // plan.chunks
    cdef Py_ssize_t column = part % plan.blocks * COLUMNS
    row[0] = item % plan.chunks * plan.rows
    width[0] = min(plan.scan.inner - column, <Py_ssize_t> COLUMNS)
    return (part // plan.blocks * plan.scan.length + row[0]) * plan.scan.inner + column


cdef int reduce_chunks(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """The extremes of each chunk by itself."""
    cdef const Plan* plan = <const Plan*> arguments
    cdef const Cumulative* scan = plan.scan
    cdef element[2][COLUMNS] best
    cdef long long[2][COLUMNS] at
    cdef Py_ssize_t item, i, j, start, row, width
    cdef int now
    for item in range(begin, end):
        # Nobody asks for the extremes of the last chunk.
        if (item + 1) % plan.chunks == 0:
            continue
        start = locate(plan, item, &row, &width)
        now = 0
        memcpy(best[0], scan.x + start, width * sizeof(element))
        for j in range(width):
            at[0][j] = row
        for i in range(1, plan.rows):
            advance(scan.x + start + i * scan.inner, width, row + i, scan.smallest,
                    best[now], at[now], best[1 - now], at[1 - now])
            now = 1 - now
        memcpy(plan.best + item * COLUMNS, best[now], width * sizeof(element))
        memcpy(plan.at + item * COLUMNS, at[now], width * sizeof(long long))
    return 0


cdef inline void carry(
    const Plan* plan, Py_ssize_t item, Py_ssize_t width, element* best, long long* at
) noexcept nogil:
    """The extremes of all chunks before the item's."""
    cdef Py_ssize_t first = item - item % plan.chunks
    cdef Py_ssize_t chunk, j
    cdef bint newer
    memcpy(best, plan.best + first * COLUMNS, width * sizeof(element))
    memcpy(at, plan.at + first * COLUMNS, width * sizeof(long long))
    for chunk in range(first + 1, item):
        for j in range(chunk * COLUMNS, chunk * COLUMNS + width):
            newer = (takes_over_min(plan.best[j], best[j - chunk * COLUMNS]) if plan.scan.smallest
                     else takes_over_max(plan.best[j], best[j - chunk * COLUMNS]))
            if newer:
                best[j - chunk * COLUMNS] = plan.best[j]
                at[j - chunk * COLUMNS] = plan.at[j]


cdef int scan_chunks(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Row after row, each compared with the row of results before it."""
    cdef const Plan* plan = <const Plan*> arguments
    cdef const Cumulative* scan = plan.scan
    cdef element[COLUMNS] best
    cdef long long[COLUMNS] at
    cdef element[STAGE] staged
    cdef long long[STAGE] staged_at
    cdef const element* before
    cdef const long long* before_at
    cdef element* values
    cdef long long* indices
    cdef Py_ssize_t item, i, j, k, start, row, width, rows, group, count, pitch
    for item in range(begin, end):
        start = locate(plan, item, &row, &width)
        rows = min(plan.rows, scan.length - row)
        if row > 0:
            carry(plan, item, width, best, at)
        else:
            memcpy(best, scan.x + start, width * sizeof(element))
            for j in range(width):
                at[j] = 0
        before, before_at = best, at
        # Rows that are streamed together should lie side by side in the result.
        group = rows if not plan.streamed else STAGE // width if width == scan.inner else 1
        pitch = width if plan.streamed else scan.inner
        i = row
        while i < row + rows:
            count = min(group, row + rows - i)
            values = &staged[0] if plan.streamed else scan.values + start
            indices = &staged_at[0] if plan.streamed else scan.indices + start
            for k in range(count):
                advance(scan.x + start + k * scan.inner, width, i + k, scan.smallest, before, before_at,
                        values + k * pitch, indices + k * pitch)
                before, before_at = values + k * pitch, indices + k * pitch
            if plan.streamed:
                stream(scan.values + start, staged, count * width * sizeof(element))
                stream(scan.indices + start, staged_at, count * width * sizeof(long long))
                memcpy(best, staged + (count - 1) * width, width * sizeof(element))
                memcpy(at, staged_at + (count - 1) * width, width * sizeof(long long))
                before, before_at = best, at
            start += count * scan.inner
            i += count
    stream_end()
    return 0


cdef inline bint worth_streaming(const Cumulative* scan) noexcept nogil:
    """Whether the indices, the larger of the results, are large, and lie in pieces that are not too small."""
    return (scan.outer * scan.length * scan.inner * <Py_ssize_t> sizeof(long long) >= STREAM_FROM_BYTES
            and scan.length * scan.inner >= STAGE)


cdef api int cumulative_operator(const void* arguments, const Executor* executor) noexcept nogil:
    cdef const Cumulative* scan = <const Cumulative*> arguments
    cdef Py_ssize_t width = min(scan.inner, <Py_ssize_t> COLUMNS)
    cdef Plan plan
    cdef int failed = 0
    plan.scan = scan
    plan.streamed = worth_streaming(scan)
    if scan.inner == 1:
        return executor.parallel_for(executor, scan_rows, &plan, scan.outer, 1 + GRAIN // scan.length)
    plan.blocks = (scan.inner + COLUMNS - 1) // COLUMNS
    plan.chunks = 1
    if scan.outer * plan.blocks < executor.threads:
        plan.chunks = max(min(<Py_ssize_t> 4 * executor.threads, scan.length * width // GRAIN), <Py_ssize_t> 1)
    plan.rows = (scan.length + plan.chunks - 1) // plan.chunks
    plan.chunks = (scan.length + plan.rows - 1) // plan.rows
    cdef Py_ssize_t items = scan.outer * plan.blocks * plan.chunks
    cdef Py_ssize_t grain = 1 + GRAIN // (plan.rows * width)
    plan.best = NULL
    plan.at = NULL
    if plan.chunks > 1:
        plan.best = <element*> allocate(items * COLUMNS * sizeof(element))
        plan.at = <long long*> allocate(items * COLUMNS * sizeof(long long))
        failed = -1 if plan.best == NULL or plan.at == NULL else 0
        if not failed:
            failed = executor.parallel_for(executor, reduce_chunks, &plan, items, grain)
    if not failed:
        failed = executor.parallel_for(executor, scan_chunks, &plan, items, grain)
    free(plan.best)
    free(plan.at)
    return failed


def cumulative(x, bint smallest, values, indices):
    cdef Cumulative scan
    scan.x = <const element*> address(x)
    scan.values = <element*> mutable(values)
    scan.indices = <long long*> mutable(indices)
    scan.outer, scan.length, scan.inner = x.shape
    scan.smallest = smallest
    execute(cumulative_operator, &scan)
