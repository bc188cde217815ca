# Asking for a line of the cache before its turn, where the compiler knows how.
cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define detops_prefetch(address) __builtin_prefetch(address)
    #else
    #define detops_prefetch(address) ((void) (address))
    #endif
    """
    void prefetch "detops_prefetch" (const void* address) noexcept nogil
