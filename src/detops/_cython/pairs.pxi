# Loading elements from anywhere into vectors without gathers, which are slow on some processors; neighbors in pairs, which
# is half as many loads.
cdef extern from *:
    """
    /* The two neighbors at each of four places, those on the left and those on the right together. Compilers make
       gathers, or narrow stores that a wide load has to wait for, of loops that say the same. */
    #if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12)
    typedef detops_element detops_pair
        __attribute__((vector_size(2 * sizeof(detops_element)), aligned(sizeof(detops_element)), may_alias));
    typedef detops_element detops_four
        __attribute__((vector_size(4 * sizeof(detops_element)), aligned(sizeof(detops_element)), may_alias));
    static inline void detops_split_pairs(const detops_element* source, const Py_ssize_t* at, detops_element* left,
                                          detops_element* right) {
        const detops_pair a = *(const detops_pair*) (source + at[0]), b = *(const detops_pair*) (source + at[1]);
        const detops_pair c = *(const detops_pair*) (source + at[2]), d = *(const detops_pair*) (source + at[3]);
        const detops_four ab = __builtin_shufflevector(a, b, 0, 1, 2, 3), cd = __builtin_shufflevector(c, d, 0, 1, 2, 3);
        *(detops_four*) left = __builtin_shufflevector(ab, cd, 0, 2, 4, 6);
        *(detops_four*) right = __builtin_shufflevector(ab, cd, 1, 3, 5, 7);
    }
    static const detops_element detops_nothing = 0;
    static inline const detops_element* detops_find(const detops_element* source, Py_ssize_t at) {
        return at < 0 ? &detops_nothing : source + at;
    }
    static inline void detops_collect(const detops_element* source, const Py_ssize_t* at, detops_element* out) {
        const detops_element *a = detops_find(source, at[0]), *b = detops_find(source, at[1]);
        const detops_element *c = detops_find(source, at[2]), *d = detops_find(source, at[3]);
        *(detops_four*) out = (detops_four) {*a, *b, *c, *d};
    }
    #else
    static inline void detops_collect(const detops_element* source, const Py_ssize_t* at, detops_element* out) {
        int i;
        for (i = 0; i < 4; i++) out[i] = at[i] < 0 ? 0 : source[at[i]];
    }
    static inline void detops_split_pairs(const detops_element* source, const Py_ssize_t* at, detops_element* left,
                                          detops_element* right) {
        int i;
        for (i = 0; i < 4; i++) {
            left[i] = source[at[i]];
            right[i] = source[at[i] + 1];
        }
    }
    #endif
    """
    void split_pairs "detops_split_pairs" (
        const real* source, const Py_ssize_t* at, real* left, real* right) noexcept nogil
    # The elements at four places, 0 where a place is below 0.
    void collect "detops_collect" (const real* source, const Py_ssize_t* at, real* out) noexcept nogil
