// kernels_frames CPU_SECONDS WAY: frames that the kernel made, or whose code is the kernel's.
//
// signal: main -> work -> interrupted, which raises a signal -> handler -> handled, where it burns
// vdso:   main -> work -> ask, which asks for the time, again and again
#define _GNU_SOURCE
#include "cpu.h"
#include <signal.h>
#include <string.h>

static uint64_t end;

FUNCTION static void handled(uint64_t until) { BURN_UNTIL(until); }

FUNCTION static void handler(int number) {
    (void)number;
    // Some 50 ms, so that the ways there and back do not matter.
    handled(cpu_ns() + 50000000u);
    NO_TAIL_CALL();
}

FUNCTION static void interrupted(void) {
    raise(SIGUSR1);
    NO_TAIL_CALL();
}

FUNCTION static void ask(void) {
    struct timespec t;
    for (int times = 0; times < 20000; times++) {
        clock_gettime(CLOCK_MONOTONIC, &t);
    }
}

FUNCTION static void work(int asks) {
    while (cpu_ns() < end) {
        if (asks) {
            ask();
        } else {
            interrupted();
        }
    }
    NO_TAIL_CALL();
}

int main(int argc, char **argv) {
    end = ns_argument(argc, argv, 1, 1.0) + cpu_ns();
    signal(SIGUSR1, handler);
    work(argc > 2 && strcmp(argv[2], "vdso") == 0);
    return 0;
}
