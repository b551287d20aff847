// chunks: the same amount of work again and again, until it is ended; after each, one line with the
// CPU time that it took in nanoseconds. Work and stack are those of work.c.
#include "cpu.h"
#include <stdio.h>

// About 50 ms: some samples fall into each even at 99 Hz.
#define ROUNDS 2500

FUNCTION static uint64_t level5(uint64_t x) {
    CRUNCH(x);
    return x;
}
FUNCTION static uint64_t level4(uint64_t x) { return level5(x) + 1; }
FUNCTION static uint64_t level3(uint64_t x) { return level4(x) + 1; }
FUNCTION static uint64_t level2(uint64_t x) { return level3(x) + 1; }
FUNCTION static uint64_t level1(uint64_t x) { return level2(x) + 1; }

int main(void) {
    uint64_t x = 1;
    while (x != 0) {
        uint64_t start = cpu_ns();
        for (int i = 0; i < ROUNDS; i++) {
            x = level1(x);
        }
        printf("%llu\n", (unsigned long long)(cpu_ns() - start));
        if (fflush(stdout) != 0) {
            return 0;
        }
    }
    return 0;
}
