# Channels side by side in vector registers.
cdef extern from *:
    """
    #define DETOPS_BLOCK_CHANNELS ((Py_ssize_t) (64 / sizeof(detops_element)))
    /* A pointer to what nothing else points to while a function runs: lets the compiler use vectors. */
    typedef detops_element* __restrict detops_restricted;
    #if defined(__GNUC__)
    #if defined(__AVX512F__)
    #define DETOPS_VECTOR 64
    #elif defined(__AVX__)
    #define DETOPS_VECTOR 32
    #else
    #define DETOPS_VECTOR 16
    #endif
    typedef detops_element detops_vector
        __attribute__((vector_size(DETOPS_VECTOR), aligned(sizeof(detops_element)), may_alias));
    /* The result of a function that is compiled anew for the constants of each call. */
    #define detops_always_inline void __attribute__((always_inline))
    #else
    typedef detops_element detops_vector;
    #define detops_always_inline void
    #endif
    """
    # Channels in a block: a line of the cache.
    enum: BLOCK_CHANNELS "DETOPS_BLOCK_CHANNELS"
    # A register of the instruction set, with the arithmetic of a number.
    ctypedef float vector "detops_vector"
    # Registers that a block takes.
    enum: VECTORS "DETOPS_BLOCK_CHANNELS * sizeof(detops_element) / sizeof(detops_vector)"
    ctypedef real* restricted "detops_restricted"
    ctypedef void always_inline "detops_always_inline"

ctypedef fused lane_group:
    real
    vector
