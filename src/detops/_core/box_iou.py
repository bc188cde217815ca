# How much two boxes are alike: how far they overlap, and how far those are apart that do not.
import cython

if not cython.compiled:
    from detops._codes import BoxIouMode
    from detops._core.iou import area_of_sides, overlap_ratio, shared_area, side_length
    from detops._core.scalar import atan, product, real, typed


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def area_or_flaw(width: real, height: real) -> real:
    """Area of a box from the lengths of its sides, as ``area_of_sides`` has it; -1 if it is turned, NaN or infinite."""
    area: real = area_of_sides(width, height)
    least: real = width if width < height else height
    both: real = width + height
    return area if least >= typed(0, area) and both - both == typed(0, area) else typed(-1, area)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def aspect_angle(width: real, height: real) -> real:
    """Angle between a box's diagonal and its height; NaN for a point, and for what is infinite."""
    return atan(width / height)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def hull_sides(
    ax1: real, ay1: real, ax2: real, ay2: real, bx1: real, by1: real, bx2: real, by2: real, offset: real
) -> tuple[real, real]:
    """Width and height of the hull of two boxes, the smallest box that encloses both."""
    left: real = ax1 if ax1 < bx1 else bx1
    top: real = ay1 if ay1 < by1 else by1
    right: real = ax2 if ax2 > bx2 else bx2
    bottom: real = ay2 if ay2 > by2 else by2
    return side_length(left, right, offset), side_length(top, bottom, offset)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def part_uncovered(joined: real, width: real, height: real) -> real:
    """Part of a hull's area that the joined area of two boxes leaves; 0 where the hull has none, 1 where infinite."""
    hull: real = product(width, height)
    covered: real = joined / hull
    uncovered: real = typed(1, hull) - covered if covered < typed(1, hull) else typed(0, hull)
    return uncovered if hull - hull == typed(0, hull) else typed(1, hull)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def part_apart(x: real, y: real, width: real, height: real) -> real:
    """Centers' squared distance as part of a hull's squared diagonal; 0 where that is 0, 1 where both are infinite."""
    diagonal: real = product(width, width) + product(height, height)
    apart: real = (product(x, x) + product(y, y)) / diagonal
    apart = apart if apart < typed(1, apart) else typed(1, apart)
    return apart if diagonal > typed(0, diagonal) else typed(0, diagonal)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def separation(
    ax1: real,
    ay1: real,
    ax2: real,
    ay2: real,
    bx1: real,
    by1: real,
    bx2: real,
    by2: real,
    offset: real,
    joined: real,
    mode: cython.Py_ssize_t,
) -> real:
    """What GIOU, or any other BoxIouMode, takes from the IoU for the distance of two boxes, of so much joined area."""
    width: real
    height: real
    width, height = hull_sides(ax1, ay1, ax2, ay2, bx1, by1, bx2, by2, offset)
    if mode == BoxIouMode.GIOU:
        return part_uncovered(joined, width, height)
    # Differences before sums: they lose nothing far from the origin.
    x: real = ((ax1 - bx1) + (ax2 - bx2)) * typed(0.5, ax1)
    y: real = ((ay1 - by1) + (ay2 - by2)) * typed(0.5, ay1)
    return part_apart(x, y, width, height)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def aspect_penalty(iou: real, turn: real) -> real:
    """CIoU's alpha * v for the difference of two aspect angles; 0 where it is NaN, as a box has no aspect."""
    # 4 / pi**2, so that v is at most 1, but for how it is rounded.
    v: real = product(typed(0.4052847345693511, turn), product(turn, turn))
    v = typed(1, v) if v > typed(1, v) else v
    return product(v, v) / (typed(1, iou) - iou + v) if v > typed(0, v) else typed(0, v)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def overlap(shared: real, area_a: real, area_b: real, least: real, mode: cython.Py_ssize_t) -> real:
    """IoU, or for IOF the part of a that b covers; 0 where the least of the areas is not above 0."""
    ratio: real = shared / area_a if mode == BoxIouMode.IOF else overlap_ratio(shared, area_a, area_b)
    return ratio if least > typed(0, least) else typed(0, least)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def box_similarity(
    ax1: real,
    ay1: real,
    ax2: real,
    ay2: real,
    area_a: real,
    bx1: real,
    by1: real,
    bx2: real,
    by2: real,
    area_b: real,
    turn: real,
    offset: real,
    mode: cython.Py_ssize_t,
) -> real:
    """IoU of two boxes, or another BoxIouMode; areas as ``area_or_flaw`` has them, turn as ``aspect_penalty`` does."""
    shared: real = shared_area(ax1, ay1, ax2, ay2, bx1, by1, bx2, by2, offset)
    least: real = area_a if area_a < area_b else area_b
    iou: real = overlap(shared, area_a, area_b, least, mode)
    if mode == BoxIouMode.IOU or mode == BoxIouMode.IOF:
        return iou
    less: real = separation(ax1, ay1, ax2, ay2, bx1, by1, bx2, by2, offset, area_a + area_b - shared, mode)
    if mode == BoxIouMode.CIOU:
        less += aspect_penalty(iou, turn)
    return iou - less if least >= typed(0, least) else typed(-1, least)
