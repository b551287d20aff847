// wide_deep [CPU_SECONDS]: main -> descend (300 levels of 256 bytes and more) -> deep_bottom with
// 30 % of the CPU time, main -> wide (a frame of 80 KiB) -> wide_bottom with 15 %, main -> shallow
// with the rest, in random slices of 1 to 9 ms.
//
// Prints a line `FUNCTION CPU_SECONDS` of each of the three that burn, and `total CPU_SECONDS`.
#include "cpu.h"
#include <stdio.h>
#include <sys/resource.h>

#define LEVELS 300

enum { DEEP, WIDE, SHALLOW, FUNCTIONS };
static const char *const names[FUNCTIONS] = {"deep_bottom", "wide_bottom", "shallow"};
static const double wanted[FUNCTIONS] = {0.30, 0.15, 0.55};

// Keeps memory in the frame that nobody reads.
#define KEEP(bytes) __asm__ volatile("" ::"r"(bytes) : "memory")

FUNCTION static void deep_bottom(uint64_t end) { BURN_UNTIL(end); }
FUNCTION static void wide_bottom(uint64_t end) { BURN_UNTIL(end); }
FUNCTION static void shallow(uint64_t end) { BURN_UNTIL(end); }

FUNCTION static void descend(int left, uint64_t end) {
    char bytes[256];
    KEEP(bytes);
    if (left <= 1) {
        deep_bottom(end);
    } else {
        descend(left - 1, end);
    }
    NO_TAIL_CALL();
}

FUNCTION static void wide(uint64_t end) {
    char bytes[80 * 1024];
    KEEP(bytes);
    wide_bottom(end);
    NO_TAIL_CALL();
}

static void slice(int which, uint64_t end) {
    switch (which) {
    case DEEP: descend(LEVELS, end); break;
    case WIDE: wide(end); break;
    default: shallow(end); break;
    }
}

int main(int argc, char **argv) {
    uint64_t used[FUNCTIONS] = {0}, random_bits = 0x9e3779b97f4a7c15u;
    uint64_t total = ns_argument(argc, argv, 1, 1.0), start = cpu_ns(), now = start;
    while (now - start < total) {
        int next = 0;
        double most_behind = -1e18;
        for (int which = 0; which < FUNCTIONS; which++) {
            double behind = wanted[which] * (double)(now - start) - (double)used[which];
            if (behind > most_behind) {
                most_behind = behind, next = which;
            }
        }
        random_bits ^= random_bits << 13, random_bits ^= random_bits >> 7;
        random_bits ^= random_bits << 17;
        slice(next, now + 1000000 + random_bits % 8000000);
        uint64_t then = cpu_ns();
        used[next] += then - now;
        now = then;
    }
    for (int which = 0; which < FUNCTIONS; which++) {
        printf("%s %.6f\n", names[which], (double)used[which] / 1e9);
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("total %.6f\n", (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                               (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
    return 0;
}
