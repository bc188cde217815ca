"""cummax and cummin along the middle axis of (outer, length, inner)."""

from detops._core.cumulative import takes_over_max, takes_over_min
from detops._numba.spread import jit, spread


@jit
def scan(begin, end, x, smallest, values, indices):
    """One item is one run along the axis."""
    inner = x.shape[2]
    for item in range(begin, end):
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


def cumulative(x, smallest, values, indices):
    """Kernel of cummax and cummin."""
    outer, length, inner = x.shape
    spread(scan, outer * inner, 1 + 65536 // length, (x, smallest), values, indices)
