# Scratch space of kernels: what is large comes from memory.pyx, and goes back there.
from cpython.pycapsule cimport PyCapsule_GetPointer

from detops._cython import memory

include "scratch_type.pxi"

ctypedef int (*borrow_t)(Scratch* scratch, size_t bytes) noexcept nogil
ctypedef void (*give_back_t)(Scratch* scratch) noexcept nogil

# 0, or -1 where memory ran out.
cdef borrow_t borrow = <borrow_t> PyCapsule_GetPointer(memory.borrow, NULL)
# Also of scratch space that could not be borrowed.
cdef give_back_t give_back = <give_back_t> PyCapsule_GetPointer(memory.give_back, NULL)
