# Memory of the C library for kernels, for which what memory.pyx keeps makes room: `free` takes it back.
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdlib cimport free

from detops._cython import memory

ctypedef void* (*allocate_t)(size_t bytes) noexcept nogil
ctypedef void* (*reallocate_t)(void* address, size_t bytes) noexcept nogil
ctypedef void* (*allocate_zeroed_t)(size_t count, size_t width) noexcept nogil

# NULL where memory ran out, also after all that was kept was given back.
cdef allocate_t allocate = <allocate_t> PyCapsule_GetPointer(memory.allocate, NULL)
cdef reallocate_t reallocate = <reallocate_t> PyCapsule_GetPointer(memory.reallocate, NULL)
cdef allocate_zeroed_t allocate_zeroed = <allocate_zeroed_t> PyCapsule_GetPointer(memory.allocate_zeroed, NULL)
