"""cummax and cummin along the middle axis of (outer, length, inner)."""

from detops._cuda.device import cuda, jit, launch
from detops._numba.cumulative import scan_run


@jit
def scan(x, smallest, values, indices):
    """One item is one run along the axis."""
    for item in range(cuda.grid(1), x.shape[0] * x.shape[2], cuda.gridsize(1)):
        scan_run(item, x, smallest, values, indices)


def cumulative(x, smallest, values, indices):
    """Kernel of cummax and cummin. The results may have another shape than x."""
    launch(scan, x.shape[0] * x.shape[2], x, smallest, values.reshape(x.shape), indices.reshape(x.shape))
