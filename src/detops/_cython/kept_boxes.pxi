# Boxes that were kept: side by side in blocks, and in the cells of a grid where there is one. Which numbers of a Box say
# when it suppresses another one is for upright_boxes.pxi or turned_boxes.pxi.
from libc.math cimport INFINITY

cdef struct Box

cdef enum:
    LANES = 16
    # Boxes of a cell lie in smaller blocks, as most cells hold few.
    NODE_LANES = 8

cdef struct Block:
    real[LANES] x1
    real[LANES] y1
    real[LANES] x2
    real[LANES] y2
    # Of upright boxes the area, of turned ones their index among those kept.
    real[LANES] payload

cdef struct Node:
    # Boxes of a cell, and the number of the node before it there; -1 for none.
    real[NODE_LANES] x1
    real[NODE_LANES] y1
    real[NODE_LANES] x2
    real[NODE_LANES] y2
    real[NODE_LANES] payload
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
    node.payload[lane] = box.payload
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
    block.payload[lane] = box.payload
    kept.count += 1
    return 0
