# Boxes that are turned by an angle, and what they share. One box is laid along the axes, around the origin; what the
# other has in common with it is the sum of what its four edges sweep, so that nothing is sorted, and nothing that is
# nearly parallel is made to cross.
import cython

if not cython.compiled:
    from detops._codes import BoxIouMode
    from detops._core.box_iou import overlap
    from detops._core.iou import area_of_sides
    from detops._core.scalar import product, real, typed


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def magnitude(x: real) -> real:
    """``x`` without its sign."""
    return x if x > typed(0, x) else -x


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def quarter_turns(angle: real) -> cython.Py_ssize_t:
    """The whole number of quarter turns next to an angle; 0 for NaN, and beyond 1e9."""
    known: cython.bint = magnitude(angle) < typed(1e9, angle)
    half: real = typed(0.5, angle) if angle > typed(0, angle) else typed(-0.5, angle)
    return int(product(angle if known else typed(0, angle), typed(0.6366197723675814, angle)) + half)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def sine_series(x: real, square: real) -> real:
    """Sine of an angle of an eighth of a turn at most, by Taylor's series; square is x * x."""
    p: real = typed(-7.647163731819816e-13, x)
    p = product(p, square) + typed(1.6059043836821613e-10, x)
    p = product(p, square) - typed(2.505210838544172e-08, x)
    p = product(p, square) + typed(2.7557319223985893e-06, x)
    p = product(p, square) - typed(0.0001984126984126984, x)
    p = product(p, square) + typed(0.008333333333333333, x)
    p = product(p, square) - typed(0.16666666666666666, x)
    return x + product(product(p, square), x)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def cosine_series(x: real, square: real) -> real:
    """Cosine of such an angle."""
    p: real = typed(4.779477332387385e-14, x)
    p = product(p, square) - typed(1.1470745597729725e-11, x)
    p = product(p, square) + typed(2.08767569878681e-09, x)
    p = product(p, square) - typed(2.755731922398589e-07, x)
    p = product(p, square) + typed(2.48015873015873e-05, x)
    p = product(p, square) - typed(0.001388888888888889, x)
    p = product(p, square) + typed(0.041666666666666664, x)
    return typed(1, x) - product(square, typed(0.5, x) - product(p, square))


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def direction(angle: real, clockwise: cython.bint) -> tuple[real, real]:
    """Cosine and sine of a box's angle as they are where y points down, and so a positive angle turns clockwise.

    Both are 0 where the angle is NaN or beyond 1e9. Steps of our own, so that all compilers find the same bits.
    """
    turns: cython.Py_ssize_t = quarter_turns(angle)
    whole: real = typed(turns, angle)
    # A quarter turn in three parts, of which the first two have so few digits that the products are exact.
    reduced: real = angle - product(whole, typed(1.570796012878418, angle))
    reduced = reduced - product(whole, typed(3.139164164167596e-07, angle))
    reduced = reduced - product(whole, typed(6.223372171896613e-14, angle))
    square: real = product(reduced, reduced)
    sine: real = sine_series(reduced, square)
    cosine: real = cosine_series(reduced, square)
    known: cython.bint = square < typed(1, square)
    x: real = sine if turns & 1 else cosine
    y: real = cosine if turns & 1 else sine
    x = -x if (turns + 1) & 2 else x
    y = -y if ((turns & 2) != 0) == clockwise else y
    return x if known else typed(0, x), y if known else typed(0, y)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def turned_area(width: real, height: real, cosine: real, sine: real) -> real:
    """Area of a box; 0 where that of its sides is, as ``area_of_sides`` has it, or where its direction is not known."""
    known: cython.bint = product(cosine, cosine) + product(sine, sine) > typed(0, cosine)
    area: real = area_of_sides(width, height)
    return area if known else typed(0, area)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def reach(cosine: real, sine: real, width: real, height: real) -> tuple[real, real]:
    """How far a turned box reaches from its center along x and y; a little more, since it is rounded."""
    c: real = product(typed(1.000001, cosine), magnitude(cosine))
    s: real = product(typed(1.000001, sine), magnitude(sine))
    return product(width, c) + product(height, s), product(width, s) + product(height, c)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def rotated_box(
    width: real, height: real, angle: real, clockwise: cython.bint
) -> tuple[real, real, real, real, real, real, real]:
    """What comparisons ask of a box: cosine, sine, half sides, area, and how far it reaches along x and y."""
    cosine: real
    sine: real
    reach_x: real
    reach_y: real
    cosine, sine = direction(angle, clockwise)
    half_width: real = product(typed(0.5, width), width)
    half_height: real = product(typed(0.5, height), height)
    reach_x, reach_y = reach(cosine, sine, half_width, half_height)
    return cosine, sine, half_width, half_height, turned_area(width, height, cosine, sine), reach_x, reach_y


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def bounds_meet(x: real, y: real, reach_x: real, reach_y: real) -> cython.bint:
    """Whether boxes that are (x, y) apart, and reach so far together, may share something; false for NaN."""
    return (magnitude(x) < reach_x) & (magnitude(y) < reach_y)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def within(x: real, limit: real) -> real:
    """The number from -limit to limit that is next to x."""
    lower: real = x if x > -limit else -limit
    return lower if lower < limit else limit


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def part(x: real) -> real:
    """The number from 0 to 1 that is next to x; 0 for NaN, which is 0 / 0."""
    lower: real = x if x > typed(0, x) else typed(0, x)
    return lower if lower < typed(1, x) else typed(1, x)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def swept_area(
    x1: real, y1: real, x2: real, y2: real, dx: real, dy: real, per_x: real, per_y: real, width: real, height: real
) -> real:
    """Integral of y over x along an edge, where both are held within the half sides of a box around the origin.

    The edge goes from (x1, y1) by (dx, dy) to (x2, y2); per_x and per_y are 1 / dx and 1 / dy.
    """
    left: real = within(x1, width)
    right: real = within(x2, width)
    # What lies beyond left and right is cut off, at most all of the edge, however small a number divides.
    begin: real = y1 + product(part(product(left - x1, per_x)), dy)
    end: real = y2 - product(part(product(x2 - right, per_x)), dy)
    first: real = within(begin, height)
    last: real = within(end, height)
    # Above and below the box y stands still: before the edge comes in, and after it has gone out.
    still: real = part(product(end - last, per_y)) - part(product(first - begin, per_y))
    span: real = right - left
    return product(span, first) + product(product(last - first, typed(0.5, span)), span + product(dx, still))


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def strip_area(x: real, y: real, ux: real, uy: real, vx: real, vy: real, width: real, height: real) -> real:
    """What the sides along u of a box around (x, y) sweep: that on the side of v, less the other one.

    u and v are half sides.
    """
    dx: real = ux + ux
    dy: real = uy + uy
    per_x: real = typed(1, dx) / dx
    per_y: real = typed(1, dy) / dy
    x1: real = x + vx
    y1: real = y + vy
    x2: real = x - vx
    y2: real = y - vy
    return swept_area(x1 - ux, y1 - uy, x1 + ux, y1 + uy, dx, dy, per_x, per_y, width, height) - swept_area(
        x2 - ux, y2 - uy, x2 + ux, y2 + uy, dx, dy, per_x, per_y, width, height
    )


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def sides_meet(
    x: real, y: real, c: real, s: real, width_a: real, height_a: real, width_b: real, height_b: real
) -> cython.bint:
    """Whether a box along the axes around the origin has no side beyond which another one lies; false for NaN.

    The other is at (x, y), turned by the angle of which c and s are cosine and sine; both by half sides.
    """
    return (magnitude(x) < width_a + (product(width_b, c) + product(height_b, s))) & (
        magnitude(y) < height_a + (product(width_b, s) + product(height_b, c))
    )


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def area_in_box(
    x: real, y: real, turn_x: real, turn_y: real, width_a: real, height_a: real, width_b: real, height_b: real
) -> real:
    """Area that a box along the axes around the origin shares with one around (x, y); both by half sides.

    The other is turned by the angle of which turn_x and turn_y are cosine and sine.
    """
    c: real = magnitude(turn_x)
    s: real = magnitude(turn_y)
    along: real = product(x, turn_x) + product(y, turn_y)
    across: real = product(y, turn_x) - product(x, turn_y)
    meet: cython.bint = sides_meet(x, y, c, s, width_a, height_a, width_b, height_b) & sides_meet(
        along, across, c, s, width_b, height_b, width_a, height_a
    )
    ux: real = product(width_b, turn_x)
    uy: real = product(width_b, turn_y)
    vx: real = product(-height_b, turn_y)
    vy: real = product(height_b, turn_x)
    area: real = strip_area(x, y, ux, uy, vx, vy, width_a, height_a) + strip_area(
        x, y, vx, vy, -ux, -uy, width_a, height_a
    )
    area = area if area > typed(0, area) else typed(0, area)
    return area if meet else typed(0, area)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def turn_between(cos_a: real, sin_a: real, cos_b: real, sin_b: real) -> tuple[real, real]:
    """Cosine and sine of the angle from a to b; -1 or 1, and 0, where they are parallel."""
    turn_x: real = product(cos_a, cos_b) + product(sin_a, sin_b)
    turn_y: real = product(cos_a, sin_b) - product(sin_a, cos_b)
    whole: real = typed(1, turn_x) if turn_x > typed(0, turn_x) else typed(-1, turn_x)
    return whole if turn_y == typed(0, turn_y) else turn_x, turn_y


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def first_is_positive(x: real, y: real, z: real) -> cython.bint:
    """Whether the first of three numbers that is not 0 is above 0."""
    later: real = y if y != typed(0, y) else z
    return (x if x != typed(0, x) else later) > typed(0, x)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def area_in_frame(
    x: real,
    y: real,
    c: real,
    s: real,
    sign: real,
    turn_x: real,
    turn_y: real,
    width_a: real,
    height_a: real,
    width_b: real,
    height_b: real,
) -> real:
    """``area_in_box`` of a box that c and s turn, and of another one, sign times (x, y) away from it."""
    along: real = product(sign, product(x, c) + product(y, s))
    across: real = product(sign, product(y, c) - product(x, s))
    return area_in_box(along, across, turn_x, product(sign, turn_y), width_a, height_a, width_b, height_b)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def shared_rotated_area(
    x: real,
    y: real,
    cos_a: real,
    sin_a: real,
    width_a: real,
    height_a: real,
    cos_b: real,
    sin_b: real,
    width_b: real,
    height_b: real,
    of_a: cython.bint,
) -> real:
    """Area that two boxes share, by half sides: (x, y) is b's center less a's. Computed in the frame of a, or of b."""
    turn_x: real
    turn_y: real
    turn_x, turn_y = turn_between(cos_a, sin_a, cos_b, sin_b)
    c: real = cos_a if of_a else cos_b
    s: real = sin_a if of_a else sin_b
    sign: real = typed(1, x) if of_a else typed(-1, x)
    wide: real = width_a if of_a else width_b
    high: real = height_a if of_a else height_b
    return area_in_frame(
        x, y, c, s, sign, turn_x, turn_y, wide, high, width_b if of_a else width_a, height_b if of_a else height_a
    )


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def rotated_overlap(
    x: real,
    y: real,
    cos_a: real,
    sin_a: real,
    width_a: real,
    height_a: real,
    area_a: real,
    cos_b: real,
    sin_b: real,
    width_b: real,
    height_b: real,
    area_b: real,
    mode: cython.Py_ssize_t,
) -> real:
    """IoU or IoF of two boxes: (x, y) from a's center to b's, half sides, areas as ``area_of_sides`` has them."""
    # IoF asks about a alone; an IoU is not to depend on which box comes first.
    of_a: cython.bint = mode == BoxIouMode.IOF
    of_a = of_a | first_is_positive(x, y, product(cos_a, sin_b) - product(sin_a, cos_b))
    least: real = area_a if area_a < area_b else area_b
    shared: real = shared_rotated_area(x, y, cos_a, sin_a, width_a, height_a, cos_b, sin_b, width_b, height_b, of_a)
    return overlap(shared if shared < least else least, area_a, area_b, least, mode)
