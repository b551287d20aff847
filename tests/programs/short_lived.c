// short_lived [CPU_SECONDS]: one half of the time in tasks of 0.4 ms, the other in long functions.
//
// Two threads go on in turns: a short task (a thread, a forked child, a forked child that executes
// this program again), or a slice of `long_alpha`, `long_beta` or `long_gamma` with 50, 30 and 20 %
// of that half. A thread and a forked child burn until they have used 0.4 ms in all; an executed
// one burns 0.4 ms besides what execve and the loader take. What fork, execve and exit cost is in
// no function. Must be called by its absolute path.
// Prints a line `FUNCTION CPU_SECONDS` of each function, and `total CPU_SECONDS` of all tasks.
#define _GNU_SOURCE
#include "cpu.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define TASK_NS 400000u

enum { IN_THREAD, IN_FORK, IN_EXEC, LONG_ALPHA, LONG_BETA, LONG_GAMMA, FUNCTIONS };
static const char *const names[FUNCTIONS] = {"in_thread",  "in_fork",   "in_exec",
                                             "long_alpha", "long_beta", "long_gamma"};
static const double wanted[FUNCTIONS] = {[LONG_ALPHA] = 0.5, [LONG_BETA] = 0.3, [LONG_GAMMA] = 0.2};

// CPU time by function, in memory that forked children share and executed ones map again.
static _Atomic uint64_t *used;
static char shared_memory[16];
static const char *self;
static uint64_t total;

FUNCTION static void in_thread(uint64_t end) { BURN_UNTIL(end); }
FUNCTION static void in_fork(uint64_t end) { BURN_UNTIL(end); }
FUNCTION static void in_exec(uint64_t end) { BURN_UNTIL(end); }
FUNCTION static void long_alpha(uint64_t end) { BURN_UNTIL(end); }
FUNCTION static void long_beta(uint64_t end) { BURN_UNTIL(end); }
FUNCTION static void long_gamma(uint64_t end) { BURN_UNTIL(end); }

static void (*const functions[FUNCTIONS])(uint64_t) = {in_thread,  in_fork,   in_exec,
                                                       long_alpha, long_beta, long_gamma};

static void burn(int which, uint64_t end) {
    uint64_t start = cpu_ns();
    functions[which](end);
    used[which] += cpu_ns() - start;
}

static void *short_thread(void *unused) {
    (void)unused;
    burn(IN_THREAD, TASK_NS);
    return NULL;
}

static void short_task(int which) {
    if (which == IN_THREAD) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, short_thread, NULL) == 0) {
            pthread_join(thread, NULL);
        }
        return;
    }
    pid_t child = fork();
    if (child == 0) {
        if (which == IN_FORK) {
            burn(IN_FORK, TASK_NS);
            _exit(0);
        }
        execl(self, self, "executed", shared_memory, (char *)NULL);
        _exit(1);
    }
    waitpid(child, NULL, 0);
}

static void long_slice(uint64_t length, uint64_t in_long) {
    int next = LONG_ALPHA;
    double most_behind = -1e18;
    for (int which = LONG_ALPHA; which < FUNCTIONS; which++) {
        double behind = wanted[which] * (double)in_long - (double)used[which];
        if (behind > most_behind) {
            most_behind = behind, next = which;
        }
    }
    burn(next, cpu_ns() + length);
}

static uint64_t sum(int from, int to) {
    uint64_t nanos = 0;
    for (int which = from; which < to; which++) {
        nanos += used[which];
    }
    return nanos;
}

static void *chain(void *seed) {
    uint64_t random_bits = (uint64_t)(uintptr_t)seed;
    for (int turn = 0; sum(0, FUNCTIONS) < total; turn++) {
        random_bits ^= random_bits << 13, random_bits ^= random_bits >> 7;
        random_bits ^= random_bits << 17;
        uint64_t in_short = sum(0, LONG_ALPHA), in_long = sum(LONG_ALPHA, FUNCTIONS);
        if (in_short < in_long) {
            short_task(turn % 3);
        } else {
            long_slice(1000000 + random_bits % 8000000, in_long);
        }
    }
    return NULL;
}

static double seconds(int who) {
    struct rusage usage;
    getrusage(who, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void *map(int file) {
    return mmap(NULL, sizeof(*used) * FUNCTIONS, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
}

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[1], "executed") == 0) {
        used = map(atoi(argv[2]));
        burn(IN_EXEC, cpu_ns() + TASK_NS);
        return 0;
    }
    self = argv[0];
    total = ns_argument(argc, argv, 1, 1.0);
    int file = memfd_create("used", 0);
    if (file < 0 || ftruncate(file, sizeof(*used) * FUNCTIONS) != 0) {
        perror("memfd_create");
        return 1;
    }
    snprintf(shared_memory, sizeof shared_memory, "%d", file);
    used = map(file);
    pthread_t other;
    pthread_create(&other, NULL, chain, (void *)0x9e3779b9u);
    chain((void *)0x7f4a7c15u);
    pthread_join(other, NULL);
    for (int which = 0; which < FUNCTIONS; which++) {
        printf("%s %.6f\n", names[which], (double)used[which] / 1e9);
    }
    printf("total %.6f\n", seconds(RUSAGE_SELF) + seconds(RUSAGE_CHILDREN));
    return 0;
}
