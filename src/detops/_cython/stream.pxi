# Writing large results past the caches: a line that is only overwritten need not be fetched first, which halves what
# a write costs. The bytes are the same either way.
cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    #if defined(__SSE2__) || defined(_M_X64)
    #include <immintrin.h>
    /* A line of 64 bytes, in the widest pieces of this build. */
    static inline void detops_stream_line(char* to, const char* from) {
    #if defined(__AVX512F__)
        _mm512_stream_si512((__m512i*) to, _mm512_loadu_si512(from));
    #else
        int i;
        for (i = 0; i < 64; i += 16)
            _mm_stream_si128((__m128i*) (to + i), _mm_loadu_si128((const __m128i*) (from + i)));
    #endif
    }
    static void detops_stream(void* target, const void* source, Py_ssize_t bytes) {
        char* to = (char*) target;
        const char* from = (const char*) source;
        /* Only whole lines go past the caches. */
        Py_ssize_t i = (Py_ssize_t) (-(uintptr_t) to & 63);
        if (i > bytes) i = bytes;
        memcpy(to, from, (size_t) i);
        for (; i + 64 <= bytes; i += 64) detops_stream_line(to + i, from + i);
        memcpy(to + i, from + i, (size_t) (bytes - i));
    }
    static void detops_stream_end(void) { _mm_sfence(); }
    #else
    static void detops_stream(void* target, const void* source, Py_ssize_t bytes) {
        memcpy(target, source, (size_t) bytes);
    }
    static void detops_stream_end(void) {}
    #endif
    """
    # Copies like memcpy. Pieces should be a few kilobytes, and neighbors written one after the other.
    void stream "detops_stream" (void* target, const void* source, Py_ssize_t bytes) noexcept nogil
    # Makes what a thread has streamed visible to all others: a loop calls it before it returns.
    void stream_end "detops_stream_end" () noexcept nogil

cdef enum:
    # A smaller result is left in the caches, where its reader will look for it.
    STREAM_FROM_BYTES = 1 << 22
