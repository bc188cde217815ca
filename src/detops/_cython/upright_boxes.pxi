# Boxes along the axes, and when one suppresses another.
cdef struct Rule:
    # Options of _core/iou.py: box_side's form, the number that is added to widths and heights, and the threshold.
    Py_ssize_t form
    real offset
    real threshold

cdef struct Box:
    real x1
    real y1
    real x2
    real y2
    # Lengths of the sides: with the offset, which the corners are without.
    real width
    real height
    real area
    # What lies in the blocks with the corners: the area.
    real payload

cdef struct Selection:
    # All that is asked about a kept box lies in the blocks.
    Kept kept


cdef inline Box load_box(const real* box, const Rule* rule) noexcept nogil:
    cdef Box found
    found.x1, found.x2 = box_side(box[0], box[2], rule.form)
    found.y1, found.y2 = box_side(box[1], box[3], rule.form)
    found.width = side_length(found.x1, found.x2, rule.offset)
    found.height = side_length(found.y1, found.y2, rule.offset)
    found.area = area_of_sides(found.width, found.height)
    found.payload = found.area
    return found


cdef inline int remember(Selection* selection, Box* box) noexcept nogil:
    return 0


cdef inline void forget(Selection* selection) noexcept nogil:
    pass


cdef inline real margin_of(const Box* box, const Rule* rule) noexcept nogil:
    """The part of a kept box's sides that its cells need not cover at each end."""
    return core_margin(rule.threshold, box.area)


cdef inline bint in_blocks(const Kept* kept, const Box* box, real threshold, real offset) noexcept nogil:
    cdef const Block* block
    cdef Py_ssize_t at
    cdef int lane, hit
    for at in range((kept.count + LANES - 1) // LANES):
        block = &kept.blocks[at]
        hit = 0
        for lane in range(LANES):
            hit |= overlap_ratio(
                shared_area(box.x1, box.y1, box.x2, box.y2,
                            block.x1[lane], block.y1[lane], block.x2[lane], block.y2[lane], offset),
                box.area, block.payload[lane]) > threshold
        if hit:
            return True
    return False


cdef inline bint in_nodes(const Kept* kept, const Cell* cell, const Box* box, real threshold, real offset) noexcept nogil:
    cdef int at = cell.newest
    cdef const Node* node
    cdef int lane, hit
    while at >= 0:
        node = &kept.nodes[at]
        hit = 0
        for lane in range(NODE_LANES):
            hit |= overlap_ratio(
                shared_area(box.x1, box.y1, box.x2, box.y2,
                            node.x1[lane], node.y1[lane], node.x2[lane], node.y2[lane], offset),
                box.area, node.payload[lane]) > threshold
        if hit:
            return True
        at = node.before
    return False


# Compilers leave a sum with the constant -0.0 out, and usually there is no offset.
cdef inline bint all_suppress(const Selection* selection, const Box* box, const Rule* rule) noexcept nogil:
    """Whether one of all kept boxes overlaps a box too much."""
    if rule.offset == 0:
        return in_blocks(&selection.kept, box, rule.threshold, -0.0)
    return in_blocks(&selection.kept, box, rule.threshold, rule.offset)


cdef inline bint cell_suppresses(const Selection* selection, const Cell* cell, const Box* box,
                                 const Rule* rule) noexcept nogil:
    """Whether one of the boxes of a cell does."""
    if rule.offset == 0:
        return in_nodes(&selection.kept, cell, box, rule.threshold, -0.0)
    return in_nodes(&selection.kept, cell, box, rule.threshold, rule.offset)
