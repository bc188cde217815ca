"""cummax and cummin along the middle axis of (outer, length, inner)."""

include "scalar.pxi"
include "buffers.pxi"
include "spread.pxi"
include "cumulative.pxi"
include "../_core/cumulative.py"


cdef enum:
    # Columns that are scanned together: their running extremes stay in the first-level cache.
    COLUMNS = 512


cdef int scan_rows(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is one row of a contiguous axis."""
    cdef const Cumulative* scan = <const Cumulative*> arguments
    cdef Py_ssize_t row, i, start, at
    cdef element best, candidate
    for row in range(begin, end):
        start = row * scan.length
        best = scan.x[start]
        at = 0
        for i in range(scan.length):
            candidate = scan.x[start + i]
            if takes_over_min(candidate, best) if scan.smallest else takes_over_max(candidate, best):
                best = candidate
                at = i
            scan.values[start + i] = best
            scan.indices[start + i] = at
    return 0


cdef int scan_columns(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is one block of columns: row after row, each compared with the row of results before it."""
    cdef const Cumulative* scan = <const Cumulative*> arguments
    cdef Py_ssize_t blocks = (scan.inner + COLUMNS - 1) // COLUMNS
    cdef Py_ssize_t item, i, j, first, width, row, before
    cdef element candidate
    cdef bint newer
    for item in range(begin, end):
        first = (item % blocks) * COLUMNS
        width = min(scan.inner - first, <Py_ssize_t> COLUMNS)
        row = (item // blocks) * scan.length * scan.inner + first
        for j in range(width):
            scan.values[row + j] = scan.x[row + j]
            scan.indices[row + j] = 0
        for i in range(1, scan.length):
            before = row
            row += scan.inner
            for j in range(width):
                candidate = scan.x[row + j]
                newer = (takes_over_min(candidate, scan.values[before + j]) if scan.smallest
                         else takes_over_max(candidate, scan.values[before + j]))
                scan.values[row + j] = candidate if newer else scan.values[before + j]
                scan.indices[row + j] = i if newer else scan.indices[before + j]
    return 0


cdef api int cumulative_operator(const void* arguments, const Team* team) noexcept nogil:
    cdef const Cumulative* scan = <const Cumulative*> arguments
    if scan.inner == 1:
        return team.spread(team, scan_rows, scan, scan.outer, 1 + 32768 // scan.length)
    return team.spread(team, scan_columns, scan, scan.outer * ((scan.inner + COLUMNS - 1) // COLUMNS), 1)


def cumulative(x, bint smallest, values, indices):
    cdef Cumulative scan
    scan.x = <const element*> data(x)
    scan.values = <element*> mutable(values)
    scan.indices = <long long*> mutable(indices)
    scan.outer, scan.length, scan.inner = x.shape
    scan.smallest = smallest
    execute(cumulative_operator, &scan)
