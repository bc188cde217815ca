# Where a sampling point falls among the elements of a map, and how it weighs them.
import cython

if not cython.compiled:
    from detops._codes import Border
    from detops._core.scalar import product, real, typed


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def floor_split(x: real) -> tuple[cython.Py_ssize_t, real]:
    """Floor of x and what is above it. x must be finite and within the range of an index: check before."""
    low: cython.Py_ssize_t = int(x)
    low -= 1 if typed(low, x) > x else 0
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


# Along each axis a sample weighs 1 (nearest), 2 (linear) or 4 (cubic) neighboring elements, its taps. What lies beyond
# the ends is told by a border.


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def unnormalize(coordinate: real, size: cython.Py_ssize_t, align_corners: cython.bint) -> real:
    """Position among the elements 0 .. size - 1 of a coordinate in [-1, 1].

    Its ends are the centers of the end elements where corners are aligned, else their outer edges.
    """
    one: real = typed(1, coordinate)
    length: real = typed(size, coordinate)
    if align_corners:
        return product((coordinate + one) * typed(0.5, coordinate), length - one)
    return (product(coordinate + one, length) - one) * typed(0.5, coordinate)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def clip_coordinate(
    position: real, size: cython.Py_ssize_t, border: cython.Py_ssize_t, align_corners: cython.bint
) -> real:
    """A position near the axis that samples the same as this one, so that no index can overflow.

    NaN is outside under zeros, else it is element 0; so is an infinite position under reflection.
    """
    if border == Border.REFLECTION:
        return fold(position, size, align_corners)
    if border == Border.REFLECT_FIRST:
        return mirror(fold(position, size, align_corners), size, align_corners)
    # So far out that all taps of a cubic are outside. One choice after the other, not early returns: so compilers
    # can turn a loop over positions into vector code.
    low: real = typed(-3, position)
    high: real = typed(size + 2, position)
    known: real = typed(0, position) if border == Border.BORDER and position != position else position
    raised: real = known if known > low else low
    return raised if raised < high else high


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def fold(position: real, size: cython.Py_ssize_t, align_corners: cython.bint) -> real:
    """A position less than a period of the reflected axis away from its start that samples the same.

    Exact as long as positions tell neighbors apart. One that is farther, or not finite, is element 0.
    """
    # About the centers of the end elements the mirrored axis repeats after 2 * size - 2 elements, about edges 2 * size.
    period: real = typed(2 * (size - 1) if align_corners else 2 * size, position)
    zero: real = typed(0, position)
    # Within the range of an index on every platform.
    limit: real = typed(1073741824, position)
    cycles: real = position / period if period > zero else zero
    bounded: real = cycles if cycles < limit and cycles > -limit else zero
    count: cython.Py_ssize_t = int(bounded)
    remainder: real = position - product(typed(count, position), period)
    return remainder if remainder < period and remainder > -period else zero


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def mirror(position: real, size: cython.Py_ssize_t, align_corners: cython.bint) -> real:
    """The position from 0 to size - 1 that a folded position is the image of, moved in from the outer half elements."""
    zero: real = typed(0, position)
    last: real = typed(size - 1, position)
    edge: real = zero if align_corners else typed(0.5, position)
    raised: real = -(edge + edge) - position if position < -edge else position
    lowered: real = typed(2, position) * (last + edge) - raised if raised > last + edge else raised
    inside: real = lowered if lowered > zero else zero
    return inside if inside < last else last


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def first_tap(position: real, taps: cython.Py_ssize_t) -> tuple[cython.Py_ssize_t, real]:
    """Index of the first tap, and how far above a tap the position is, which must be confined."""
    low: cython.Py_ssize_t
    fraction: real
    low, fraction = floor_split(position)
    half: real = typed(0.5, position)
    # Nearest: up from above halfway, and from halfway if that is to an even element.
    low += 1 if taps == 1 and fraction > half else 0
    low += low & 1 if taps == 1 and fraction == half else 0
    # The second of a cubic's taps is the one below the position.
    low -= 1 if taps == 4 else 0
    return low, fraction


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def tap_index(
    index: cython.Py_ssize_t, size: cython.Py_ssize_t, border: cython.Py_ssize_t, align_corners: cython.bint
) -> cython.Py_ssize_t:
    """The element that a tap reads: -1 for none, which counts as 0."""
    if border == Border.REFLECTION:
        return reflect(index, size, align_corners)
    if index < 0:
        return -1 if border == Border.ZEROS else 0
    if index >= size:
        return -1 if border == Border.ZEROS else size - 1
    return index


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def reflect(index: cython.Py_ssize_t, size: cython.Py_ssize_t, align_corners: cython.bint) -> cython.Py_ssize_t:
    """The element at an index of the reflected axis, at most a period and one element away from its start."""
    if size == 1:
        return 0
    mirror: cython.Py_ssize_t = 0 if align_corners else 1
    period: cython.Py_ssize_t = 2 * (size - 1 + mirror)
    folded: cython.Py_ssize_t = -index - mirror if index < 0 else index
    folded -= period if folded >= period else 0
    return folded if folded < size else period - mirror - folded


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def tap_weight(tap: cython.Py_ssize_t, taps: cython.Py_ssize_t, fraction: real) -> real:
    """Weight of one of the taps, counted from 0, of a position that is a fraction above a tap."""
    one: real = typed(1, fraction)
    if taps == 1:
        return one
    if taps == 2:
        return one - fraction if tap == 0 else fraction
    return cubic_weight(fraction + typed(1 - tap, fraction) if tap < 2 else typed(tap - 1, fraction) - fraction)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def cubic_weight(distance: real) -> real:
    """Keys' cubic convolution with a = -0.75, at a distance from 0 to 2."""
    a: real = typed(-0.75, distance)
    if distance <= typed(1, distance):
        return ((a + typed(2, a)) * distance - (a + typed(3, a))) * distance * distance + typed(1, a)
    return ((distance - typed(5, a)) * distance + typed(8, a)) * distance * a - typed(4, a) * a


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def linear_taps(position: real, size: cython.Py_ssize_t) -> tuple[cython.Py_ssize_t, cython.Py_ssize_t, real]:
    """The elements below and above a position, -1 for one beyond the ends, and how far it is from the one below.

    A position that is not strictly between -1 and size, or NaN, has no elements.
    """
    inside: cython.bint = position > typed(-1, position) and position < typed(size, position)
    known: real = position if inside else typed(-2, position)
    low: cython.Py_ssize_t
    fraction: real
    low, fraction = floor_split(known)
    return tap_index(low, size, Border.ZEROS, False), tap_index(low + 1, size, Border.ZEROS, False), fraction


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def element_position(location: real, size: cython.Py_ssize_t) -> real:
    """Position among the elements of an axis whose outer edges are at 0 and 1."""
    return product(location, typed(size, location)) - typed(0.5, location)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def deformed(
    output: cython.Py_ssize_t,
    tap: cython.Py_ssize_t,
    stride: cython.Py_ssize_t,
    padding: cython.Py_ssize_t,
    dilation: cython.Py_ssize_t,
    offset: real,
) -> real:
    """Where a deformable convolution samples along an axis for an element of its output and a tap of its kernel."""
    return typed(output * stride - padding + tap * dilation, offset) + offset
