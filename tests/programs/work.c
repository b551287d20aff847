// work ROUNDS [again]: a fixed amount of work (no clock is read), five calls deep, for measuring how
// much a profiler slows it down. Prints its own CPU time in nanoseconds; with `again` it does so
// once more and once more, a line each, until it is ended.
#include "cpu.h"
#include <stdio.h>

FUNCTION static uint64_t level5(uint64_t x) {
    CRUNCH(x);
    return x;
}
FUNCTION static uint64_t level4(uint64_t x) { return level5(x) + 1; }
FUNCTION static uint64_t level3(uint64_t x) { return level4(x) + 1; }
FUNCTION static uint64_t level2(uint64_t x) { return level3(x) + 1; }
FUNCTION static uint64_t level1(uint64_t x) { return level2(x) + 1; }

int main(int argc, char **argv) {
    long rounds = argc > 1 ? atol(argv[1]) : 1;
    int again = argc > 2;
    uint64_t x = 1;
    do {
        uint64_t start = cpu_ns();
        for (long i = 0; i < rounds; i++) {
            x = level1(x);
        }
        printf("%llu\n", (unsigned long long)(cpu_ns() - start));
    } while (fflush(stdout) == 0 && again);
    return x == 0;
}
