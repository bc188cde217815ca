# The element type of this build, and in C what _core/scalar.py says in Python. setup.py compiles each kernel once
# per element type: fused types cannot stand in a tuple, and a build that holds no Python object is ten times smaller.
cimport cython

include "codes.pxi"

cdef extern from *:
    """
    #include <math.h>
    #include <stdint.h>
    #include <string.h>
    typedef DETOPS_ELEMENT detops_element;
    /* A macro: a function's parameter would take an integer through double on its way. */
    #define detops_typed(value, like) ((detops_element) (value))
    #ifdef DETOPS_IS_FLOAT32
    #define detops_atan(x) atanf(x)
    #define detops_log(x) logf(x)
    #define detops_sqrt(x) sqrtf(x)
    #else
    #define detops_atan(x) atan(x)
    #define detops_log(x) log(x)
    #define detops_sqrt(x) sqrt(x)
    #endif

    /* e to the x, within 1.1 units in the last place: no branch and no call, so that loops of it become vectors, and
       the same steps for every element, wherever it lies. x = n * ln(2) + r with |r| <= ln(2) / 2, e to the r by
       a polynomial (Taylor's for double), and 2 to the n in two factors: a result below the normal numbers is rounded
       once, by the last. The bounds are where the result is 0 or inf for sure; a NaN fails both comparisons and stays. */
    #ifdef DETOPS_IS_FLOAT32
    static inline float detops_exp(float x) {
        const float shifter = 12582912.0f; /* 1.5 * 2**23: the sum's last bit is worth 1 */
        float t, n, r, p, low, high;
        uint32_t bits, half;
        x = x < -105.0f ? -105.0f : x;
        x = x > 89.0f ? 89.0f : x;
        t = x * 1.44269504f + shifter;
        n = t - shifter;
        r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
        /* Of all polynomials of this degree the one whose largest relative error is least: a twentieth of a unit. */
        p = 1.3814606e-3f;
        p = p * r + 8.3687130e-3f;
        p = p * r + 4.1668390e-2f;
        p = p * r + 1.6666521e-1f;
        p = p * r + 4.9999994e-1f;
        p = (p * (r * r) + r) + 1.0f;
        memcpy(&bits, &t, sizeof bits);
        /* n + 254, above 0: the sum of two exponents with their bias of 127. */
        bits = bits - 0x4b400000 + 254;
        half = bits >> 1;
        bits = (bits - half) << 23;
        half = half << 23;
        memcpy(&low, &half, sizeof low);
        memcpy(&high, &bits, sizeof high);
        return p * low * high;
    }
    #else
    static inline double detops_exp(double x) {
        const double shifter = 6755399441055744.0; /* 1.5 * 2**52 */
        double t, n, r, p, low, high;
        uint64_t bits, half;
        x = x < -746.0 ? -746.0 : x;
        x = x > 710.0 ? 710.0 : x;
        t = x * 1.4426950408889634 + shifter;
        n = t - shifter;
        r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
        p = 1.0 / 6227020800;
        p = p * r + 1.0 / 479001600;
        p = p * r + 1.0 / 39916800;
        p = p * r + 1.0 / 3628800;
        p = p * r + 1.0 / 362880;
        p = p * r + 1.0 / 40320;
        p = p * r + 1.0 / 5040;
        p = p * r + 1.0 / 720;
        p = p * r + 1.0 / 120;
        p = p * r + 1.0 / 24;
        p = p * r + 1.0 / 6;
        p = p * r + 0.5;
        p = (p * (r * r) + r) + 1.0;
        memcpy(&bits, &t, sizeof bits);
        /* n + 2046, above 0: AVX2 has no shift of 64 bits that keeps a sign. The bias is 1023. */
        bits = bits - 0x4338000000000000 + 2046;
        half = bits >> 1;
        bits = (bits - half) << 52;
        half = half << 52;
        memcpy(&low, &half, sizeof low);
        memcpy(&high, &bits, sizeof high);
        return p * low * high;
    }
    #endif
    """
    # To Cython a double and a long long; to the C compiler the element type itself.
    ctypedef double real "detops_element"
    ctypedef long long element "detops_element"
    real typed "detops_typed" (element value, real like) noexcept nogil
    real typed "detops_typed" (real value, real like) noexcept nogil
    real exp "detops_exp" (real x) noexcept nogil
    real atan "detops_atan" (real x) noexcept nogil
    real sqrt "detops_sqrt" (real x) noexcept nogil
    real log "detops_log" (real x) noexcept nogil


cdef inline real product(real a, real b) noexcept nogil:
    # The compiler is told in setup.py not to contract.
    return a * b


cdef inline Py_ssize_t quotient(Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    return a // b
