# A matrix product for one thread, of matrices that the caller has laid out for it. Rows are sums over terms; a panel
# holds the LANES factors of a term side by side for as many columns of the result: packed[term][lane].
#
# A tile of ROWS x LANES sums stays in vector registers while all terms pass by. Each sum runs over the terms in their
# order, whatever the block that a row is in. docs/decisions/0021-product-of-deform-conv.md says why it is not BLAS.
cdef extern from *:
    """
    #if defined(__AVX512F__)
    #define DETOPS_VECTOR 64
    #define DETOPS_ROWS 12
    #elif defined(__AVX__)
    #define DETOPS_VECTOR 32
    #define DETOPS_ROWS 6
    #else
    #define DETOPS_VECTOR 16
    #define DETOPS_ROWS 4
    #endif
    #define DETOPS_LANES (2 * DETOPS_VECTOR / (int) sizeof(detops_element))

    #if defined(__GNUC__)
    typedef detops_element detops_vector __attribute__((vector_size(DETOPS_VECTOR), aligned(sizeof(detops_element))));
    #define DETOPS_GROUP (DETOPS_VECTOR / (int) sizeof(detops_element))
    #else
    typedef detops_element detops_vector;
    #define DETOPS_GROUP 1
    #endif
    #define DETOPS_VECTORS (DETOPS_LANES / DETOPS_GROUP)

    static void detops_product(const detops_element* rows, Py_ssize_t stride, const detops_element* packed,
                               Py_ssize_t terms, detops_element* sums) {
        detops_vector total[DETOPS_ROWS][DETOPS_VECTORS];
        int row, lane;
        Py_ssize_t term;
        for (row = 0; row < DETOPS_ROWS; row++)
            for (lane = 0; lane < DETOPS_VECTORS; lane++)
                total[row][lane] = (detops_vector) {0};
        for (term = 0; term < terms; term++) {
            const detops_vector* factors = (const detops_vector*) (packed + term * DETOPS_LANES);
            for (row = 0; row < DETOPS_ROWS; row++) {
                const detops_element factor = rows[row * stride + term];
                for (lane = 0; lane < DETOPS_VECTORS; lane++)
                    total[row][lane] += factors[lane] * factor;
            }
        }
        for (row = 0; row < DETOPS_ROWS; row++)
            for (lane = 0; lane < DETOPS_VECTORS; lane++)
                ((detops_vector*) (sums + row * DETOPS_LANES))[lane] = total[row][lane];
    }
    """
    enum:
        ROWS "DETOPS_ROWS"
        LANES "DETOPS_LANES"
    # sums[ROWS][LANES] = ROWS rows, stride elements apart, times one packed panel.
    void panel_product "detops_product" (const real* rows, Py_ssize_t stride, const real* packed, Py_ssize_t terms,
                                        real* sums) noexcept nogil
