# Locks and threads of CPython, which has them on every system.
cdef extern from "pythread.h" nogil:
    # Cython declares some of them as in need of the GIL, which none is.
    ctypedef void* PyThread_type_lock
    enum:
        WAIT_LOCK
    PyThread_type_lock PyThread_allocate_lock()
    int PyThread_acquire_lock(PyThread_type_lock lock, int wait)
    void PyThread_release_lock(PyThread_type_lock lock)
    unsigned long PyThread_start_new_thread(void (*life)(void*) noexcept, void* argument)
