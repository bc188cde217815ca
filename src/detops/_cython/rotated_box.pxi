# A box that is turned by an angle, as comparisons ask for it; it needs _core/rotated.py.
cdef struct RotatedBox:
    real x
    real y
    real cos
    real sin
    # Half sides.
    real width
    real height
    real area
    # To the sides of the upright box around it.
    real reach_x
    real reach_y


cdef inline RotatedBox load_rotated(const real* box, bint clockwise) noexcept nogil:
    cdef RotatedBox found
    found.x, found.y = box[0], box[1]
    found.cos, found.sin, found.width, found.height, found.area, found.reach_x, found.reach_y = rotated_box(
        box[2], box[3], box[4], clockwise)
    return found


cdef inline real overlap_of(const RotatedBox* a, const RotatedBox* b, Py_ssize_t mode) noexcept nogil:
    return rotated_overlap(
        b.x - a.x, b.y - a.y, a.cos, a.sin, a.width, a.height, a.area, b.cos, b.sin, b.width, b.height, b.area, mode)
