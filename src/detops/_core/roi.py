# Where a region of interest lies on a map, and how it divides into bins and samples.
import cython

if not cython.compiled:
    from detops._core.scalar import product, quotient, real, typed


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def roi_side(low: real, high: real, spatial_scale: real, aligned: cython.bint) -> tuple[real, real]:
    """Start and length of a roi's side on the map: half an element back where aligned, else at least one long."""
    shift: real = typed(0.5, low) if aligned else typed(0, low)
    start: real = product(low, spatial_scale) - shift
    length: real = product(high, spatial_scale) - shift - start
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
def roi_grid(length: real, bins: cython.Py_ssize_t, ratio: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Samples of a bin along a side: the ratio, or with 0 as many as a bin has elements.

    Above 2**24 the count says no more than that, so that it fits an index; NaN counts as no length.
    """
    size: real = length / typed(bins, length)
    count: cython.Py_ssize_t
    if ratio > 0:
        return ratio
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
def exceeds_points(
    rows: cython.Py_ssize_t, grid_y: cython.Py_ssize_t, columns: cython.Py_ssize_t, grid_x: cython.Py_ssize_t
) -> cython.bint:
    """Whether the bins of a roi, each sampled on a grid, have more than 2**24 points together."""
    most: cython.Py_ssize_t = 16777216
    if rows < 1 or grid_y < 1 or columns < 1 or grid_x < 1:
        return False
    if rows > most or grid_y > most or columns > most or grid_x > most:
        return True
    return rows * grid_y > most or columns * grid_x > most or rows * grid_y * columns * grid_x > most


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
    inner: real = product(typed(sample, start) + typed(0.5, start), size) / typed(grid, start)
    return start + product(typed(bin_index, start), size) + inner


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def larger(best: real, candidate: real) -> real:
    """Maximum that carries a NaN."""
    # Two choices without "or", which would be a branch that keeps compilers from using vectors.
    higher: real = candidate if candidate > best else best
    return higher if candidate == candidate else candidate


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def largest_part(
    a: real, b: real, c: real, d: real, weight_a: real, weight_b: real, weight_c: real, weight_d: real
) -> real:
    """Largest of four weighted corners: what ONNX takes the maximum of."""
    return larger(larger(weight_a * a, weight_b * b), larger(weight_c * c, weight_d * d))


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def round_away(x: real) -> cython.Py_ssize_t:
    """x rounded to a whole number, halves away from 0; what is beyond 2**30, and NaN, becomes 2**30 or -2**30."""
    limit: real = typed(1073741824, x)
    half: real = typed(0.5, x)
    whole: cython.Py_ssize_t
    if not x > -limit:
        return -1073741824
    if x >= limit:
        return 1073741824
    whole = int(x)
    if x - typed(whole, x) >= half:
        return whole + 1
    return whole - 1 if typed(whole, x) - x >= half else whole


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def pool_side(low: real, high: real, spatial_scale: real) -> tuple[cython.Py_ssize_t, cython.Py_ssize_t]:
    """First element and number of elements of a roi's side, both ends inclusive; at least one."""
    start: cython.Py_ssize_t = round_away(product(low, spatial_scale))
    size: cython.Py_ssize_t = round_away(product(high, spatial_scale)) - start + 1
    return start, size if size > 1 else 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def clamp_index(position: cython.Py_ssize_t, length: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """A position moved to the range from 0 to length. Not by min() and max(): Numba's CUDA target cannot nest them."""
    if position < 0:
        return 0
    return length if position > length else position


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def pool_range(
    start: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
    bins: cython.Py_ssize_t,
    bin_index: cython.Py_ssize_t,
    length: cython.Py_ssize_t,
) -> tuple[cython.Py_ssize_t, cython.Py_ssize_t]:
    """Elements [first, last) of a bin that lie on the map; an empty range for an index or a size that no bin has."""
    if bins < 1 or bin_index < 0 or size < 0:
        return 0, 0
    first: cython.Py_ssize_t = start + quotient(bin_index * size, bins)
    last: cython.Py_ssize_t = start + quotient((bin_index + 1) * size + bins - 1, bins)
    return clamp_index(first, length), clamp_index(last, length)
