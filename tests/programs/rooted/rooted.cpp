// rooted SECONDS: main -> outer -> inner from a destructor that runs while an exception passes, and from
// the handler that catches it.
#include "../cpu.h"
#include <cstdio>

static uint64_t sink;

static uint64_t wall_ns() {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

FUNCTION static void inner() {
    uint64_t x = 1;
    for (int round = 0; round < 200; round++) {
        CRUNCH(x);
    }
    struct timespec pause = {0, 2000000};
    nanosleep(&pause, 0);
    sink = x;
}

struct Guard {
    FUNCTION ~Guard() { inner(); }
};

FUNCTION static void thrower(int left) {
    if (left == 0) {
        throw left;
    }
    Guard guard;
    thrower(left - 1);
}

FUNCTION static void outer() {
    try {
        thrower(3);
    } catch (int) {
        inner();
    }
}

int main(int argc, char **argv) {
    uint64_t end = wall_ns() + ns_argument(argc, argv, 1, 1.0);
    puts("ready");
    fflush(stdout);
    while (wall_ns() < end) {
        outer();
    }
    return 0;
}
