# When two boxes overlap so much that one suppresses the other. Each step is rounded to the data's own type and never
# fused with the next, so that every compiler decides alike.
import cython

if not cython.compiled:
    from detops._codes import BoxForm
    from detops._core.scalar import product, real, typed


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def box_side(first: real, second: real, form: cython.Py_ssize_t) -> tuple[real, real]:
    """Ends of a side: its ends as they are, in either order, or from its center and length."""
    half: real = product(second, typed(0.5, second))
    if form == BoxForm.CENTER_AND_SIZE:
        return first - half, first + half
    if form == BoxForm.CORNERS_IN_ANY_ORDER and first > second:
        return second, first
    return first, second


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def side_length(first: real, second: real, offset: real) -> real:
    """Length of a side from its ends, and what is added to it: 1 where corners count whole pixels.

    The offset is added to the length: added to an end, it would be lost where coordinates are large.
    """
    return second - first + offset


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def area_of_sides(width: real, height: real) -> real:
    """Area of a box; 0 for one that can overlap nothing: turned, NaN, or of an area that overflows or underflows."""
    area: real = product(width, height)
    # An area that is infinite, or not a number, is not 0 when it is taken from itself.
    if width > typed(0, width) and height > typed(0, height) and area - area == typed(0, area):
        return area
    return typed(0, area)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def box_area(x1: real, y1: real, x2: real, y2: real) -> real:
    """Area of a box (x1, y1, x2, y2); 0 for one that can overlap nothing, as ``area_of_sides`` has it."""
    none: real = typed(0, x1)
    return area_of_sides(side_length(x1, x2, none), side_length(y1, y2, none))


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def shared_area(
    ax1: real, ay1: real, ax2: real, ay2: real, bx1: real, by1: real, bx2: real, by2: real, offset: real
) -> real:
    """Area that two boxes, each with an area above 0, have in common."""
    left: real = ax1 if ax1 > bx1 else bx1
    top: real = ay1 if ay1 > by1 else by1
    right: real = ax2 if ax2 < bx2 else bx2
    bottom: real = ay2 if ay2 < by2 else by2
    width: real = side_length(left, right, offset)
    height: real = side_length(top, bottom, offset)
    width = width if width > typed(0, width) else typed(0, width)
    height = height if height > typed(0, height) else typed(0, height)
    return product(width, height)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def overlap_ratio(shared: real, area_a: real, area_b: real) -> real:
    """Intersection over union, from areas of which one at least is above 0."""
    return shared / (area_a + area_b - shared)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def intersection_over_union(
    ax1: real, ay1: real, ax2: real, ay2: real, bx1: real, by1: real, bx2: real, by2: real
) -> real:
    """Intersection over union of two boxes (x1, y1, x2, y2); 0 where one has no area, is turned, NaN or infinite."""
    area_a: real = box_area(ax1, ay1, ax2, ay2)
    area_b: real = box_area(bx1, by1, bx2, by2)
    if area_a == typed(0, area_a) or area_b == typed(0, area_b):
        return typed(0, area_a)
    return overlap_ratio(shared_area(ax1, ay1, ax2, ay2, bx1, by1, bx2, by2, typed(0, ax1)), area_a, area_b)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def is_candidate(score: real, threshold: real, strict: cython.bint) -> cython.bint:
    """Whether a score takes part: above the threshold, or where that is not strict at least the threshold; no NaN."""
    return score > threshold if strict else score >= threshold


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def core_margin(threshold: real, area: real) -> real:
    """Fraction of a box's side that can be cut off at each end, so that every box it suppresses still meets its core.

    An IoU above the threshold needs an intersection larger than threshold * area, which covers more than that fraction
    of each side. The margin is a little smaller, because of rounding errors, and 0 for areas so small that they lose
    digits.
    """
    margin: real = typed(0.95, threshold) * threshold - typed(0.001, threshold)
    limit: real = typed(0.475, threshold)
    if area < typed(1e-30, area) or margin < typed(0, margin):
        return typed(0, margin)
    return margin if margin < limit else limit


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def cell_of(position: real, cells: real) -> cython.Py_ssize_t:
    """Index of a position's grid cell, with `cells` cells per unit; 0 for NaN. Far positions share the last cell."""
    limit: real = typed(1e9, position)
    scaled: real = position * cells
    if scaled != scaled:
        return 0
    if scaled > limit:
        scaled = limit
    if scaled < -limit:
        scaled = -limit
    # Truncation makes the cell around 0 twice as long as others; what matters is that the order is kept.
    cell: cython.Py_ssize_t = int(scaled)
    return cell
