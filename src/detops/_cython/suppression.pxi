# Greedy suppression: a box is kept unless one that was kept before overlaps it too much. Kept boxes lie side by side
# in blocks that are compared at once. Where they become many, a grid that wraps around gives those nearby.

cdef enum:
    LANES = 16
    # So many boxes are worth a grid; a box that covers more than so many cells is compared with all.
    GRID_FROM = 128
    MOST_CELLS = 64
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
    # The block before it in the same cell, -1 for none.
    Py_ssize_t before

cdef struct Blocks:
    Block* items
    Py_ssize_t count
    Py_ssize_t capacity

cdef struct Cell:
    Py_ssize_t newest
    Py_ssize_t boxes

cdef struct Region:
    Py_ssize_t left
    Py_ssize_t top
    Py_ssize_t right
    Py_ssize_t bottom
    Py_ssize_t cells

cdef struct Kept:
    # All kept boxes; then those in the cells of the grid, if there is one. The last cell is for wide boxes.
    Blocks blocks
    Cell all
    Blocks in_grid
    Cell* grid
    Py_ssize_t mask
    real cells_x
    real cells_y


cdef inline Box load_box(const real* box, const Rule* rule) noexcept nogil:
    cdef Box found
    found.x1, found.x2 = box_side(box[0], box[2], rule.form)
    found.y1, found.y2 = box_side(box[1], box[3], rule.form)
    found.x2 += rule.offset
    found.y2 += rule.offset
    found.area = box_area(found.x1, found.y1, found.x2, found.y2)
    return found


cdef inline bint block_suppresses(const Block* block, const Box* box, real threshold) noexcept nogil:
    """Lanes that hold no box are all 0, and overlap nothing."""
    cdef int lane
    cdef int hit = 0
    for lane in range(LANES):
        hit |= overlap_ratio(
            shared_area(box.x1, box.y1, box.x2, box.y2,
                        block.x1[lane], block.y1[lane], block.x2[lane], block.y2[lane]),
            box.area, block.area[lane]) > threshold
    return hit


cdef inline bint cell_suppresses(const Blocks* blocks, const Cell* cell, const Box* box, real threshold) noexcept nogil:
    cdef Py_ssize_t at = cell.newest
    while at >= 0:
        if block_suppresses(&blocks.items[at], box, threshold):
            return True
        at = blocks.items[at].before
    return False


cdef inline int put(Blocks* blocks, Cell* cell, const Box* box) noexcept nogil:
    """Add a box to a cell."""
    cdef Py_ssize_t lane = cell.boxes % LANES
    cdef Block* block
    cdef void* larger
    if lane == 0:
        if blocks.count == blocks.capacity:
            larger = realloc(blocks.items, (2 * blocks.capacity + 8) * sizeof(Block))
            if larger == NULL:
                return -1
            blocks.items = <Block*> larger
            blocks.capacity = 2 * blocks.capacity + 8
        memset(&blocks.items[blocks.count], 0, sizeof(Block))
        blocks.items[blocks.count].before = cell.newest
        cell.newest = blocks.count
        blocks.count += 1
    block = &blocks.items[cell.newest]
    block.x1[lane], block.y1[lane], block.x2[lane], block.y2[lane] = box.x1, box.y1, box.x2, box.y2
    block.area[lane] = box.area
    cell.boxes += 1
    return 0


cdef inline Region region_of(const Kept* kept, real x1, real y1, real x2, real y2) noexcept nogil:
    cdef Region region
    region.left, region.right = cell_of(x1, kept.cells_x), cell_of(x2, kept.cells_x)
    region.top, region.bottom = cell_of(y1, kept.cells_y), cell_of(y2, kept.cells_y)
    region.cells = (region.right - region.left + 1) * (region.bottom - region.top + 1)
    return region


cdef inline Cell* cell_at(const Kept* kept, Py_ssize_t x, Py_ssize_t y) noexcept nogil:
    return &kept.grid[(x + y * <Py_ssize_t> ROW) & kept.mask]


cdef inline bint suppressed(const Kept* kept, const Box* box, real threshold) noexcept nogil:
    cdef real margin_x, margin_y
    cdef Region region
    cdef Py_ssize_t x, y
    cdef Py_ssize_t nearby = 0
    if kept.grid != NULL:
        margin_x = margin_y = core_margin(threshold, box.area)
        margin_x *= box.x2 - box.x1
        margin_y *= box.y2 - box.y1
        region = region_of(kept, box.x1 + margin_x, box.y1 + margin_y, box.x2 - margin_x, box.y2 - margin_y)
        if region.cells <= MOST_CELLS:
            for y in range(region.top, region.bottom + 1):
                for x in range(region.left, region.right + 1):
                    nearby += cell_at(kept, x, y).boxes
            if nearby <= kept.all.boxes:
                for y in range(region.top, region.bottom + 1):
                    for x in range(region.left, region.right + 1):
                        if cell_suppresses(&kept.in_grid, cell_at(kept, x, y), box, threshold):
                            return True
                return cell_suppresses(&kept.in_grid, &kept.grid[kept.mask + 1], box, threshold)
    return cell_suppresses(&kept.blocks, &kept.all, box, threshold)


cdef inline int keep(Kept* kept, const Box* box) noexcept nogil:
    cdef Region region
    cdef Py_ssize_t x, y
    cdef int failed = put(&kept.blocks, &kept.all, box)
    if kept.grid != NULL:
        region = region_of(kept, box.x1, box.y1, box.x2, box.y2)
        if region.cells > MOST_CELLS:
            return failed | put(&kept.in_grid, &kept.grid[kept.mask + 1], box)
        for y in range(region.top, region.bottom + 1):
            for x in range(region.left, region.right + 1):
                failed |= put(&kept.in_grid, cell_at(kept, x, y), box)
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
    kept.grid = <Cell*> malloc((kept.mask + 1) * sizeof(Cell))
    if kept.grid == NULL:
        return -1
    for i in range(kept.mask + 1):
        kept.grid[i].newest, kept.grid[i].boxes = -1, 0
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
    kept.all.newest = -1
    failed = open_queue(&queue, items, spare, count)
    if not failed and min(count, limit) >= GRID_FROM:
        failed = make_grid(&kept, items, count, boxes, rule)
    for i in range(count):
        if failed or selected == limit:
            break
        sort_until(&queue, i)
        box = load_box(boxes + 4 * items[i].index, rule)
        if box.area > 0:
            if suppressed(&kept, &box, rule.threshold):
                continue
            failed = keep(&kept, &box)
        items[selected] = items[i]
        selected += 1
    free(queue.ends)
    free(kept.blocks.items)
    free(kept.in_grid.items)
    free(kept.grid)
    return -1 if failed else selected
