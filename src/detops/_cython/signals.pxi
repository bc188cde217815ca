# Signals are for the threads of the program: one that all of these block, to wait for it, must find no worker to end
# the process through. What a thread's own error raises stays open, so that faulthandler sees it.
cdef extern from *:
    """
    #ifndef _WIN32
    #include <signal.h>
    typedef sigset_t detops_signals;
    static void detops_block_signals(detops_signals* before) {
        static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
        sigset_t all;
        size_t i;
        sigfillset(&all);
        for (i = 0; i < sizeof own / sizeof own[0]; i++) sigdelset(&all, own[i]);
        pthread_sigmask(SIG_SETMASK, &all, before);
    }
    static void detops_restore_signals(const detops_signals* before) { pthread_sigmask(SIG_SETMASK, before, NULL); }
    #else
    typedef int detops_signals;
    static void detops_block_signals(detops_signals* before) {}
    static void detops_restore_signals(const detops_signals* before) {}
    #endif
    """
    ctypedef struct Signals "detops_signals":
        pass
    void block_signals "detops_block_signals" (Signals* before) noexcept nogil
    void restore_signals "detops_restore_signals" (const Signals* before) noexcept nogil
