# Boxes that are turned by angles, and when one suppresses another. The upright boxes around them lie in the blocks: those
# that meet are few, and only of them the turned ones are compared.
cdef struct Kept
cdef struct Cell

cdef struct Rule:
    bint clockwise
    # Upright boxes have one; here it is 0.
    real offset
    real threshold

cdef struct Turned:
    real x
    real y
    real cos
    real sin
    # Half sides.
    real width
    real height
    real area

cdef struct Box:
    # Of the upright box around it.
    real x1
    real y1
    real x2
    real y2
    real width
    real height
    real area
    # What lies in the blocks with the corners: the number of the box among those kept.
    real mark
    Turned turned


cdef inline Box load_box(const real* box, const Rule* rule) noexcept nogil:
    cdef Box found
    cdef real x, y
    found.turned.x, found.turned.y = box[0], box[1]
    found.turned.cos, found.turned.sin = direction(box[4], rule.clockwise)
    found.turned.width, found.turned.height = typed(0.5, box[0]) * box[2], typed(0.5, box[0]) * box[3]
    found.turned.area = turned_area(box[2], box[3], found.turned.cos, found.turned.sin)
    x, y = reach(found.turned.cos, found.turned.sin, found.turned.width, found.turned.height)
    found.x1, found.x2, found.width = box[0] - x, box[0] + x, x + x
    found.y1, found.y2, found.height = box[1] - y, box[1] + y, y + y
    found.area = found.turned.area
    found.mark = 0
    return found


cdef inline int remember(Kept* kept, Box* box) noexcept nogil:
    cdef void* turned = room(kept.turned, kept.count, &kept.turned_capacity, sizeof(Turned))
    if turned == NULL:
        return -1
    kept.turned = turned
    (<Turned*> turned)[kept.count] = box.turned
    box.mark = <real> kept.count
    return 0


cdef inline real margin_of(const Box* box, const Rule* rule) noexcept nogil:
    """None: what a box shares with a turned one may lie in any corner of the upright one around it."""
    return 0


cdef bint overlaps(const Kept* kept, real mark, const Turned* box, real threshold) noexcept nogil:
    """Whether a box overlaps the kept one of a number too much."""
    cdef const Turned* other = &(<const Turned*> kept.turned)[<Py_ssize_t> mark]
    return rotated_overlap(
        box.x - other.x, box.y - other.y, other.cos, other.sin, other.width, other.height, other.area,
        box.cos, box.sin, box.width, box.height, box.area, BoxIouMode.IOU) > threshold


cdef inline bint upright_meet(const Box* box, real x1, real y1, real x2, real y2) noexcept nogil:
    return (x1 <= box.x2) & (box.x1 <= x2) & (y1 <= box.y2) & (box.y1 <= y2)


cdef inline bint all_suppress(const Kept* kept, const Box* box, const Rule* rule) noexcept nogil:
    """Whether one of all kept boxes overlaps a box too much."""
    cdef const Block* block
    cdef int[LANES] meet
    cdef Py_ssize_t at
    cdef int lane, some
    for at in range((kept.count + LANES - 1) // LANES):
        block = &kept.blocks[at]
        some = 0
        for lane in range(LANES):
            meet[lane] = upright_meet(box, block.x1[lane], block.y1[lane], block.x2[lane], block.y2[lane])
            some |= meet[lane]
        if some:
            for lane in range(LANES):
                if meet[lane] and overlaps(kept, block.mark[lane], &box.turned, rule.threshold):
                    return True
    return False


cdef inline bint cell_suppresses(const Kept* kept, const Cell* cell, const Box* box, const Rule* rule) noexcept nogil:
    """Whether one of the boxes of a cell does."""
    cdef int at = cell.newest
    cdef const Node* node
    cdef int[NODE_LANES] meet
    cdef int lane, some
    while at >= 0:
        node = &kept.nodes[at]
        some = 0
        for lane in range(NODE_LANES):
            meet[lane] = upright_meet(box, node.x1[lane], node.y1[lane], node.x2[lane], node.y2[lane])
            some |= meet[lane]
        if some:
            for lane in range(NODE_LANES):
                if meet[lane] and overlaps(kept, node.mark[lane], &box.turned, rule.threshold):
                    return True
        at = node.before
    return False
