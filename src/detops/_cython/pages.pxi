# Pages of the system, where it takes those that are marked as free.
cdef extern from *:
    """
    #include <stddef.h>
    #if defined(__linux__) || defined(__APPLE__)
    #include <stdint.h>
    #include <sys/mman.h>
    #endif
    #if defined(MADV_FREE) && defined(MAP_ANONYMOUS)
    #define DETOPS_KEEPS 1
    #define DETOPS_HUGE_PAGE ((size_t) 1 << 21)
    /* Huge pages: a tenth of the faults. They want to start where one of them could. */
    static void* detops_map(size_t size) {
        char* found = (char*) mmap(NULL, size + DETOPS_HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        size_t head;
        if (found == (char*) MAP_FAILED) return NULL;
        head = (size_t) (-(uintptr_t) found & (DETOPS_HUGE_PAGE - 1));
        if (head > 0) munmap(found, head);
        munmap(found + head + size, DETOPS_HUGE_PAGE - head);
    #ifdef MADV_HUGEPAGE
        madvise(found + head, size, MADV_HUGEPAGE);
    #endif
        return found + head;
    }
    static void detops_unmap(void* address, size_t size) { munmap(address, size); }
    /* The system may have the pages as soon as it needs them. */
    static void detops_madvise_free(void* address, size_t size) { madvise(address, size, MADV_FREE); }
    #else
    #define DETOPS_KEEPS 0
    static void* detops_map(size_t size) { return NULL; }
    static void detops_unmap(void* address, size_t size) {}
    static void detops_madvise_free(void* address, size_t size) {}
    #endif
    """
    enum:
        KEEPS "DETOPS_KEEPS"
    void* map_pages "detops_map" (size_t size) noexcept nogil
    void unmap_pages "detops_unmap" (void* address, size_t size) noexcept nogil
    void madvise_free "detops_madvise_free" (void* address, size_t size) noexcept nogil
