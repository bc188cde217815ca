# Addresses of arrays that the public function has already checked: no dtype, shape or layout test is repeated here.
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer


cdef inline void* _start_of(object array, int flags) except? NULL:
    # The caller's argument keeps the array alive, so the buffer need not be held.
    cdef Py_buffer view
    PyObject_GetBuffer(array, &view, flags)
    cdef void* start = view.buf
    PyBuffer_Release(&view)
    return start


cdef inline const void* address(object array) except? NULL:
    """Start of a C-contiguous array that is only read; NULL for None."""
    return NULL if array is None else _start_of(array, PyBUF_SIMPLE)


cdef inline void* mutable(object array) except? NULL:
    """Start of a C-contiguous array that is written; NULL for None."""
    return NULL if array is None else _start_of(array, PyBUF_WRITABLE)
