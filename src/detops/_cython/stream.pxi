# Writing large results past the caches: a line that is only overwritten need not be fetched first, which halves what
# a write costs. The bytes are the same either way.
cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    #if defined(__SSE2__) || defined(_M_X64)
    #include <emmintrin.h>
    static void detops_stream(void* target, const void* source, Py_ssize_t bytes) {
        char* to = (char*) target;
        const char* from = (const char*) source;
        /* Only whole lines of 64 bytes go past the caches. */
        Py_ssize_t head = (Py_ssize_t) (-(uintptr_t) to & 63);
        Py_ssize_t i;
        if (head > bytes) head = bytes;
        memcpy(to, from, (size_t) head);
        for (i = head; i + 64 <= bytes; i += 64) {
            __m128i a = _mm_loadu_si128((const __m128i*) (from + i));
            __m128i b = _mm_loadu_si128((const __m128i*) (from + i + 16));
            __m128i c = _mm_loadu_si128((const __m128i*) (from + i + 32));
            __m128i d = _mm_loadu_si128((const __m128i*) (from + i + 48));
            _mm_stream_si128((__m128i*) (to + i), a);
            _mm_stream_si128((__m128i*) (to + i + 16), b);
            _mm_stream_si128((__m128i*) (to + i + 32), c);
            _mm_stream_si128((__m128i*) (to + i + 48), d);
        }
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
    # Copies like memcpy. Pieces should be a few kilobytes, and neighbours written one after the other.
    void stream "detops_stream" (void* target, const void* source, Py_ssize_t bytes) noexcept nogil
    # Makes what a thread has streamed visible to all others: a loop calls it before it returns.
    void stream_end "detops_stream_end" () noexcept nogil

cdef enum:
    # A smaller result is left in the caches, where its reader will look for it.
    STREAM_FROM_BYTES = 1 << 22
