// events PAGES NAPS: exactly PAGES page faults in `touch_pages` and NAPS sleeps in `take_naps`.
//
// There is about a millisecond from one to the next, so that a profiler that takes each of them
// can keep up.
#define _GNU_SOURCE
#include "cpu.h"
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

FUNCTION static void touch_pages(char *memory, long pages, long page) {
    uint64_t x = 1;
    for (long i = 0; i < pages; i++) {
        ((volatile char *)memory)[i * page] = 1;
        for (int pause = 0; pause < 40; pause++) {
            CRUNCH(x);
        }
    }
}

FUNCTION static void take_naps(long naps) {
    struct timespec nap = {0, 1000000};
    for (long i = 0; i < naps; i++) {
        clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
    }
}

int main(int argc, char **argv) {
    long pages = argc > 1 ? atol(argv[1]) : 0;
    long naps = argc > 2 ? atol(argv[2]) : 0;
    long page = sysconf(_SC_PAGESIZE);
    size_t size = (size_t)((pages + 1) * page);
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    // A huge page would take many faults at once.
    madvise(memory, size, MADV_NOHUGEPAGE);
    touch_pages(memory, pages, page);
    take_naps(naps);
    return 0;
}
