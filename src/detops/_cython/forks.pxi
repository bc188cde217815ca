# Functions that run around every fork of the process, Python's or another library's. No Python code runs between
# `before` and the other two, so a lock that is taken without the interpreter's cannot wait for one that it holds.
cdef extern from *:
    """
    #ifndef _WIN32
    #include <pthread.h>
    #define detops_at_fork(before, in_parent, in_child) pthread_atfork(before, in_parent, in_child)
    #else
    #define detops_at_fork(before, in_parent, in_child) 0
    #endif
    """
    int at_fork "detops_at_fork" (
        void (*before)() noexcept nogil, void (*in_parent)() noexcept nogil, void (*in_child)() noexcept nogil
    ) nogil
