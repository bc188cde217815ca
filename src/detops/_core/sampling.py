# Where a sampling point falls among the elements of a map, and how it weighs them.
import cython

if not cython.compiled:
    from detops._core.scalar import real, typed


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def floor_split(x: real) -> tuple[cython.Py_ssize_t, real]:
    """Floor of x and what is above it. x must be finite and within the range of an index: check before."""
    low: cython.Py_ssize_t = int(x)
    if typed(low, x) > x:
        low -= 1
    return low, x - typed(low, x)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def bilinear_weights(fraction_y: real, fraction_x: real) -> tuple[real, real, real, real]:
    """Weights of the corners (low y, low x), (low y, high x), (high y, low x), (high y, high x)."""
    rest_y: real = typed(1, fraction_y) - fraction_y
    rest_x: real = typed(1, fraction_x) - fraction_x
    return rest_y * rest_x, rest_y * fraction_x, fraction_y * rest_x, fraction_y * fraction_x


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def blend(a: real, b: real, c: real, d: real, weight_a: real, weight_b: real, weight_c: real, weight_d: real) -> real:
    """Sum of four weighted corners, always in this order."""
    return weight_a * a + weight_b * b + weight_c * c + weight_d * d


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def bilinear_taps(
    position: real, length: cython.Py_ssize_t
) -> tuple[cython.bint, cython.Py_ssize_t, cython.Py_ssize_t, real]:
    """Whether a position counts on an axis, the elements below and above it, and the weight of the one above.

    A position up to one element outside is moved to the border; further out it does not count.
    """
    zero: real = typed(0, position)
    if length < 1 or not (position >= typed(-1, position) and position <= typed(length, position)):
        return False, 0, 0, zero
    low: cython.Py_ssize_t
    fraction: real
    low, fraction = floor_split(position if position > zero else zero)
    if low >= length - 1:
        return True, length - 1, length - 1, zero
    return True, low, low + 1, fraction
