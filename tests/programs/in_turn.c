// in_turn N SECONDS: N functions make the same system call in turn, at full speed. It prints how often each did,
// `FUNCTION COUNT` a line.
#define _GNU_SOURCE
#include "cpu.h"
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST 7

static long calls[MOST];

#define PLACE(n)                        \
    FUNCTION static void place_##n(void) { \
        syscall(SYS_getppid);           \
        calls[n]++;                     \
        NO_TAIL_CALL();                 \
    }

PLACE(0) PLACE(1) PLACE(2) PLACE(3) PLACE(4) PLACE(5) PLACE(6)

static void (*const places[MOST])(void) = {place_0, place_1, place_2, place_3, place_4, place_5, place_6};

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int main(int argc, char **argv) {
    int number = argc > 1 ? atoi(argv[1]) : 4;
    uint64_t end = now_ns() + ns_argument(argc, argv, 2, 1.0);
    if (number < 1 || number > MOST) {
        return 2;
    }
    while (now_ns() < end) {
        for (int n = 0; n < 1000 * number; n++) {
            places[n % number]();
        }
    }
    for (int n = 0; n < number; n++) {
        printf("place_%d %ld\n", n, calls[n]);
    }
    return 0;
}
