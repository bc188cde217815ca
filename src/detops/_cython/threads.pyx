"""The threads of NumPy callers: workers that sleep until a loop is spread, one pool for the process.

A caller takes items as its workers do, and never waits for a worker that has not begun: where the system runs other
threads first, the caller does the work alone. Locks and threads are those of CPython, which has them on every system.
"""

import os

from cpython.pycapsule cimport PyCapsule_New
from libc.stdlib cimport calloc, free

from detops.runtime._threads import move_threads

include "executor.pxi"
include "pythread.pxi"
include "affinity.pxi"
include "signals.pxi"


cdef extern from *:
    """
    #ifdef _MSC_VER
    #include <intrin.h>
    #define detops_take(at, count) ((Py_ssize_t) _InterlockedExchangeAdd64((volatile __int64*) (at), (__int64) (count)))
    #define detops_peek(at) (*(volatile Py_ssize_t*) (at))
    #define detops_put(at, value) (*(volatile Py_ssize_t*) (at) = (value))
    #define detops_pause() YieldProcessor()
    #else
    #define detops_take(at, count) __atomic_fetch_add(at, count, __ATOMIC_RELAXED)
    #define detops_peek(at) __atomic_load_n(at, __ATOMIC_RELAXED)
    #define detops_put(at, value) __atomic_store_n(at, value, __ATOMIC_RELAXED)
    #if defined(__x86_64__) || defined(__i386__)
    #define detops_pause() __builtin_ia32_pause()
    #else
    #define detops_pause() ((void) 0)
    #endif
    #endif
    """
    Py_ssize_t take "detops_take" (Py_ssize_t* at, Py_ssize_t count) noexcept nogil
    Py_ssize_t peek "detops_peek" (Py_ssize_t* at) noexcept nogil
    # For what others peek at, under the lock.
    void put "detops_put" (Py_ssize_t* at, Py_ssize_t value) noexcept nogil
    void pause "detops_pause" () noexcept nogil


cdef enum:
    # Looks at memory before a thread goes to sleep, about a tenth of a millisecond: as long as a sleeper may need to
    # wake, and longer than Python takes from one call to the next.
    LOOKS = 2500


cdef struct Sleeper:
    # Where a thread sleeps: its wake lock is held until someone wakes it.
    PyThread_type_lock wake_lock
    Sleeper* below
    Affinity affinity


cdef struct Job:
    # One loop that is spread. It lives on the caller's stack, so nobody may touch it once the caller has gone.
    loop_t loop
    const void* arguments
    Py_ssize_t items
    Py_ssize_t size
    # The first item that no thread has taken.
    Py_ssize_t next
    Py_ssize_t failures
    # From here on the lock guards all.
    Py_ssize_t wanted
    Py_ssize_t running
    bint waits
    Sleeper* caller
    Job* after


cdef struct Pool:
    PyThread_type_lock lock
    Py_ssize_t workers
    Py_ssize_t open_jobs
    Job* jobs
    # Workers that sleep, and sleepers that no caller needs at present.
    Sleeper* idle
    Sleeper* spare


cdef Pool pool
cdef bint moves = move_threads


cdef inline void lock() noexcept nogil:
    PyThread_acquire_lock(pool.lock, WAIT_LOCK)


cdef inline void unlock() noexcept nogil:
    PyThread_release_lock(pool.lock)


cdef inline void push(Sleeper** stack, Sleeper* sleeper) noexcept nogil:
    sleeper.below = stack[0]
    stack[0] = sleeper


cdef inline Sleeper* pop(Sleeper** stack) noexcept nogil:
    cdef Sleeper* sleeper = stack[0]
    if sleeper != NULL:
        stack[0] = sleeper.below
    return sleeper


cdef Sleeper* new_sleeper() noexcept nogil:
    cdef Sleeper* sleeper = <Sleeper*> calloc(1, sizeof(Sleeper))
    if sleeper == NULL:
        return NULL
    sleeper.wake_lock = PyThread_allocate_lock()
    if sleeper.wake_lock == NULL:
        free(sleeper)
        return NULL
    PyThread_acquire_lock(sleeper.wake_lock, WAIT_LOCK)
    return sleeper


cdef inline void wake(Sleeper* sleeper) noexcept nogil:
    if moves:
        exclude_cpu(&sleeper.affinity)
    PyThread_release_lock(sleeper.wake_lock)


cdef void unlock_and_wake(Job* job) noexcept nogil:
    """Wake two sleepers for a job that wants them; each of them wakes two more, so that no thread wakes a crowd."""
    cdef Sleeper* first = pop(&pool.idle) if job.wanted > 0 else NULL
    cdef Sleeper* second = pop(&pool.idle) if job.wanted > 1 else NULL
    unlock()
    # From here on the job may be gone.
    if first != NULL:
        wake(first)
    if second != NULL:
        wake(second)


cdef void work(Job* job) noexcept nogil:
    cdef Py_ssize_t begin
    while True:
        begin = take(&job.next, job.size)
        if begin >= job.items:
            return
        if job.loop(job.arguments, begin, min(begin + job.size, job.items)):
            take(&job.failures, 1)


cdef Job* find_job() noexcept nogil:
    """A job that wants one more thread; the lock is held."""
    cdef Job* job = pool.jobs
    while job != NULL and (job.wanted == 0 or peek(&job.next) >= job.items):
        job = job.after
    return job


cdef void worker_main(void* own) noexcept nogil:
    """The life of a worker."""
    cdef Sleeper* sleeper = <Sleeper*> own
    cdef Job* job
    cdef int looks
    name_thread(&sleeper.affinity)
    lock()
    while True:
        job = find_job()
        if job == NULL:
            push(&pool.idle, sleeper)
            unlock()
            PyThread_acquire_lock(sleeper.wake_lock, WAIT_LOCK)
            restore_affinity(&sleeper.affinity)
            lock()
            continue
        job.wanted -= 1
        put(&job.running, job.running + 1)
        unlock_and_wake(job)
        work(job)
        lock()
        put(&job.running, job.running - 1)
        if job.running == 0 and job.waits:
            PyThread_release_lock(job.caller.wake_lock)
        unlock()
        # An operator often spreads its next loop at once.
        looks = 0
        while looks < LOOKS and peek(&pool.open_jobs) == 0:
            pause()
            looks += 1
        lock()


cdef void ensure_workers(Py_ssize_t workers) noexcept nogil:
    """Have at least `workers` workers, where the system allows."""
    cdef Sleeper* sleeper
    cdef Signals before
    cdef bint started = True
    while started:
        lock()
        if pool.workers >= workers:
            unlock()
            return
        put(&pool.workers, pool.workers + 1)
        sleeper = pop(&pool.spare)
        unlock()
        if sleeper == NULL:
            sleeper = new_sleeper()
        started = False
        if sleeper != NULL:
            # A thread begins with the signals of whoever starts it.
            block_signals(&before)
            with gil:
                started = PyThread_start_new_thread(worker_main, sleeper) != <unsigned long> -1
            restore_signals(&before)
        if not started:
            lock()
            put(&pool.workers, pool.workers - 1)
            if sleeper != NULL:
                push(&pool.spare, sleeper)
            unlock()


cdef bint open_job(Job* job) noexcept nogil:
    """Offer a job to the workers, unless there is no sleeper for the caller to wait in."""
    lock()
    job.caller = pop(&pool.spare)
    if job.caller == NULL:
        job.caller = new_sleeper()
    if job.caller == NULL:
        unlock()
        return False
    job.after = pool.jobs
    pool.jobs = job
    put(&pool.open_jobs, pool.open_jobs + 1)
    unlock_and_wake(job)
    return True


cdef void close_job(Job* job) noexcept nogil:
    """Return when no worker is at the job any more, and none can come to it."""
    cdef Job** link = &pool.jobs
    cdef int looks = 0
    while looks < LOOKS and peek(&job.running) > 0:
        pause()
        looks += 1
    lock()
    while link[0] != job:
        link = &link[0].after
    link[0] = job.after
    put(&pool.open_jobs, pool.open_jobs - 1)
    if job.running > 0:
        job.waits = True
        unlock()
        PyThread_acquire_lock(job.caller.wake_lock, WAIT_LOCK)
        lock()
    push(&pool.spare, job.caller)
    unlock()


cdef int parallel_for_threads(
    const Executor* executor, loop_t loop, const void* arguments, Py_ssize_t items, Py_ssize_t grain
) noexcept nogil:
    cdef Job job
    job.size = max(grain, <Py_ssize_t> 1)
    cdef Py_ssize_t parts = (items + job.size - 1) // job.size
    if parts <= 0:
        return 0
    job.wanted = min(parts, <Py_ssize_t> executor.threads) - 1
    if job.wanted > 0 and peek(&pool.workers) < job.wanted:
        ensure_workers(job.wanted)
    job.loop, job.arguments, job.items = loop, arguments, items
    job.next, job.failures, job.running, job.waits = 0, 0, 0, False
    if job.wanted == 0 or not open_job(&job):
        return loop(arguments, 0, items)
    work(&job)
    close_job(&job)
    return -1 if job.failures > 0 else 0


parallel_for = PyCapsule_New(<void*> parallel_for_threads, NULL, NULL)


def usable_cpus(bint afresh) -> int:
    """Return how many processors the calling thread may use; 0 where the system does not say.

    Unless asked afresh, the answer may be a few milliseconds old.
    """
    return count_usable(afresh)


def start_over() -> None:
    """Begin with no workers: none of them lives on in a forked child, and the lock may have been held."""
    pool.lock = PyThread_allocate_lock()
    if pool.lock == NULL:
        raise MemoryError("no lock for the threads of detops")
    pool.workers, pool.open_jobs = 0, 0
    pool.jobs, pool.idle, pool.spare = NULL, NULL, NULL


start_over()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=start_over)
