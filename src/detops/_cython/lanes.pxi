# Channels side by side in vector registers.
cdef extern from *:
    """
    #define DETOPS_LANES ((Py_ssize_t) (64 / sizeof(detops_element)))
    /* A pointer to what nothing else points to while a function runs: lets the compiler use vectors. */
    typedef detops_element* __restrict detops_unaliased;
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
    #define detops_specialized void __attribute__((always_inline))
    #else
    typedef detops_element detops_vector;
    #define detops_specialized void
    #endif
    """
    # Channels in a block: a line of the cache.
    enum: LANES "DETOPS_LANES"
    # A register of the instruction set, with the arithmetic of a number.
    ctypedef float vector "detops_vector"
    # Registers that a block takes.
    enum: VECTORS "DETOPS_LANES * sizeof(detops_element) / sizeof(detops_vector)"
    ctypedef real* unaliased "detops_unaliased"
    ctypedef void specialized "detops_specialized"

ctypedef fused lane_group:
    real
    vector
