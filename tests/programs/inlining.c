// inlining [CPU_SECONDS]: main -> outer, into which `middle` and in it `inner` are inlined.
//
// All time is spent in the innermost of the three, which only debug information can name.
#include "cpu.h"

static inline __attribute__((always_inline)) uint64_t inner(uint64_t x) {
    CRUNCH(x);
    return x;
}

static inline __attribute__((always_inline)) uint64_t middle(uint64_t x) {
    for (int i = 0; i < 50; i++) {
        x = inner(x) + 1;
    }
    return x;
}

FUNCTION uint64_t outer(uint64_t x) { return middle(x) | 1; }

int main(int argc, char **argv) {
    uint64_t end = ns_argument(argc, argv, 1, 1.0) + cpu_ns();
    uint64_t x = 1;
    while (cpu_ns() < end) {
        x = outer(x);
    }
    return x == 0;
}
