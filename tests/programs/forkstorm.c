// forkstorm RATE SECONDS: so many processes a second, each of which burns 0.1 ms in `storm_child`.
//
// They are started by the clock; where the machine is too slow, one directly after the other.
// Prints `processes COUNT`, `storm_child CPU_SECONDS`, and `total CPU_SECONDS` of all processes.
#define _GNU_SOURCE
#include "cpu.h"
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define TASK_NS 100000u

static _Atomic uint64_t *used;

FUNCTION static void storm_child(uint64_t end) { BURN_UNTIL(end); }

static void child(void) {
    uint64_t start = cpu_ns();
    storm_child(start + TASK_NS);
    *used += cpu_ns() - start;
}

static uint64_t monotonic_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void sleep_until(uint64_t end) {
    struct timespec t = {(time_t)(end / 1000000000u), (long)(end % 1000000000u)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static double seconds(int who) {
    struct rusage usage;
    getrusage(who, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv) {
    long rate = argc > 1 ? atol(argv[1]) : 2000;
    uint64_t length = ns_argument(argc, argv, 2, 1.0), start = monotonic_ns();
    used = mmap(NULL, sizeof *used, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (rate < 1 || used == MAP_FAILED) {
        return 2;
    }
    uint64_t step = 1000000000u / (uint64_t)rate, count = 0;
    for (; count * step < length; count++) {
        sleep_until(start + count * step);
        pid_t pid = fork();
        if (pid == 0) {
            child();
            _exit(0);
        }
        if (pid < 0) {
            perror("fork");
            return 1;
        }
        while (waitpid(-1, NULL, WNOHANG) > 0) {
        }
    }
    while (waitpid(-1, NULL, 0) > 0) {
    }
    printf("processes %llu\nstorm_child %.6f\n", (unsigned long long)count, (double)*used / 1e9);
    printf("total %.6f\n", seconds(RUSAGE_SELF) + seconds(RUSAGE_CHILDREN));
    return 0;
}
