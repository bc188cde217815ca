# Where a region of interest lies on a map, and how it divides into bins and samples.
import cython

if not cython.compiled:
    from detops._core.scalar import real, typed


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def roi_side(low: real, high: real, spatial_scale: real, aligned: cython.bint) -> tuple[real, real]:
    """Start and length of a roi's side on the map: half an element back where aligned, else at least one long."""
    shift: real = typed(0.5, low) if aligned else typed(0, low)
    start: real = low * spatial_scale - shift
    length: real = high * spatial_scale - shift - start
    if not aligned and length < typed(1, low):
        length = typed(1, low)
    return start, length


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def is_finite(x: real) -> cython.bint:
    """Whether x is neither NaN nor infinite."""
    return x - x == typed(0, x)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def roi_grid(length: real, bins: cython.Py_ssize_t, sampling_ratio: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Samples of a bin along a side: the ratio, or with 0 as many as a bin has elements.

    Above 2**24 the count says no more than that, so that it fits an index; NaN counts as no length.
    """
    size: real = length / typed(bins, length)
    count: cython.Py_ssize_t
    if sampling_ratio > 0:
        return sampling_ratio
    if not size > typed(0, length):
        return 0
    if size > typed(16777216, length):
        return 16777217
    count = int(size)
    return count + 1 if typed(count, length) < size else count


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def grid_points(rows: cython.Py_ssize_t, columns: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Points of a grid, or 2**24 + 1 if they are more."""
    if rows < 1 or columns < 1:
        return 0
    if rows > 16777216 or columns > 16777216 or rows * columns > 16777216:
        return 16777217
    return rows * columns


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def sample_position(
    start: real,
    length: real,
    bins: cython.Py_ssize_t,
    bin_index: cython.Py_ssize_t,
    grid: cython.Py_ssize_t,
    sample: cython.Py_ssize_t,
) -> real:
    """Position of a sample of a bin on the map; it never falls from one sample of a bin to the next, if length > 0."""
    size: real = length / typed(bins, start)
    within: real = (typed(sample, start) + typed(0.5, start)) * size / typed(grid, start)
    return start + typed(bin_index, start) * size + within


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def larger(best: real, candidate: real) -> real:
    """Maximum that carries a NaN."""
    return candidate if candidate > best or candidate != candidate else best


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def largest_part(
    a: real, b: real, c: real, d: real, weight_a: real, weight_b: real, weight_c: real, weight_d: real
) -> real:
    """Largest of four weighted corners: what ONNX takes the maximum of."""
    return larger(larger(weight_a * a, weight_b * b), larger(weight_c * c, weight_d * d))
