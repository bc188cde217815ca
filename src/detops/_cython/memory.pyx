"""Memory of large results, used again.

Fresh pages of the system cost more than the work of most operators. Memory that a result has left is therefore kept
for the next one, and offered to the system meanwhile: it takes the pages when it needs them, and not before.
"""


from cpython.buffer cimport PyBuffer_FillInfo

import numpy as np


cdef extern from *:
    """
    #include <stddef.h>
    #if defined(__linux__) || defined(__APPLE__)
    #include <stdint.h>
    #include <sys/mman.h>
    #endif
    #define DETOPS_HUGE_PAGE ((size_t) 1 << 21)
    #if defined(MADV_FREE) && defined(MAP_ANONYMOUS)
    #define DETOPS_KEEPS 1
    /* Huge pages: a tenth of the faults. They want to start where one of them could. */
    static void* detops_map(size_t size) {
        char* found = (char*) mmap(NULL, size + DETOPS_HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        size_t head;
        if (found == (char*) MAP_FAILED) return NULL;
        head = (size_t) (-(uintptr_t) found & (DETOPS_HUGE_PAGE - 1));
        if (head > 0) munmap(found, head);
        munmap(found + head + size, DETOPS_HUGE_PAGE - head);
    #ifdef MADV_HUGEPAGE
        madvise(found + head, size, MADV_HUGEPAGE);
    #endif
        return found + head;
    }
    static void detops_unmap(void* address, size_t size) { munmap(address, size); }
    /* Whether the system may have the pages as soon as it needs them. */
    static int detops_offer(void* address, size_t size) { return madvise(address, size, MADV_FREE) == 0; }
    #else
    #define DETOPS_KEEPS 0
    static void* detops_map(size_t size) { return NULL; }
    static void detops_unmap(void* address, size_t size) {}
    static int detops_offer(void* address, size_t size) { return 0; }
    #endif
    """
    enum:
        KEEPS "DETOPS_KEEPS"
        HUGE_PAGE "DETOPS_HUGE_PAGE"
    void* map_pages "detops_map" (size_t size) noexcept
    void unmap_pages "detops_unmap" (void* address, size_t size) noexcept
    bint offer_pages "detops_offer" (void* address, size_t size) noexcept


cdef enum:
    # Pieces that are kept at most.
    PIECES = 16
    # What is smaller the C library keeps by itself.
    LARGE = 1 << 22


cdef struct Piece:
    void* address
    size_t size


# The pieces that nobody uses, the oldest first. The GIL guards them.
cdef Piece[PIECES] kept
cdef int pieces = 0
cdef size_t kept_bytes = 0
cdef size_t most_bytes = 0


cdef Piece remove(int which) noexcept:
    global pieces, kept_bytes
    cdef Piece piece = kept[which]
    cdef int i
    pieces -= 1
    kept_bytes -= piece.size
    for i in range(which, pieces):
        kept[i] = kept[i + 1]
    return piece


cdef Piece take(size_t size) noexcept:
    """The smallest kept piece that is large enough, and not much larger; otherwise a new one."""
    cdef int i, best = -1
    cdef Piece piece
    for i in range(pieces):
        if size <= kept[i].size <= size + size // 4 and (best < 0 or kept[i].size < kept[best].size):
            best = i
    if best >= 0:
        return remove(best)
    piece.address = map_pages(size)
    piece.size = size
    return piece


cdef void keep(Piece piece) noexcept:
    global pieces, kept_bytes
    cdef Piece oldest
    if piece.size > most_bytes or not offer_pages(piece.address, piece.size):
        unmap_pages(piece.address, piece.size)
        return
    while pieces == PIECES or kept_bytes + piece.size > most_bytes:
        oldest = remove(0)
        unmap_pages(oldest.address, oldest.size)
    kept[pieces] = piece
    pieces += 1
    kept_bytes += piece.size


cdef class Memory:
    """Bytes that go back when the last array on them is gone."""

    cdef Piece piece
    cdef Py_ssize_t used

    def __cinit__(self, Py_ssize_t used):
        self.used = used
        self.piece = take((used + HUGE_PAGE - 1) // HUGE_PAGE * HUGE_PAGE)
        if self.piece.address == NULL:
            raise MemoryError(f"not enough memory for a result of {used} bytes")

    def __dealloc__(self):
        if self.piece.address != NULL:
            keep(self.piece)

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.piece.address, self.used, 0, flags)


def empty(shape, dtype):
    """Return a new C-contiguous array, like `numpy.empty`."""
    cdef double size = dtype.itemsize
    for length in shape:
        size *= length
    if not KEEPS or most_bytes == 0 or size < LARGE or size > <double> (1 << 62):
        return np.empty(shape, dtype)
    return np.ndarray(shape, dtype, buffer=Memory(<Py_ssize_t> size))


def set_most_bytes(size_t size) -> None:
    """Keep no more than this many bytes that nobody uses."""
    global most_bytes
    cdef Piece oldest
    most_bytes = size
    while kept_bytes > most_bytes:
        oldest = remove(0)
        unmap_pages(oldest.address, oldest.size)


def get_kept_bytes() -> int:
    """Return how many bytes are kept that nobody uses."""
    return kept_bytes
