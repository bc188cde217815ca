"""Memory of large results and of scratch space, used again.

Fresh pages of the system cost more than the work of most operators. Memory that a result has left is therefore kept
for the next. Most of it is offered to the system meanwhile, which takes the pages when it needs them, and not before.
"""


import os

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.pycapsule cimport PyCapsule_New
from libc.stdlib cimport free, malloc

import numpy as np

from detops._memory import MIB, keep_mib

include "scratch_type.pxi"
include "pythread.pxi"
include "pages.pxi"


cdef enum:
    # Pieces that are kept at most.
    PIECES = 32
    # What is smaller the C library keeps by itself.
    LARGE = 1 << 20
    # Pieces are multiples of it, so that one fits the next use also where sizes differ a little.
    STEP = 1 << 16
    # So much is not offered: taking an offer back costs a tenth of what fresh pages do. The C library keeps as much.
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


cdef Store store


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


cdef void shrink(size_t room) noexcept nogil:
    """Let the oldest go until there is so much room for one piece more."""
    cdef Piece oldest
    while store.count > 0 and (store.count == PIECES or store.bytes + room > store.most_bytes):
        oldest = remove(0)
        unmap_pages(oldest.address, oldest.size)


cdef Piece take(size_t bytes) noexcept nogil:
    """Kept memory or new; the address is NULL and the size 0 where there is none."""
    cdef size_t size = (bytes + STEP - 1) // STEP * STEP
    cdef Piece piece
    PyThread_acquire_lock(store.lock, WAIT_LOCK)
    piece = find(size)
    PyThread_release_lock(store.lock)
    if piece.address == NULL:
        piece.address = map_pages(size)
    if piece.address == NULL:
        # What is kept may be what is missing.
        PyThread_acquire_lock(store.lock, WAIT_LOCK)
        shrink(store.most_bytes + 1)
        PyThread_release_lock(store.lock)
        piece.address = map_pages(size)
    if piece.size == 0 and piece.address != NULL:
        piece.size = size
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
    PyThread_acquire_lock(store.lock, WAIT_LOCK)
    if piece.size <= store.most_bytes:
        piece.offered = False
        shrink(piece.size)
        store.pieces[store.count] = piece
        store.count += 1
        store.bytes += piece.size
        piece.address = NULL
        offer_oldest()
    PyThread_release_lock(store.lock)
    if piece.address != NULL:
        unmap_pages(piece.address, piece.size)


cdef int borrow_scratch(Scratch* scratch, size_t bytes) noexcept nogil:
    """Scratch space of a kernel; 0, or -1 where memory ran out."""
    cdef Piece piece
    if KEEPS and bytes >= LARGE:
        piece = take(bytes)
    else:
        # One byte more, as NULL may stand for no bytes.
        piece.address, piece.size = malloc(bytes + 1), 0
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


cdef class Memory:
    """Bytes that go back when the last array on them is gone."""

    cdef Piece piece
    cdef Py_ssize_t used

    def __cinit__(self, Py_ssize_t used):
        self.used = used
        self.piece = take(used)
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
    if not KEEPS or size < LARGE or size > <double> (1 << 62):
        return np.empty(shape, dtype)
    return np.ndarray(shape, dtype, buffer=Memory(<Py_ssize_t> size))


def set_most_bytes(size_t size) -> None:
    """Keep no more than this many bytes that nobody uses."""
    PyThread_acquire_lock(store.lock, WAIT_LOCK)
    store.most_bytes = size
    shrink(0)
    PyThread_release_lock(store.lock)


def get_kept_bytes() -> int:
    """Return how many bytes are kept that nobody uses."""
    return store.bytes


def renew_lock() -> None:
    """Begin with an open lock: in a forked child it may be held by a thread that is not there."""
    store.lock = PyThread_allocate_lock()
    if store.lock == NULL:
        raise MemoryError("no lock for the memory of detops")


renew_lock()
set_most_bytes(keep_mib * MIB)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=renew_lock)
