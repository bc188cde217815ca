# Boxes that are turned by angles, and when one suppresses another. The upright boxes around them lie in the blocks: those
# that meet are few, and only of them the turned ones are compared.
cdef struct Rule:
    bint clockwise
    # Upright boxes have one; here it is 0.
    real offset
    real threshold

cdef struct Box:
    # Of the upright box around it.
    real x1
    real y1
    real x2
    real y2
    real width
    real height
    real area
    # What lies in the blocks with the corners: the index of the box among those kept.
    real payload
    RotatedBox rotated

cdef struct Selection:
    Kept kept
    RotatedBox* rotated
    Py_ssize_t capacity


cdef inline Box load_box(const real* box, const Rule* rule) noexcept nogil:
    cdef Box found
    cdef RotatedBox rotated = load_rotated(box, rule.clockwise)
    found.rotated = rotated
    found.width, found.height = rotated.reach_x + rotated.reach_x, rotated.reach_y + rotated.reach_y
    found.x1, found.x2 = rotated.x - rotated.reach_x, rotated.x + rotated.reach_x
    found.y1, found.y2 = rotated.y - rotated.reach_y, rotated.y + rotated.reach_y
    found.area = rotated.area
    found.payload = 0
    return found


cdef inline int remember(Selection* selection, Box* box) noexcept nogil:
    cdef Py_ssize_t index = selection.kept.count
    cdef void* larger = room(selection.rotated, index, &selection.capacity, sizeof(RotatedBox))
    if larger == NULL:
        return -1
    selection.rotated = <RotatedBox*> larger
    selection.rotated[index] = box.rotated
    box.payload = <real> index
    return 0


cdef inline void forget(Selection* selection) noexcept nogil:
    free(selection.rotated)


cdef inline real margin_of(const Box* box, const Rule* rule) noexcept nogil:
    """None: what a box shares with a turned one may lie in any corner of the upright one around it."""
    return 0


cdef bint overlaps(const Selection* selection, real index, const Box* box, real threshold) noexcept nogil:
    """Whether a box overlaps the kept one of an index too much."""
    return overlap_of(&selection.rotated[<Py_ssize_t> index], &box.rotated, BoxIouMode.IOU) > threshold


cdef inline bint upright_meet(const Box* box, real x1, real y1, real x2, real y2) noexcept nogil:
    return (x1 <= box.x2) & (box.x1 <= x2) & (y1 <= box.y2) & (box.y1 <= y2)


cdef inline bint all_suppress(const Selection* selection, const Box* box, const Rule* rule) noexcept nogil:
    """Whether one of all kept boxes overlaps a box too much."""
    cdef const Kept* kept = &selection.kept
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
                if meet[lane] and overlaps(selection, block.payload[lane], box, rule.threshold):
                    return True
    return False


cdef inline bint cell_suppresses(const Selection* selection, const Cell* cell, const Box* box,
                                 const Rule* rule) noexcept nogil:
    """Whether one of the boxes of a cell does."""
    cdef int at = cell.newest
    cdef const Node* node
    cdef int[NODE_LANES] meet
    cdef int lane, some
    while at >= 0:
        node = &selection.kept.nodes[at]
        some = 0
        for lane in range(NODE_LANES):
            meet[lane] = upright_meet(box, node.x1[lane], node.y1[lane], node.x2[lane], node.y2[lane])
            some |= meet[lane]
        if some:
            for lane in range(NODE_LANES):
                if meet[lane] and overlaps(selection, node.payload[lane], box, rule.threshold):
                    return True
        at = node.before
    return False
