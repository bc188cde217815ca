cdef extern from *:
    """
    /* Where a worker runs. A system often wakes it on the processor of whoever wakes it, where it has to wait for its
       caller; in a virtual machine even beside an idle processor. So it is sent away for the moment of waking. */
    #ifdef __linux__
    #include <sched.h>
    #include <sys/syscall.h>
    #include <unistd.h>
    typedef struct {
        pid_t thread;
        cpu_set_t allowed;
        int sent_away;
    } detops_place;
    static void detops_settle(detops_place* place) { place->thread = (pid_t) syscall(SYS_gettid); }
    static void detops_send_away(detops_place* place) {
        cpu_set_t others;
        int here = sched_getcpu();
        if (here < 0 || sched_getaffinity(place->thread, sizeof place->allowed, &place->allowed)) return;
        others = place->allowed;
        CPU_CLR(here, &others);
        place->sent_away = CPU_COUNT(&others) > 0 && !sched_setaffinity(place->thread, sizeof others, &others);
    }
    static void detops_roam(detops_place* place) {
        if (place->sent_away) sched_setaffinity(0, sizeof place->allowed, &place->allowed);
        place->sent_away = 0;
    }
    #else
    typedef struct { int unused; } detops_place;
    static void detops_settle(detops_place* place) {}
    static void detops_send_away(detops_place* place) {}
    static void detops_roam(detops_place* place) {}
    #endif
    """
    ctypedef struct Place "detops_place":
        pass
    void settle "detops_settle" (Place* place) noexcept nogil
    void send_away "detops_send_away" (Place* place) noexcept nogil
    void roam "detops_roam" (Place* place) noexcept nogil
