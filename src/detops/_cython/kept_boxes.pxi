# Boxes that were kept: side by side in blocks, and in the cells of a grid where there is one.
from libc.math cimport INFINITY

cdef enum:
    LANES = 16
    # Boxes of a cell lie in smaller blocks, as most cells hold few.
    NODE_LANES = 8

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

cdef struct Block:
    real[LANES] x1
    real[LANES] y1
    real[LANES] x2
    real[LANES] y2
    real[LANES] area

cdef struct Node:
    # Boxes of a cell, and the number of the node before it there; -1 for none.
    real[NODE_LANES] x1
    real[NODE_LANES] y1
    real[NODE_LANES] x2
    real[NODE_LANES] y2
    real[NODE_LANES] area
    int before

cdef struct Cell:
    int newest
    int boxes

cdef struct Kept:
    Block* blocks
    Py_ssize_t count
    Py_ssize_t capacity
    # The grid, if there is one; its last cell is for boxes that cover too many.
    Cell* cells
    Py_ssize_t mask
    real cells_x
    real cells_y
    Node* nodes
    Py_ssize_t nodes_count
    Py_ssize_t nodes_capacity


cdef inline Box load_box(const real* box, const Rule* rule) noexcept nogil:
    cdef Box found
    found.x1, found.x2 = box_side(box[0], box[2], rule.form)
    found.y1, found.y2 = box_side(box[1], box[3], rule.form)
    found.width = side_length(found.x1, found.x2, rule.offset)
    found.height = side_length(found.y1, found.y2, rule.offset)
    found.area = area_of_sides(found.width, found.height)
    return found


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
                box.area, block.area[lane]) > threshold
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
                box.area, node.area[lane]) > threshold
        if hit:
            return True
        at = node.before
    return False


# Compilers leave a sum with the constant -0.0 out, and usually there is no offset.
cdef inline bint all_suppress(const Kept* kept, const Box* box, const Rule* rule) noexcept nogil:
    """Whether one of all kept boxes overlaps a box too much."""
    if rule.offset == 0:
        return in_blocks(kept, box, rule.threshold, -0.0)
    return in_blocks(kept, box, rule.threshold, rule.offset)


cdef inline bint cell_suppresses(const Kept* kept, const Cell* cell, const Box* box, const Rule* rule) noexcept nogil:
    """Whether one of the boxes of a cell does."""
    if rule.offset == 0:
        return in_nodes(kept, cell, box, rule.threshold, -0.0)
    return in_nodes(kept, cell, box, rule.threshold, rule.offset)


cdef inline void empty_lanes(real* x1, int lanes) noexcept nogil:
    """Lanes that hold no box begin at infinity, and so overlap nothing, whatever the offset."""
    cdef int lane
    for lane in range(lanes):
        x1[lane] = INFINITY


cdef inline void* room(void* items, Py_ssize_t count, Py_ssize_t* capacity, size_t size) noexcept nogil:
    """Return the array with room for one item more, NULL without memory."""
    cdef void* larger = items
    if count == capacity[0]:
        larger = reallocate(items, (2 * count + 8) * size)
        if larger != NULL:
            capacity[0] = 2 * count + 8
    return larger


cdef inline int put_in_cell(Kept* kept, Cell* cell, const Box* box) noexcept nogil:
    cdef int lane = cell.boxes % NODE_LANES
    cdef void* nodes
    cdef Node* node
    if lane == 0:
        nodes = room(kept.nodes, kept.nodes_count, &kept.nodes_capacity, sizeof(Node))
        if nodes == NULL:
            return -1
        kept.nodes = <Node*> nodes
        memset(&kept.nodes[kept.nodes_count], 0, sizeof(Node))
        empty_lanes(kept.nodes[kept.nodes_count].x1, NODE_LANES)
        kept.nodes[kept.nodes_count].before = cell.newest
        cell.newest = <int> kept.nodes_count
        kept.nodes_count += 1
    node = &kept.nodes[cell.newest]
    node.x1[lane], node.y1[lane], node.x2[lane], node.y2[lane] = box.x1, box.y1, box.x2, box.y2
    node.area[lane] = box.area
    cell.boxes += 1
    return 0


cdef inline int put_in_block(Kept* kept, const Box* box) noexcept nogil:
    cdef Py_ssize_t lane = kept.count % LANES
    cdef Py_ssize_t at = kept.count // LANES
    cdef void* blocks
    cdef Block* block
    if lane == 0:
        blocks = room(kept.blocks, at, &kept.capacity, sizeof(Block))
        if blocks == NULL:
            return -1
        kept.blocks = <Block*> blocks
        memset(&kept.blocks[at], 0, sizeof(Block))
        empty_lanes(kept.blocks[at].x1, LANES)
    block = &kept.blocks[at]
    block.x1[lane], block.y1[lane], block.x2[lane], block.y2[lane] = box.x1, box.y1, box.x2, box.y2
    block.area[lane] = box.area
    kept.count += 1
    return 0
