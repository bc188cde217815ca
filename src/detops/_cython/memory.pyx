"""Memory of large results and of scratch space, used again.

Fresh pages of the system cost more than the work of most operators. Memory that a result has left is therefore kept
for the next. Most of it is offered to the system meanwhile, which takes the pages when it needs them, and not before.
"""

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.pycapsule cimport PyCapsule_New
from libc.stdint cimport uintptr_t
from libc.stdlib cimport calloc, free, malloc, realloc

import numpy as np

from detops.runtime._memory import MIB, keep_mib

include "scratch_type.pxi"
include "pythread.pxi"
include "pages.pxi"
include "forks.pxi"


cdef extern from "Python.h" nogil:
    # Both return at once where tracemalloc is off.
    int PyTraceMalloc_Track(unsigned int domain, uintptr_t address, size_t size)
    int PyTraceMalloc_Untrack(unsigned int domain, uintptr_t address)


cdef enum:
    # The domain of results in tracemalloc: any number that no other library is known to use.
    TRACE_DOMAIN = 0xde709
    # Pieces that are in use at most. Each is a mapping of its own, of which Linux allows a process 65,530; the C
    # library lays its mappings side by side, where they count as one.
    MOST_USED = 4096
    # Pieces that are kept at most.
    PIECES = 32
    # Bytes from which on results lie in pieces; the C library keeps smaller memory by itself.
    LARGE = 1 << 20
    # Pieces are multiples of it, so that one fits the next use also where sizes differ a little.
    STEP = 1 << 16
    # Bytes of the newest pieces that are not offered to the system: to take an offer back costs a tenth of what fresh
    # pages do. The C library keeps as much.
    WITHHELD = 1 << 26


cdef struct Piece:
    void* address
    size_t size
    bint offered


cdef struct Store:
    PyThread_type_lock lock
    # The pieces that nobody uses, the oldest first.
    Piece[PIECES] pieces
    int count
    size_t bytes
    size_t most_bytes
    # Pieces that are in use.
    Py_ssize_t used


cdef Store store


cdef void lock() noexcept nogil:
    PyThread_acquire_lock(store.lock, WAIT_LOCK)


cdef void unlock() noexcept nogil:
    PyThread_release_lock(store.lock)


cdef Piece remove(int which) noexcept nogil:
    cdef Piece piece = store.pieces[which]
    cdef int i
    store.count -= 1
    store.bytes -= piece.size
    for i in range(which, store.count):
        store.pieces[i] = store.pieces[i + 1]
    return piece


cdef Piece find(size_t size) noexcept nogil:
    """The smallest kept piece that is large enough, and not much larger."""
    cdef int i, best = -1
    cdef Piece none
    none.address, none.size, none.offered = NULL, 0, False
    for i in range(store.count):
        if size <= store.pieces[i].size <= size + size // 4 and (
            best < 0 or store.pieces[i].size < store.pieces[best].size
        ):
            best = i
    if best >= 0:
        return remove(best)
    return none


cdef void drop_oldest() noexcept nogil:
    cdef Piece oldest = remove(0)
    unmap_pages(oldest.address, oldest.size)


cdef void shrink(size_t room) noexcept nogil:
    """Let the oldest go until there is room for one piece more, of `room` bytes."""
    while store.count > 0 and (store.count == PIECES or store.bytes + room > store.most_bytes):
        drop_oldest()


cdef bint make_room() noexcept nogil:
    """Give back all that is kept, as it may be what is missing; return whether there was any."""
    cdef bint found
    lock()
    found = store.count > 0
    while store.count > 0:
        drop_oldest()
    unlock()
    return found


cdef Piece take(size_t bytes) noexcept nogil:
    """Kept memory or new; the address is NULL and the size 0 where there is none, or too many pieces are in use."""
    cdef size_t size = (bytes + STEP - 1) // STEP * STEP
    cdef Piece piece
    cdef bint allowed
    piece.address, piece.size, piece.offered = NULL, 0, False
    lock()
    allowed = store.used < MOST_USED
    if allowed:
        store.used += 1
        piece = find(size)
    unlock()
    if not allowed or piece.address != NULL:
        return piece
    piece.address = map_pages(size)
    if piece.address == NULL and make_room():
        piece.address = map_pages(size)
    if piece.address != NULL:
        piece.size = size
    else:
        lock()
        store.used -= 1
        unlock()
    return piece


cdef void offer_oldest() noexcept nogil:
    """Offer all but the newest pieces."""
    cdef size_t withheld = 0
    cdef int i
    for i in range(store.count - 1, -1, -1):
        withheld += store.pieces[i].size
        if withheld > WITHHELD and not store.pieces[i].offered:
            offer_pages(store.pieces[i].address, store.pieces[i].size)
            store.pieces[i].offered = True


cdef void keep(Piece piece) noexcept nogil:
    lock()
    store.used -= 1
    if piece.size <= store.most_bytes:
        piece.offered = False
        shrink(piece.size)
        store.pieces[store.count] = piece
        store.count += 1
        store.bytes += piece.size
        piece.address = NULL
        offer_oldest()
    unlock()
    if piece.address != NULL:
        unmap_pages(piece.address, piece.size)


cdef void* allocate_bytes(size_t bytes) noexcept nogil:
    """The C library's malloc, for which what is kept makes room; no bytes have an address too."""
    cdef void* address = malloc(max(bytes, <size_t> 1))
    if address == NULL and make_room():
        address = malloc(max(bytes, <size_t> 1))
    return address


cdef void* allocate_zeros(size_t count, size_t width) noexcept nogil:
    """The C library's calloc, for which what is kept makes room; nothing has an address too."""
    cdef void* address = calloc(max(count, <size_t> 1), width)
    if address == NULL and make_room():
        address = calloc(max(count, <size_t> 1), width)
    return address


cdef void* reallocate_bytes(void* address, size_t bytes) noexcept nogil:
    """The C library's realloc, for which what is kept makes room; the old memory stays where there is none."""
    cdef void* moved = realloc(address, bytes)
    if moved == NULL and make_room():
        moved = realloc(address, bytes)
    return moved


cdef int borrow_scratch(Scratch* scratch, size_t bytes) noexcept nogil:
    """Scratch space of a kernel; 0, or -1 where memory ran out."""
    cdef Piece piece
    piece.address, piece.size = NULL, 0
    if KEEPS and bytes >= LARGE:
        piece = take(bytes)
    if piece.address == NULL:
        piece.address = allocate_bytes(bytes)
    scratch.address, scratch.size = piece.address, piece.size
    return -1 if piece.address == NULL else 0


cdef void return_scratch(Scratch* scratch) noexcept nogil:
    cdef Piece piece
    if scratch.size == 0:
        free(scratch.address)
    else:
        piece.address, piece.size = scratch.address, scratch.size
        keep(piece)
    scratch.address = NULL
    scratch.size = 0


borrow = PyCapsule_New(<void*> borrow_scratch, NULL, NULL)
give_back = PyCapsule_New(<void*> return_scratch, NULL, NULL)
allocate = PyCapsule_New(<void*> allocate_bytes, NULL, NULL)
reallocate = PyCapsule_New(<void*> reallocate_bytes, NULL, NULL)
allocate_zeroed = PyCapsule_New(<void*> allocate_zeros, NULL, NULL)


cdef class Memory:
    """Bytes that go back when the last array on them is gone."""

    cdef Piece piece
    cdef Py_ssize_t used

    def __cinit__(self, Py_ssize_t used):
        self.used = used
        self.piece = take(used)
        if self.piece.address != NULL:
            PyTraceMalloc_Track(TRACE_DOMAIN, <uintptr_t> self.piece.address, used)

    def __dealloc__(self):
        if self.piece.address != NULL:
            PyTraceMalloc_Untrack(TRACE_DOMAIN, <uintptr_t> self.piece.address)
            keep(self.piece)

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.piece.address, self.used, 0, flags)


cdef object new_array = np.empty


def empty(shape, dtype):
    """Return a new C-contiguous array, like `numpy.empty`."""
    cdef double size = dtype.itemsize
    for length in shape:
        size *= length
    cdef Memory memory
    if KEEPS and LARGE <= size <= <double> (1 << 62):
        memory = Memory(<Py_ssize_t> size)
        if memory.piece.address != NULL:
            return np.ndarray(shape, dtype, buffer=memory)
    try:
        return new_array(shape, dtype)
    except MemoryError:
        return with_room(np.empty, shape, dtype)


def with_room(make, *arguments, **options):
    """Return what `make` returns; where memory runs out, give back what is kept and call it once more."""
    try:
        return make(*arguments, **options)
    except MemoryError:
        if not make_room():
            raise
    return make(*arguments, **options)


def set_most_bytes(size_t size) -> None:
    """Keep no more than this many bytes that nobody uses."""
    with nogil:
        lock()
        store.most_bytes = size
        shrink(0)
        unlock()


def get_kept_bytes() -> int:
    """Return how many bytes are kept that nobody uses."""
    cdef size_t bytes
    lock()
    bytes = store.bytes
    unlock()
    return bytes


cdef void renew_lock() noexcept nogil:
    """Begin with an open lock: the parent's was held for the fork, and others may have waited for it."""
    cdef PyThread_type_lock fresh = PyThread_allocate_lock()
    if fresh == NULL:
        unlock()
    else:
        store.lock = fresh


store.lock = PyThread_allocate_lock()
if store.lock == NULL or at_fork(lock, unlock, renew_lock):
    raise MemoryError("no lock for the memory of detops")
set_most_bytes(keep_mib * MIB)
