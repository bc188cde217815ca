# Memory that a kernel borrows: its address, and what give_back needs to know.
cdef struct Scratch:
    void* address
    size_t size
