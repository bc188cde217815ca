"""cummax and cummin along the middle axis of (outer, length, inner)."""

from numba.extending import register_jitable

from detops._core.cumulative import takes_over_max, takes_over_min
from detops._numba.parallel import inner, jit, parallel_for

# Runs beside each other from which on they are scanned together.
BESIDE = 8


@register_jitable
def scan_run(item, x, smallest, values, indices):
    """One item is one run along the axis. The CUDA kernel calls this too."""
    width = x.shape[2]
    row, column = item // width, item % width
    best = x[row, 0, column]
    at = 0
    for i in range(x.shape[1]):
        candidate = x[row, i, column]
        if takes_over_min(candidate, best) if smallest else takes_over_max(candidate, best):
            best = candidate
            at = i
        values[row, i, column] = best
        indices[row, i, column] = at


@inner
def scan_beside(row, begin, end, x, smallest, values, indices):
    """Runs that lie beside each other, all of them by one element at a time: memory is read and written in order."""
    for column in range(begin, end):
        values[row, 0, column] = x[row, 0, column]
        indices[row, 0, column] = 0
    for i in range(1, x.shape[1]):
        for column in range(begin, end):
            candidate, best = x[row, i, column], values[row, i - 1, column]
            taken = takes_over_min(candidate, best) if smallest else takes_over_max(candidate, best)
            values[row, i, column] = candidate if taken else best
            indices[row, i, column] = i if taken else indices[row, i - 1, column]


@jit
def scan(begin, end, x, smallest, values, indices):
    """Runs from begin to end."""
    width = x.shape[2]
    if width < BESIDE:
        for item in range(begin, end):
            scan_run(item, x, smallest, values, indices)
        return
    item = begin
    while item < end:
        row, column = item // width, item % width
        count = min(end - item, width - column)
        scan_beside(row, column, column + count, x, smallest, values, indices)
        item += count


def cumulative(x, smallest, values, indices):
    """Kernel of cummax and cummin. The results may have another shape than x."""
    outer, length, width = x.shape
    writes = (values.reshape(x.shape), indices.reshape(x.shape))
    parallel_for(scan, outer * width, 1 + 65536 // length, (x, smallest), *writes)
