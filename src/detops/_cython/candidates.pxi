# Collects the candidates for suppression, by their scores, in blocks of STRETCH scores.
cdef extern from *:
    """
    #ifdef _MSC_VER
    #include <intrin.h>
    static inline int detops_lowest_bit(uint64_t word) {
        unsigned long found;
        _BitScanForward64(&found, word);
        return (int) found;
    }
    #else
    #define detops_lowest_bit(word) __builtin_ctzll(word)
    #endif
    /* Eight bytes as a word, the first of them lowest. */
    static inline uint64_t detops_load_word(const unsigned char* bytes) {
        uint64_t word;
        memcpy(&word, bytes, 8);
    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        word = __builtin_bswap64(word);
    #endif
        return word;
    }
    /* Times this, the bytes of a word add up in its uppermost. */
    #define DETOPS_EVERY_BYTE 0x0101010101010101ULL
    """
    const uint64_t EVERY_BYTE "DETOPS_EVERY_BYTE"
    uint64_t load_word "detops_load_word" (const unsigned char* bytes) noexcept nogil
    int lowest_bit "detops_lowest_bit" (uint64_t word) noexcept nogil

cdef enum:
    # Scores of a block: each has a byte that says whether it is a candidate's.
    STRETCH = 32
    WORDS = 4
    # Candidates in a block from which on it is quicker to look at every score.
    MANY = 8


cdef inline Py_ssize_t collect_marked(
    const real* scores, Py_ssize_t start, uint64_t marks, Candidate* candidates
) noexcept nogil:
    """Candidates among eight scores, where a byte of marks is 1."""
    cdef Py_ssize_t found = 0
    cdef Py_ssize_t i
    while marks != 0:
        i = start + lowest_bit(marks) // 8
        candidates[found].key = falling(scores[i])
        candidates[found].index = i
        found += 1
        marks &= marks - 1
    return found


cdef Py_ssize_t collect(const real* scores, Py_ssize_t count, real threshold, bint strict,
                        Candidate* candidates) noexcept nogil:
    """Write a candidate for each score that takes part; return how many."""
    cdef unsigned char[STRETCH] marks
    cdef uint64_t[WORDS] words
    cdef uint64_t together
    cdef Py_ssize_t i, j
    cdef Py_ssize_t start = 0, found = 0
    while start < count:
        together = MANY
        if start + STRETCH <= count:
            for i in range(STRETCH):
                marks[i] = is_candidate(scores[start + i], threshold, strict)
            together = 0
            for j in range(WORDS):
                words[j] = load_word(marks + 8 * j)
                together += words[j]
        if together == 0:
            pass
        elif (together * EVERY_BYTE) >> 56 < MANY:
            for j in range(WORDS):
                found += collect_marked(scores, start + 8 * j, words[j], candidates + found)
        else:
            for i in range(start, min(start + STRETCH, count)):
                # Written in any case, and overwritten unless it is counted: a branch would often be guessed wrong.
                candidates[found].key = falling(scores[i])
                candidates[found].index = i
                found += is_candidate(scores[i], threshold, strict)
        start += STRETCH
    return found
