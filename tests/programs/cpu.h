// CPU time of the calling thread, and ways to spend an exact amount of it.
#ifndef CPU_H
#define CPU_H

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

// Kept out of line, in its own frame, and never replaced by a tail call or a copy.
#define FUNCTION __attribute__((noipa))
// A statement after a call that keeps the compiler from turning the call into a jump.
#define NO_TAIL_CALL() __asm__ volatile("" ::: "memory")

// CPU time that this thread has used, in nanoseconds.
static inline uint64_t cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// Some 20 microseconds of arithmetic on registers: no memory, no calls. Reading the clock between
// two of these costs about 2 % of the time.
#define CRUNCH(x)                                                   \
    do {                                                            \
        for (int crunch_i = 0; crunch_i < 8000; crunch_i++) {       \
            (x) ^= (x) << 13, (x) ^= (x) >> 7, (x) ^= (x) << 17;    \
        }                                                           \
        __asm__ volatile("" : "+r"(x));                             \
    } while (0)

// Burns until the thread has used `end` nanoseconds, in the frame of the function it is used in.
#define BURN_UNTIL(end)                         \
    do {                                        \
        uint64_t burn_x = 88172645463325252u;   \
        while (cpu_ns() < (end)) {              \
            CRUNCH(burn_x);                     \
        }                                       \
    } while (0)

// The argument at that position as seconds, in nanoseconds; `seconds` where there is none.
static inline uint64_t ns_argument(int argc, char **argv, int at, double seconds) {
    return (uint64_t)((argc > at ? atof(argv[at]) : seconds) * 1e9);
}

#endif
