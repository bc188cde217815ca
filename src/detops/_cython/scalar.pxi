# The element type of this build, and in C what _core/scalar.py says in Python. setup.py compiles each kernel once
# per element type: fused types cannot stand in a tuple, and a build that holds no Python object is ten times smaller.
cimport cython

cdef extern from *:
    """
    #include <math.h>
    typedef DETOPS_ELEMENT detops_element;
    #ifdef DETOPS_IS_FLOAT32
    #define detops_exp(x) expf(x)
    #define detops_log(x) logf(x)
    #else
    #define detops_exp(x) exp(x)
    #define detops_log(x) log(x)
    #endif
    """
    # To Cython a double and a long long; to the C compiler the element type itself.
    ctypedef double real "detops_element"
    ctypedef long long element "detops_element"
    real exp "detops_exp" (real x) noexcept nogil
    real log "detops_log" (real x) noexcept nogil


cdef inline real typed(double value, real like) noexcept nogil:
    return <real> value


cdef inline real product(real a, real b) noexcept nogil:
    # The compiler is told in setup.py not to contract.
    return a * b
