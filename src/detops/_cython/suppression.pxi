# Greedy suppression: a box is kept unless one that was kept before overlaps it too much. Kept boxes lie side by side
# in blocks that are compared at once. Where they become many, a grid that wraps around finds those nearby.

include "prefetch.pxi"

cdef enum:
    LANES = 16
    # The boxes of candidates lie anywhere: each is asked for so many candidates before its turn.
    AHEAD = 8
    # So many boxes are worth a grid; one that covers more than so many cells is compared with all.
    GRID_FROM = 96
    MOST_CELLS = 64
    # Boxes in cells are numbered by an int, and none is in more than MOST_CELLS of them.
    GRID_TO = 1 << 25
    # Boxes of a cell lie in smaller blocks, as most cells hold few, and take so many times as long each.
    NODE_LANES = 8
    COST = 4
    SAMPLES = 63
    # Far apart in the table for neighbouring rows of cells, and odd.
    ROW = 0x9E3779B1

cdef struct Rule:
    # What _core/iou.py needs to know: box_side's form, what is added to widths and heights, and the threshold.
    Py_ssize_t form
    real offset
    real threshold

cdef struct Box:
    real x1
    real y1
    real x2
    real y2
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

cdef struct Region:
    Py_ssize_t left
    Py_ssize_t top
    Py_ssize_t right
    Py_ssize_t bottom
    Py_ssize_t cells

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
    found.x2 += rule.offset
    found.y2 += rule.offset
    found.area = box_area(found.x1, found.y1, found.x2, found.y2)
    return found


cdef inline bint all_suppress(const Kept* kept, const Box* box, real threshold) noexcept nogil:
    """Compare with every kept box. Lanes that hold none are all 0, and overlap nothing."""
    cdef const Block* block
    cdef Py_ssize_t at
    cdef int lane, hit
    for at in range((kept.count + LANES - 1) // LANES):
        block = &kept.blocks[at]
        hit = 0
        for lane in range(LANES):
            hit |= overlap_ratio(
                shared_area(box.x1, box.y1, box.x2, box.y2,
                            block.x1[lane], block.y1[lane], block.x2[lane], block.y2[lane]),
                box.area, block.area[lane]) > threshold
        if hit:
            return True
    return False


cdef inline bint cell_suppresses(const Kept* kept, const Cell* cell, const Box* box, real threshold) noexcept nogil:
    cdef int at = cell.newest
    cdef const Node* node
    cdef int lane, hit
    while at >= 0:
        node = &kept.nodes[at]
        hit = 0
        for lane in range(NODE_LANES):
            hit |= overlap_ratio(
                shared_area(box.x1, box.y1, box.x2, box.y2,
                            node.x1[lane], node.y1[lane], node.x2[lane], node.y2[lane]),
                box.area, node.area[lane]) > threshold
        if hit:
            return True
        at = node.before
    return False


cdef inline void* room(void* items, Py_ssize_t count, Py_ssize_t* capacity, size_t size) noexcept nogil:
    """Return the array with room for one item more, NULL without memory."""
    cdef void* larger = items
    if count == capacity[0]:
        larger = realloc(items, (2 * count + 8) * size)
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
    block = &kept.blocks[at]
    block.x1[lane], block.y1[lane], block.x2[lane], block.y2[lane] = box.x1, box.y1, box.x2, box.y2
    block.area[lane] = box.area
    kept.count += 1
    return 0


cdef inline Region region_of(const Kept* kept, const Box* box, real margin) noexcept nogil:
    """Cells under a box that loses such a part of its sides at each end."""
    cdef Region region
    cdef real x = margin * (box.x2 - box.x1)
    cdef real y = margin * (box.y2 - box.y1)
    region.left, region.right = cell_of(box.x1 + x, kept.cells_x), cell_of(box.x2 - x, kept.cells_x)
    region.top, region.bottom = cell_of(box.y1 + y, kept.cells_y), cell_of(box.y2 - y, kept.cells_y)
    region.cells = (region.right - region.left + 1) * (region.bottom - region.top + 1)
    return region


cdef inline Cell* cell_at(const Kept* kept, Py_ssize_t x, Py_ssize_t y) noexcept nogil:
    return &kept.cells[(x + y * <Py_ssize_t> ROW) & kept.mask]


cdef inline bint suppressed(const Kept* kept, const Box* box, real threshold) noexcept nogil:
    cdef Region region
    cdef const Cell* cell
    cdef Py_ssize_t x, y
    cdef Py_ssize_t nearby
    if kept.cells == NULL:
        return all_suppress(kept, box, threshold)
    region = region_of(kept, box, 0)
    if region.cells > MOST_CELLS:
        return all_suppress(kept, box, threshold)
    nearby = kept.cells[kept.mask + 1].boxes
    for y in range(region.top, region.bottom + 1):
        for x in range(region.left, region.right + 1):
            cell = cell_at(kept, x, y)
            nearby += cell.boxes
            prefetch(kept.nodes + max(cell.newest, 0))
    if nearby * COST > kept.count:
        return all_suppress(kept, box, threshold)
    for y in range(region.top, region.bottom + 1):
        for x in range(region.left, region.right + 1):
            if cell_suppresses(kept, cell_at(kept, x, y), box, threshold):
                return True
    return cell_suppresses(kept, &kept.cells[kept.mask + 1], box, threshold)


cdef inline int keep(Kept* kept, const Box* box, real threshold) noexcept nogil:
    cdef Region region
    cdef Py_ssize_t x, y
    cdef int failed = put_in_block(kept, box)
    if kept.cells != NULL:
        region = region_of(kept, box, core_margin(threshold, box.area))
        if region.cells > MOST_CELLS:
            return failed | put_in_cell(kept, &kept.cells[kept.mask + 1], box)
        for y in range(region.top, region.bottom + 1):
            for x in range(region.left, region.right + 1):
                failed |= put_in_cell(kept, cell_at(kept, x, y), box)
    return failed


cdef inline real typical(real* lengths, Py_ssize_t count) noexcept nogil:
    """Middle of a few lengths, which it sorts."""
    cdef Py_ssize_t i, j
    cdef real moved
    for i in range(1, count):
        moved = lengths[i]
        j = i
        while j > 0 and lengths[j - 1] > moved:
            lengths[j] = lengths[j - 1]
            j -= 1
        lengths[j] = moved
    return lengths[count // 2]


cdef int make_grid(Kept* kept, const Candidate* candidates, Py_ssize_t count, const real* boxes,
                   const Rule* rule) noexcept nogil:
    """Cells as large as a typical box, about one for each candidate."""
    cdef real[SAMPLES] widths
    cdef real[SAMPLES] heights
    cdef Py_ssize_t found = 0
    cdef Py_ssize_t i
    cdef Box box
    for i in range(SAMPLES):
        box = load_box(boxes + 4 * candidates[i * (count - 1) // (SAMPLES - 1)].index, rule)
        if box.area > 0:
            widths[found], heights[found] = box.x2 - box.x1, box.y2 - box.y1
            found += 1
    if found == 0:
        return 0
    kept.cells_x = 1 / max(typical(widths, found), <real> 1e-30)
    kept.cells_y = 1 / max(typical(heights, found), <real> 1e-30)
    kept.mask = 1
    while kept.mask < count:
        kept.mask *= 2
    kept.cells = <Cell*> malloc((kept.mask + 1) * sizeof(Cell))
    if kept.cells == NULL:
        return -1
    for i in range(kept.mask + 1):
        kept.cells[i].newest, kept.cells[i].boxes = -1, 0
    kept.mask -= 1
    return 0


cdef Py_ssize_t select(Candidate* items, Candidate* spare, Py_ssize_t count, const real* boxes, const Rule* rule,
                       Py_ssize_t limit) noexcept nogil:
    """Order the candidates in spare and leave those kept at the head of items; return how many, or -1."""
    cdef Kept kept
    cdef Queue queue
    cdef Box box
    cdef Py_ssize_t i
    cdef Py_ssize_t selected = 0
    cdef int failed
    if count == 0 or limit == 0:
        return 0
    memset(&kept, 0, sizeof(Kept))
    failed = open_queue(&queue, items, spare, count)
    if not failed and min(count, limit) >= GRID_FROM and count < GRID_TO:
        failed = make_grid(&kept, items, count, boxes, rule)
    for i in range(count):
        if failed or selected == limit:
            break
        sort_until(&queue, i)
        prefetch(boxes + 4 * items[min(i + AHEAD, count - 1)].index)
        box = load_box(boxes + 4 * items[i].index, rule)
        if box.area > 0:
            if suppressed(&kept, &box, rule.threshold):
                continue
            failed = keep(&kept, &box, rule.threshold)
        items[selected] = items[i]
        selected += 1
    free(queue.ends)
    free(kept.blocks)
    free(kept.nodes)
    free(kept.cells)
    return -1 if failed else selected
