"""cummax and cummin along the middle axis of (outer, length, inner)."""

from numba.extending import register_jitable

from detops._core.cumulative import takes_over_max, takes_over_min
from detops._numba.parallel import jit, parallel_for


@register_jitable
def scan_run(item, x, smallest, values, indices):
    """One item is one run along the axis. The CUDA kernel calls this too."""
    inner = x.shape[2]
    row, column = item // inner, item % inner
    best = x[row, 0, column]
    at = 0
    for i in range(x.shape[1]):
        candidate = x[row, i, column]
        if takes_over_min(candidate, best) if smallest else takes_over_max(candidate, best):
            best = candidate
            at = i
        values[row, i, column] = best
        indices[row, i, column] = at


@jit
def scan(begin, end, x, smallest, values, indices):
    """Runs from begin to end."""
    for item in range(begin, end):
        scan_run(item, x, smallest, values, indices)


def cumulative(x, smallest, values, indices):
    """Kernel of cummax and cummin. The results may have another shape than x."""
    outer, length, inner = x.shape
    writes = (values.reshape(x.shape), indices.reshape(x.shape))
    parallel_for(scan, outer * inner, 1 + 65536 // length, (x, smallest), *writes)
