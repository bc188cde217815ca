# Transposing matrices of elements, between planes and channels side by side.
cdef extern from *:
    """
    /* Four rows by four columns at a time, in registers. */
    #if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12)
    typedef detops_element detops_quad
        __attribute__((vector_size(4 * sizeof(detops_element)), aligned(sizeof(detops_element)), may_alias));
    #define DETOPS_QUAD(p) (*(detops_quad*) (p))
    static inline void detops_transpose_quads(const detops_element* source, Py_ssize_t stride, detops_element* target,
                                              Py_ssize_t target_stride) {
        const detops_quad a = DETOPS_QUAD(source), b = DETOPS_QUAD(source + stride);
        const detops_quad c = DETOPS_QUAD(source + 2 * stride), d = DETOPS_QUAD(source + 3 * stride);
        const detops_quad ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
        const detops_quad AB = __builtin_shufflevector(a, b, 2, 6, 3, 7), CD = __builtin_shufflevector(c, d, 2, 6, 3, 7);
        DETOPS_QUAD(target) = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
        DETOPS_QUAD(target + target_stride) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
        DETOPS_QUAD(target + 2 * target_stride) = __builtin_shufflevector(AB, CD, 0, 1, 4, 5);
        DETOPS_QUAD(target + 3 * target_stride) = __builtin_shufflevector(AB, CD, 2, 3, 6, 7);
    }
    #else
    static inline void detops_transpose_quads(const detops_element* source, Py_ssize_t stride, detops_element* target,
                                              Py_ssize_t target_stride) {
        int i, j;
        for (i = 0; i < 4; i++)
            for (j = 0; j < 4; j++)
                target[j * target_stride + i] = source[i * stride + j];
    }
    #endif
    """
    void transpose_quads "detops_transpose_quads" (
        const real* source, Py_ssize_t stride, real* target, Py_ssize_t target_stride) noexcept nogil


cdef inline void transpose(const real* source, Py_ssize_t stride, real* target, Py_ssize_t target_stride,
                           Py_ssize_t rows, Py_ssize_t columns) noexcept nogil:
    """Write rows, stride elements apart, as columns of a matrix whose rows are target_stride elements apart."""
    cdef Py_ssize_t whole_rows = rows - rows % 4
    cdef Py_ssize_t whole_columns = columns - columns % 4
    cdef Py_ssize_t i, j
    for i in range(0, whole_rows, 4):
        for j in range(0, whole_columns, 4):
            transpose_quads(source + i * stride + j, stride, target + j * target_stride + i, target_stride)
    for i in range(rows):
        for j in range(whole_columns if i < whole_rows else 0, columns):
            target[j * target_stride + i] = source[i * stride + j]
