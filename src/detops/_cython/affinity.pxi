cdef extern from *:
    """
    /* Where a worker runs. A system often wakes it on the processor of whoever wakes it, where it has to wait for its
       caller; in a virtual machine even beside an idle processor. So it is sent away for the moment of waking. Anyone
       may set masks meanwhile (taskset -a -p, which begins with the main thread): only a worker of the main thread's
       mask is sent away, its mask is restored only where it is still the one that was set here, and a mask that the
       main thread was given meanwhile is meant for the worker too. */
    #ifdef __linux__
    #include <sched.h>
    #include <time.h>
    #include <sys/syscall.h>
    #include <unistd.h>
    typedef struct {
        pid_t thread;
        int excluded;
        cpu_set_t allowed;
        cpu_set_t others;
        cpu_set_t of_program;
    } detops_affinity;
    static int detops_mask(pid_t thread, cpu_set_t* mask) { return sched_getaffinity(thread, sizeof *mask, mask); }
    static int detops_set_mask(pid_t thread, const cpu_set_t* mask) {
        return sched_setaffinity(thread, sizeof *mask, mask);
    }
    static void detops_name_thread(detops_affinity* affinity) { affinity->thread = (pid_t) syscall(SYS_gettid); }
    static void detops_exclude_cpu(detops_affinity* affinity) {
        int here = sched_getcpu();
        if (here < 0 || detops_mask(getpid(), &affinity->of_program) || detops_mask(affinity->thread, &affinity->allowed)) return;
        /* A worker of a mask of its own, or of one that is about to be changed. */
        if (!CPU_EQUAL(&affinity->of_program, &affinity->allowed)) return;
        affinity->others = affinity->allowed;
        CPU_CLR(here, &affinity->others);
        affinity->excluded = CPU_COUNT(&affinity->others) > 0 && !detops_set_mask(affinity->thread, &affinity->others);
    }
    static void detops_restore_affinity(detops_affinity* affinity) {
        cpu_set_t now;
        if (affinity->excluded && !detops_mask(0, &now) && CPU_EQUAL(&now, &affinity->others)) {
            detops_set_mask(0, &affinity->allowed);
            /* Both were set between two of the looks. */
            if (!detops_mask(getpid(), &now) && !CPU_EQUAL(&now, &affinity->of_program)) detops_set_mask(0, &now);
        }
        affinity->excluded = 0;
    }
    /* How many processors the calling thread may use, 0 where it is not known. The answer of the same tick of the
       system's clock, a few milliseconds, will do where it is asked at every call: asking costs more than a tenth of one. */
    static int detops_count_usable(int afresh) {
        static __thread struct { int count; struct timespec when; } last;
        struct timespec now;
        cpu_set_t mask;
        clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
        if (afresh || last.when.tv_sec != now.tv_sec || last.when.tv_nsec != now.tv_nsec) {
            last.count = detops_mask(0, &mask) ? 0 : CPU_COUNT(&mask);
            last.when = now;
        }
        return last.count;
    }
    #else
    static int detops_count_usable(int afresh) { return 0; }
    typedef struct { int unused; } detops_affinity;
    static void detops_name_thread(detops_affinity* affinity) {}
    static void detops_exclude_cpu(detops_affinity* affinity) {}
    static void detops_restore_affinity(detops_affinity* affinity) {}
    #endif
    """
    int count_usable "detops_count_usable" (bint afresh) noexcept nogil
    ctypedef struct Affinity "detops_affinity":
        pass
    void name_thread "detops_name_thread" (Affinity* affinity) noexcept nogil
    void exclude_cpu "detops_exclude_cpu" (Affinity* affinity) noexcept nogil
    void restore_affinity "detops_restore_affinity" (Affinity* affinity) noexcept nogil
