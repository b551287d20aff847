// deep CPU_SECONDS THREADS CALLERS PAD SEED: stacks that are far deeper and wider than shallow ones.
//
// Each thread burns CPU_SECONDS in rounds of 5 to 500 ms, whose lengths are drawn from SEED: 30 %
// of each below 300 levels of `descend`, 15 % below `wide`, which has an array of 80 KiB, the rest
// in `shallow`. `descend` is called by `first` in every round (CALLERS 1), or by turns of `first`
// and `second`, whose frames have the same size (CALLERS 2). A level of `descend` takes PAD bytes:
// 100 (40 KiB in all), or 200 (70 KiB in all).
//
// Prints the CPU time in nanoseconds that passed in each: first, second, wide, shallow.
#include "cpu.h"
#include <pthread.h>
#include <stdio.h>

#define LEVELS 300

struct thread {
    uint64_t random, length;
    int callers, pad;
    uint64_t spent[4];
};

FUNCTION static void bottom(uint64_t end) { BURN_UNTIL(end); }

FUNCTION static void descend(int left, uint64_t end) {
    volatile char pad[80];
    pad[0] = 1;
    if (left <= 1) {
        bottom(end);
    } else {
        descend(left - 1, end);
    }
    pad[1] = pad[0];
}

FUNCTION static void descend_far(int left, uint64_t end) {
    volatile char pad[190];
    pad[0] = 1;
    if (left <= 1) {
        bottom(end);
    } else {
        descend_far(left - 1, end);
    }
    pad[1] = pad[0];
}

FUNCTION static void first(int pad, uint64_t end) {
    if (pad > 100) {
        descend_far(LEVELS, end);
    } else {
        descend(LEVELS, end);
    }
    NO_TAIL_CALL();
}

FUNCTION static void second(int pad, uint64_t end) {
    if (pad > 100) {
        descend_far(LEVELS, end);
    } else {
        descend(LEVELS, end);
    }
    NO_TAIL_CALL();
}

FUNCTION static void touch(volatile char *array, unsigned at) { array[at & 0xffff] += 1; }

// Burns by itself and through what it calls.
FUNCTION static void wide(uint64_t end) {
    volatile char array[80 * 1024];
    uint64_t x = 88172645463325252u;
    while (cpu_ns() < end) {
        CRUNCH(x);
        touch(array, (unsigned)x);
    }
}

FUNCTION static void shallow(uint64_t end) { BURN_UNTIL(end); }

static uint64_t draw(uint64_t *random) {
    *random ^= *random << 13, *random ^= *random >> 7, *random ^= *random << 17;
    return *random;
}

// 5 to 500 ms, short ones as often as long ones: 5 times 10^(0 to 2).
static uint64_t draw_round(uint64_t *random) {
    uint64_t length = 5000000u + draw(random) % 5000000u;
    for (uint64_t doublings = draw(random) % 7; doublings > 0; doublings--) {
        length += length * (draw(random) % 64 + 32) / 64 * 60 / 100;
    }
    return length;
}

FUNCTION static void rounds(struct thread *thread) {
    uint64_t now = cpu_ns(), end = now + thread->length, start = now;
    for (int round = 0; now < end; round++) {
        uint64_t length = draw_round(&thread->random);
        int by_second = thread->callers > 1 && draw(&thread->random) % 2;
        if (by_second) {
            second(thread->pad, now + length * 30 / 100);
        } else {
            first(thread->pad, now + length * 30 / 100);
        }
        uint64_t after_deep = cpu_ns();
        wide(now + length * 45 / 100);
        uint64_t after_wide = cpu_ns();
        shallow(now + length);
        start = now, now = cpu_ns();
        thread->spent[by_second] += after_deep - start;
        thread->spent[2] += after_wide - after_deep;
        thread->spent[3] += now - after_wide;
    }
}

static void *run(void *argument) {
    rounds(argument);
    return NULL;
}

int main(int argc, char **argv) {
    enum { MOST = 16 };
    static struct thread threads[MOST];
    pthread_t ids[MOST];
    uint64_t length = ns_argument(argc, argv, 1, 1.0);
    int count = argc > 2 ? atoi(argv[2]) : 1;
    count = count < 1 ? 1 : count > MOST ? MOST : count;
    for (int i = 0; i < count; i++) {
        threads[i].length = length;
        threads[i].callers = argc > 3 ? atoi(argv[3]) : 1;
        threads[i].pad = argc > 4 ? atoi(argv[4]) : 100;
        threads[i].random = 0x9e3779b97f4a7c15u * (uint64_t)(i + 1 + (argc > 5 ? atoi(argv[5]) : 0));
        if (i > 0) {
            pthread_create(&ids[i], NULL, run, &threads[i]);
        }
    }
    run(&threads[0]);
    uint64_t spent[4] = {0};
    for (int i = 0; i < count; i++) {
        if (i > 0) {
            pthread_join(ids[i], NULL);
        }
        for (int kind = 0; kind < 4; kind++) {
            spent[kind] += threads[i].spent[kind];
        }
    }
    printf("%llu %llu %llu %llu\n", (unsigned long long)spent[0], (unsigned long long)spent[1],
           (unsigned long long)spent[2], (unsigned long long)spent[3]);
    return 0;
}
