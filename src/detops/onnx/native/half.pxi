# float16 for kernels that know float32: exact one way, rounded to the nearest (ties to even) the other.
cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    static float detops_from_half(uint16_t half) {
        const uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = half & 0x7fff;
        uint32_t bits = (rest << 13) + 0x38000000;          /* the bias of the exponent grows from 15 to 127 */
        float value;
        if (rest >= 0x7c00) bits = (rest << 13) | 0x7f800000;   /* inf and NaN */
        memcpy(&value, &bits, 4);
        if (rest < 0x0400) value = (float)rest * 5.9604644775390625e-08f;  /* subnormal: units of 2^-24 */
        memcpy(&bits, &value, 4);
        bits |= sign;
        memcpy(&value, &bits, 4);
        return value;
    }

    static uint16_t detops_to_half(float value) {
        uint32_t bits, rest;
        uint16_t sign, half;
        memcpy(&bits, &value, 4);
        sign = (uint16_t)((bits >> 16) & 0x8000);
        rest = bits & 0x7fffffff;
        if (rest > 0x7f800000) half = 0x7e00;               /* NaN */
        else if (rest >= 0x47800000) half = 0x7c00;         /* from 65536 on: inf */
        else if (rest >= 0x38800000) half = (uint16_t)((rest + 0xfff + ((rest >> 13) & 1) - 0x38000000) >> 13);
        else {                                              /* subnormal: the sum with 0.5 rounds at 2^-24 */
            float small;
            memcpy(&small, &rest, 4);
            small += 0.5f;
            memcpy(&bits, &small, 4);
            half = (uint16_t)(bits - 0x3f000000);
        }
        return sign | half;
    }
    """
    ctypedef unsigned short half_t "uint16_t"
    float from_half "detops_from_half" (half_t half) noexcept nogil
    half_t to_half "detops_to_half" (float value) noexcept nogil


cdef inline void widen(const half_t* source, float* target, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(count):
        target[i] = from_half(source[i])


cdef inline void narrow(const float* source, half_t* target, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(count):
        target[i] = to_half(source[i])
