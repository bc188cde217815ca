# Greedy suppression: a box is kept unless one that was kept before overlaps it too much. Kept boxes lie side by side
# in blocks that are compared at once. Where they become many, a grid that wraps around finds those nearby.

include "prefetch.pxi"

cdef enum:
    # The boxes of candidates lie anywhere in memory: each is prefetched this many candidates before its turn.
    AHEAD = 8
    # Boxes from which on a grid is worth its cost; a box that covers more cells than MOST_CELLS is compared with all.
    GRID_FROM = 128
    MOST_CELLS = 64
    # Boxes in cells are numbered by an int, and none is in more than MOST_CELLS of them.
    GRID_TO = 1 << 25
    # A comparison through a cell takes this many times as long as one along the list.
    COST = 4
    SAMPLES = 63
    # Far apart in the table for neighboring rows of cells, and odd.
    ROW = 0x9E3779B1

cdef struct Region:
    Py_ssize_t left
    Py_ssize_t top
    Py_ssize_t right
    Py_ssize_t bottom
    Py_ssize_t cells

cdef inline Region region_of(const Kept* kept, const Box* box, real margin, real offset) noexcept nogil:
    """Cells under a box that loses such a part of its sides at each end.

    Boxes that share something, the offset included, meet in a cell: an end and what moves it are rounded together once,
    and that keeps their order. So no offset is put on an end beforehand, and no margin is cut off one.
    """
    cdef Region region
    cdef real x = margin * max(box.x2 - box.x1, <real> 0)
    cdef real y = margin * max(box.y2 - box.y1, <real> 0)
    region.left, region.right = cell_of(box.x1 + x, kept.cells_x), cell_of(box.x2 + (offset - x), kept.cells_x)
    region.top, region.bottom = cell_of(box.y1 + y, kept.cells_y), cell_of(box.y2 + (offset - y), kept.cells_y)
    region.cells = (region.right - region.left + 1) * (region.bottom - region.top + 1)
    return region


cdef inline Cell* cell_at(const Kept* kept, Py_ssize_t x, Py_ssize_t y) noexcept nogil:
    return &kept.cells[(x + y * <Py_ssize_t> ROW) & kept.mask]


cdef inline bint suppressed(const Selection* selection, const Box* box, const Rule* rule) noexcept nogil:
    cdef const Kept* kept = &selection.kept
    cdef Region region
    cdef const Cell* cell
    cdef Py_ssize_t x, y
    cdef Py_ssize_t nearby
    if kept.cells == NULL:
        return all_suppress(selection, box, rule)
    region = region_of(kept, box, 0, rule.offset)
    if region.cells > MOST_CELLS:
        return all_suppress(selection, box, rule)
    nearby = kept.cells[kept.mask + 1].boxes
    for y in range(region.top, region.bottom + 1):
        for x in range(region.left, region.right + 1):
            cell = cell_at(kept, x, y)
            nearby += cell.boxes
            prefetch(kept.nodes + max(cell.newest, 0))
    if nearby * COST > kept.count:
        return all_suppress(selection, box, rule)
    for y in range(region.top, region.bottom + 1):
        for x in range(region.left, region.right + 1):
            if cell_suppresses(selection, cell_at(kept, x, y), box, rule):
                return True
    return cell_suppresses(selection, &kept.cells[kept.mask + 1], box, rule)


cdef inline int keep(Selection* selection, Box* box, const Rule* rule) noexcept nogil:
    cdef Kept* kept = &selection.kept
    cdef Region region
    cdef Py_ssize_t x, y
    cdef int failed = remember(selection, box) or put_in_block(kept, box)
    if kept.cells != NULL:
        region = region_of(kept, box, margin_of(box, rule), rule.offset)
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
        box = load_box(boxes + NUMBERS * candidates[i * (count - 1) // (SAMPLES - 1)].index, rule)
        if box.area > 0:
            widths[found], heights[found] = box.width, box.height
            found += 1
    if found == 0:
        return 0
    kept.cells_x = 1 / max(typical(widths, found), <real> 1e-30)
    kept.cells_y = 1 / max(typical(heights, found), <real> 1e-30)
    kept.mask = 1
    while kept.mask < count:
        kept.mask *= 2
    kept.cells = <Cell*> allocate((kept.mask + 1) * sizeof(Cell))
    if kept.cells == NULL:
        return -1
    for i in range(kept.mask + 1):
        kept.cells[i].newest, kept.cells[i].boxes = -1, 0
    kept.mask -= 1
    return 0


cdef Py_ssize_t select(Candidate* items, Candidate* spare, Py_ssize_t count, const real* boxes, const Rule* rule,
                       Py_ssize_t top_k, Py_ssize_t limit) noexcept nogil:
    """Order the candidates in spare; of the first top_k, leave those kept at the head of items: how many, or -1."""
    cdef Selection selection
    cdef Kept* kept = &selection.kept
    cdef Queue queue
    cdef Box box
    cdef Py_ssize_t i
    cdef Py_ssize_t selected = 0
    cdef int failed
    if count == 0 or top_k == 0 or limit == 0:
        return 0
    memset(&selection, 0, sizeof(Selection))
    failed = open_queue(&queue, items, spare, count)
    count = min(count, top_k)
    if not failed and min(count, limit) >= GRID_FROM and count < GRID_TO:
        failed = make_grid(kept, items, count, boxes, rule)
    for i in range(count):
        if failed or selected == limit:
            break
        sort_until(&queue, i)
        prefetch(boxes + NUMBERS * items[min(i + AHEAD, count - 1)].index)
        box = load_box(boxes + NUMBERS * items[i].index, rule)
        if box.area > 0:
            if suppressed(&selection, &box, rule):
                continue
            failed = keep(&selection, &box, rule)
        items[selected] = items[i]
        selected += 1
    free(queue.ends)
    free(kept.blocks)
    free(kept.nodes)
    free(kept.cells)
    forget(&selection)
    return -1 if failed else selected
