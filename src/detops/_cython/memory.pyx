"""Memory of large results and of scratch space, used again.

Fresh pages of the system cost more than the work of most operators. Memory that a result has left is therefore kept
for the next. Most of it is marked as free meanwhile (MADV_FREE): the system takes the pages when it needs them, and not before.
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
    # Blocks that are in use at most. Each is a mapping of its own, of which Linux allows a process 65,530; the C
    # library lays its mappings side by side, where they count as one.
    MOST_USED = 4096
    # Blocks that are kept at most.
    MAX_CACHED = 32
    # Bytes from which on results lie in blocks; the C library keeps smaller memory by itself.
    LARGE = 1 << 20
    # Blocks are multiples of it, so that one fits the next use also where sizes differ a little.
    STEP = 1 << 16
    # Bytes of the newest blocks that are not marked as free: to use marked ones again costs a tenth of what fresh pages
    # do. The C library keeps as much.
    RETAIN_BYTES = 1 << 26


cdef struct CachedBlock:
    void* address
    size_t size
    bint reclaimable


cdef struct Store:
    PyThread_type_lock lock
    # The blocks that nobody uses, the oldest first.
    CachedBlock[MAX_CACHED] blocks
    int count
    size_t bytes
    size_t most_bytes
    # Blocks that are in use.
    Py_ssize_t used


cdef Store store


cdef void lock() noexcept nogil:
    PyThread_acquire_lock(store.lock, WAIT_LOCK)


cdef void unlock() noexcept nogil:
    PyThread_release_lock(store.lock)


cdef CachedBlock remove(int which) noexcept nogil:
    cdef CachedBlock block = store.blocks[which]
    cdef int i
    store.count -= 1
    store.bytes -= block.size
    for i in range(which, store.count):
        store.blocks[i] = store.blocks[i + 1]
    return block


cdef CachedBlock find(size_t size) noexcept nogil:
    """The smallest kept block that is large enough, and not much larger."""
    cdef int i, best = -1
    cdef CachedBlock none
    none.address, none.size, none.reclaimable = NULL, 0, False
    for i in range(store.count):
        if size <= store.blocks[i].size <= size + size // 4 and (
            best < 0 or store.blocks[i].size < store.blocks[best].size
        ):
            best = i
    if best >= 0:
        return remove(best)
    return none


cdef void drop_oldest() noexcept nogil:
    cdef CachedBlock oldest = remove(0)
    unmap_pages(oldest.address, oldest.size)


cdef void shrink(size_t room) noexcept nogil:
    """Let the oldest go until there is room for one block more, of `room` bytes."""
    while store.count > 0 and (store.count == MAX_CACHED or store.bytes + room > store.most_bytes):
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


cdef CachedBlock take(size_t bytes) noexcept nogil:
    """Kept memory or new; the address is NULL and the size 0 where there is none, or too many blocks are in use."""
    cdef size_t size = (bytes + STEP - 1) // STEP * STEP
    cdef CachedBlock block
    cdef bint allowed
    block.address, block.size, block.reclaimable = NULL, 0, False
    lock()
    allowed = store.used < MOST_USED
    if allowed:
        store.used += 1
        block = find(size)
    unlock()
    if not allowed or block.address != NULL:
        return block
    block.address = map_pages(size)
    if block.address == NULL and make_room():
        block.address = map_pages(size)
    if block.address != NULL:
        block.size = size
    else:
        lock()
        store.used -= 1
        unlock()
    return block


cdef void madvise_free_oldest() noexcept nogil:
    """Offer all but the newest blocks."""
    cdef size_t retained = 0
    cdef int i
    for i in range(store.count - 1, -1, -1):
        retained += store.blocks[i].size
        if retained > RETAIN_BYTES and not store.blocks[i].reclaimable:
            madvise_free(store.blocks[i].address, store.blocks[i].size)
            store.blocks[i].reclaimable = True


cdef void keep(CachedBlock block) noexcept nogil:
    lock()
    store.used -= 1
    if block.size <= store.most_bytes:
        block.reclaimable = False
        shrink(block.size)
        store.blocks[store.count] = block
        store.count += 1
        store.bytes += block.size
        block.address = NULL
        madvise_free_oldest()
    unlock()
    if block.address != NULL:
        unmap_pages(block.address, block.size)


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
    cdef CachedBlock block
    block.address, block.size = NULL, 0
    if KEEPS and bytes >= LARGE:
        block = take(bytes)
    if block.address == NULL:
        block.address = allocate_bytes(bytes)
    scratch.address, scratch.size = block.address, block.size
    return -1 if block.address == NULL else 0


cdef void return_scratch(Scratch* scratch) noexcept nogil:
    cdef CachedBlock block
    if scratch.size == 0:
        free(scratch.address)
    else:
        block.address, block.size = scratch.address, scratch.size
        keep(block)
    scratch.address = NULL
    scratch.size = 0


borrow = PyCapsule_New(<void*> borrow_scratch, NULL, NULL)
give_back = PyCapsule_New(<void*> return_scratch, NULL, NULL)
allocate = PyCapsule_New(<void*> allocate_bytes, NULL, NULL)
reallocate = PyCapsule_New(<void*> reallocate_bytes, NULL, NULL)
allocate_zeroed = PyCapsule_New(<void*> allocate_zeros, NULL, NULL)


cdef class Memory:
    """Bytes that go back when the last array on them is gone."""

    cdef CachedBlock block
    cdef Py_ssize_t used

    def __cinit__(self, Py_ssize_t used):
        self.used = used
        self.block = take(used)
        if self.block.address != NULL:
            PyTraceMalloc_Track(TRACE_DOMAIN, <uintptr_t> self.block.address, used)

    def __dealloc__(self):
        if self.block.address != NULL:
            PyTraceMalloc_Untrack(TRACE_DOMAIN, <uintptr_t> self.block.address)
            keep(self.block)

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.block.address, self.used, 0, flags)


cdef object new_array = np.empty


def empty(shape, dtype):
    """Return a new C-contiguous array, like `numpy.empty`."""
    cdef double size = dtype.itemsize
    for length in shape:
        size *= length
    cdef Memory memory
    if KEEPS and LARGE <= size <= <double> (1 << 62):
        memory = Memory(<Py_ssize_t> size)
        if memory.block.address != NULL:
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
