// buffer SECONDS: waits in a function with a large buffer, which the frames of other calls have been in before.
//
// `in_rare` waits for long now and then. In between `in_often`, further down the stack, waits for short times in the same
// function. Says for how long each of them did not run.
#include "cpu.h"
#include <stdio.h>

static uint64_t rare_ns, often_ns;

static uint64_t wall_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

FUNCTION static void use(char *buffer) {
    __asm__ volatile("" : : "r"(buffer) : "memory");
}

// Nothing writes to most of the buffer, as when a short line is read.
FUNCTION static void wait_in_buffer(long us) {
    char buffer[8192];
    struct timespec t = {0, us * 1000};
    use(buffer);
    nanosleep(&t, NULL);
    use(buffer);
}

FUNCTION static void in_often(void) {
    uint64_t wall = wall_ns(), cpu = cpu_ns();
    wait_in_buffer(100);
    often_ns += (wall_ns() - wall) - (cpu_ns() - cpu);
}

FUNCTION static void deeper(int levels) {
    char space[200];
    use(space);
    if (levels > 0) {
        deeper(levels - 1);
    } else {
        in_often();
    }
    use(space);
}

FUNCTION static void in_rare(void) {
    uint64_t wall = wall_ns(), cpu = cpu_ns();
    wait_in_buffer(40000);
    rare_ns += (wall_ns() - wall) - (cpu_ns() - cpu);
}

int main(int argc, char **argv) {
    uint64_t end = wall_ns() + ns_argument(argc, argv, 1, 1.0);
    while (wall_ns() < end) {
        for (int i = 0; i < 60; i++) {
            deeper(i * 7 % 12);
        }
        in_rare();
    }
    printf("in_rare %lu\nin_often %lu\n", rare_ns, often_ns);
    return 0;
}
