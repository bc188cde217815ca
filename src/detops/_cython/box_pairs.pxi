# Boxes compared with boxes: each with each, or pairs. A file that includes this has BLOCK boxes held as planes, a Block,
# in the first-level cache; it says how many NUMBERS a box has, how a Block is loaded, and how two are compared.
cdef enum:
    # Boxes that each block is compared with.
    ROWS = 128


cdef inline Py_ssize_t blocks_of(Py_ssize_t count, Py_ssize_t size) noexcept nogil:
    return (count + size - 1) // size


cdef int pairs_loop(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is a block of pairs, in one row."""
    cdef const BoxIou* work = <const BoxIou*> arguments
    cdef Block a, b
    cdef Py_ssize_t item, first, count
    for item in range(begin, end):
        first = item * BLOCK
        count = min(work.columns - first, <Py_ssize_t> BLOCK)
        load(work.boxes_a + NUMBERS * first, count, work, &a)
        load(work.boxes_b + NUMBERS * first, count, work, &b)
        compare_blocks(&a, 1, &b, count, work, work.out + first)
    stream_end()
    return 0


cdef int all_loop(const void* arguments, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """One item is a tile: some rows of a block of columns."""
    cdef const BoxIou* work = <const BoxIou*> arguments
    cdef Py_ssize_t blocks = blocks_of(work.columns, BLOCK)
    cdef Block a, b
    cdef Py_ssize_t item, first, count, row
    for item in range(begin, end):
        first = item % blocks * BLOCK
        count = min(work.columns - first, <Py_ssize_t> BLOCK)
        load(work.boxes_b + NUMBERS * first, count, work, &b)
        for row in range(item // blocks * ROWS, min(item // blocks * ROWS + ROWS, work.rows)):
            load(work.boxes_a + NUMBERS * row, 1, work, &a)
            compare_blocks(&a, 0, &b, count, work, work.out + row * work.columns + first)
    stream_end()
    return 0


cdef int compare_all(const void* arguments, const Executor* executor) noexcept nogil:
    cdef const BoxIou* work = <const BoxIou*> arguments
    cdef Py_ssize_t tile = min(work.rows, <Py_ssize_t> ROWS) * min(work.columns, <Py_ssize_t> BLOCK)
    return executor.parallel_for(executor, all_loop, work, blocks_of(work.rows, ROWS) * blocks_of(work.columns, BLOCK),
                                 1 + GRAIN // tile)


cdef int compare_pairs(const void* arguments, const Executor* executor) noexcept nogil:
    cdef const BoxIou* work = <const BoxIou*> arguments
    return executor.parallel_for(executor, pairs_loop, work, blocks_of(work.columns, BLOCK), 1 + GRAIN // BLOCK)
