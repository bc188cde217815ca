# Workers block signals, which are for the program's own threads: where all of these block a signal to wait for it, it
# would end the process through a worker. Signals of a thread's own errors stay open, so that faulthandler sees them.
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
