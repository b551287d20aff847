// crowd IDLE BUSY: IDLE threads that wait, BUSY threads named `busy` that burn in `crowd_work`, and
// one that watches for being stopped. Says `ready` when all are there; ends when a line comes.
//
// Whoever waits for a CPU is not stopped: the watch subtracts from the time that went by what its
// own thread ran, and what it waited for a CPU as /proc/thread-self/schedstat has it. (What that
// file has of running time is as old as the last tick.)
// Prints `stopped MILLISECONDS`, the longest time that is left between two looks.
#define _GNU_SOURCE
#include "cpu.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static pthread_barrier_t all_there;
static _Atomic int64_t longest;

FUNCTION static void crowd_work(uint64_t end) { BURN_UNTIL(end); }

static void *idle_thread(void *unused) {
    pthread_barrier_wait(&all_there);
    for (;;) {
        pause();
    }
    return unused;
}

static void *busy_thread(void *unused) {
    pthread_setname_np(pthread_self(), "busy");
    pthread_barrier_wait(&all_there);
    crowd_work(UINT64_MAX);
    return unused;
}

static int64_t monotonic_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t waited_ns(int schedstat) {
    char text[64] = "";
    long long waited = 0;
    if (pread(schedstat, text, sizeof text - 1, 0) > 0) {
        sscanf(text, "%*d %lld", &waited);
    }
    return waited;
}

// The time that went by while this thread neither ran nor waited for a CPU, since some start.
static int64_t elsewhere_ns(int schedstat) {
    for (int64_t before = waited_ns(schedstat);;) {
        int64_t time = monotonic_ns() - (int64_t)cpu_ns();
        int64_t waited = waited_ns(schedstat);
        if (waited == before) {
            return time - waited;
        }
        // The thread lost its CPU between the clocks.
        before = waited;
    }
}

FUNCTION static void watch(int schedstat) {
    uint64_t x = 88172645463325252u;
    for (int64_t last = elsewhere_ns(schedstat);;) {
        CRUNCH(x);
        int64_t now = elsewhere_ns(schedstat);
        if (now - last > longest) {
            longest = now - last;
        }
        last = now;
    }
}

static void *watching_thread(void *unused) {
    pthread_setname_np(pthread_self(), "watch");
    pthread_barrier_wait(&all_there);
    watch(open("/proc/thread-self/schedstat", O_RDONLY));
    return unused;
}

static int start(int count, void *(*run)(void *)) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 * 1024);
    for (int at = 0; at < count; at++) {
        pthread_t thread;
        int error = pthread_create(&thread, &attributes, run, NULL);
        if (error != 0) {
            fprintf(stderr, "thread %d of %d: error %d\n", at, count, error);
            return 0;
        }
    }
    return 1;
}

int main(int argc, char **argv) {
    int idle = argc > 1 ? atoi(argv[1]) : 100, busy = argc > 2 ? atoi(argv[2]) : 1;
    pthread_barrier_init(&all_there, NULL, (unsigned)(idle + busy + 2));
    if (!start(idle, idle_thread) || !start(busy, busy_thread) || !start(1, watching_thread)) {
        return 1;
    }
    pthread_barrier_wait(&all_there);
    puts("ready");
    fflush(stdout);
    getchar();
    printf("stopped %.3f\n", (double)longest / 1e6);
    fflush(stdout);
    _exit(0);
}
