# Candidates in order of a key, found bucket by bucket: who asks for the first few pays for the first few.
from libc.stdint cimport uint64_t
from libc.string cimport memcpy, memset

include "allocate.pxi"

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    /* In rising order of this key scores fall; 0.0 and -0.0 have one key. */
    static inline uint64_t detops_falling(detops_element score) {
        detops_element positive_zero = score + 0;
    #ifdef DETOPS_IS_FLOAT32
        uint32_t bits;
        memcpy(&bits, &positive_zero, sizeof bits);
        return bits >> 31 ? bits : 0x7fffffffu - bits;
    #else
        uint64_t bits;
        memcpy(&bits, &positive_zero, sizeof bits);
        return bits >> 63 ? bits : 0x7fffffffffffffffu - bits;
    #endif
    }
    """
    uint64_t falling "detops_falling" (real score) noexcept nogil

cdef struct Candidate:
    uint64_t key
    Py_ssize_t index

cdef struct Queue:
    # Candidates by bucket; those before ready are in order.
    Candidate* items
    Candidate* spare
    Py_ssize_t count
    Py_ssize_t ready
    # Where each bucket ends.
    Py_ssize_t* ends
    Py_ssize_t bucket

cdef enum:
    # Candidates at most that are sorted by insertion, and buckets at most, so that they fit the cache.
    FEW = 24
    MOST_BUCKETS = 16384


cdef inline bint precedes(const Candidate* a, const Candidate* b) noexcept nogil:
    return a.key < b.key or (a.key == b.key and a.index < b.index)


cdef inline void sort_few(Candidate* items, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t i, j
    cdef Candidate moved
    for i in range(1, count):
        moved = items[i]
        j = i
        while j > 0 and precedes(&moved, &items[j - 1]):
            items[j] = items[j - 1]
            j -= 1
        items[j] = moved


cdef void sort(Candidate* items, Candidate* spare, Py_ssize_t count) noexcept nogil:
    """Merge sort; spare has room for as many."""
    cdef Py_ssize_t half = count // 2
    cdef Py_ssize_t left = 0
    cdef Py_ssize_t right = half
    cdef Py_ssize_t at = 0
    if count <= FEW:
        sort_few(items, count)
        return
    sort(items, spare, half)
    sort(items + half, spare + half, count - half)
    if precedes(&items[half - 1], &items[half]):
        return
    memcpy(spare, items, half * sizeof(Candidate))
    while left < half:
        if right < count and precedes(&items[right], &spare[left]):
            items[at] = items[right]
            right += 1
        else:
            items[at] = spare[left]
            left += 1
        at += 1


cdef int open_queue(Queue* queue, Candidate* items, Candidate* spare, Py_ssize_t count) noexcept nogil:
    """Distribute the candidates in spare over buckets in items. The caller frees queue.ends, whatever comes back."""
    cdef uint64_t lowest = spare[0].key
    cdef uint64_t highest = spare[0].key
    # With one bucket, keys more than half their range apart would need a shift by all 64 bits, which C does not know.
    cdef Py_ssize_t buckets = 2
    cdef Py_ssize_t i, bucket, size
    cdef Py_ssize_t start = 0
    cdef int shift = 0
    for i in range(count):
        lowest = min(lowest, spare[i].key)
        highest = max(highest, spare[i].key)
    while buckets < MOST_BUCKETS and buckets * 4 < count:
        buckets *= 2
    while (highest - lowest) >> shift >= <uint64_t> buckets:
        shift += 1
    queue.items, queue.spare, queue.count, queue.ready, queue.bucket = items, spare, count, 0, 0
    queue.ends = <Py_ssize_t*> allocate_zeroed(buckets, sizeof(Py_ssize_t))
    if queue.ends == NULL:
        return -1
    for i in range(count):
        queue.ends[(spare[i].key - lowest) >> shift] += 1
    for bucket in range(buckets):
        size = queue.ends[bucket]
        queue.ends[bucket] = start
        start += size
    for i in range(count):
        bucket = (spare[i].key - lowest) >> shift
        items[queue.ends[bucket]] = spare[i]
        queue.ends[bucket] += 1
    return 0


cdef inline void sort_until(Queue* queue, Py_ssize_t position) noexcept nogil:
    """Bring the candidates up to and including a position in order."""
    cdef Py_ssize_t end
    while queue.ready <= position:
        end = queue.ends[queue.bucket]
        sort(queue.items + queue.ready, queue.spare + queue.ready, end - queue.ready)
        queue.ready = end
        queue.bucket += 1
