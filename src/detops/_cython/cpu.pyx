"""Which vector instruction sets this machine's processor and operating system support, and what compiled the kernels."""

cdef extern from *:
    """
    #if (defined(__GNUC__) || defined(__clang__)) && (defined(__x86_64__) || defined(__i386__))
    static int detops_avx2(void) {
        __builtin_cpu_init();
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    }
    static int detops_avx512(void) {
        return detops_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
            && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    }
    #else
    static int detops_avx2(void) { return 0; }
    static int detops_avx512(void) { return 0; }
    #endif
    #define DETOPS_TEXT_OF(macro) #macro
    #define DETOPS_TEXT(macro) DETOPS_TEXT_OF(macro)
    #if defined(__clang__)
    #define DETOPS_COMPILER __VERSION__
    #elif defined(__GNUC__)
    #define DETOPS_COMPILER "GCC " __VERSION__
    #elif defined(_MSC_FULL_VER)
    #define DETOPS_COMPILER "MSVC " DETOPS_TEXT(_MSC_FULL_VER)
    #else
    #define DETOPS_COMPILER "unknown"
    #endif
    """
    int detops_avx2()
    int detops_avx512()
    const char* DETOPS_COMPILER


def instruction_sets():
    """Names of the instruction sets that kernels can use here, the best one first."""
    found = []
    if detops_avx512():
        found.append("avx512")
    if detops_avx2():
        found.append("avx2")
    return (*found, "baseline")


def compiler():
    """The compiler that the kernels come from, with its version."""
    return DETOPS_COMPILER.decode()
