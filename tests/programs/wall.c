// wall: threads that run, wait, or do both in turn, until the program is killed.
#define _GNU_SOURCE
#include "cpu.h"
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

FUNCTION static void nap(long us) {
    struct timespec t = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&t, NULL);
}

// Runs until the thread has had its CPU for so long.
FUNCTION static void run_for(uint64_t ns) {
    uint64_t end = cpu_ns() + ns;
    while (cpu_ns() < end) {
    }
}

FUNCTION static void by_turns(void) {
    for (;;) {
        run_for(5000000);
        nap(5000);
    }
}

FUNCTION static void seldom(void) {
    for (;;) {
        run_for(50000);
        nap(300000);
    }
}

FUNCTION static void without_end(void) {
    for (;;) {
        run_for(1000000000);
    }
}

FUNCTION static void often(void) {
    for (;;) {
        nap(100);
    }
}

FUNCTION static void never(void) {
    for (;;) {
        nap(1000000000);
    }
}

typedef struct {
    const char *name;
    void (*body)(void);
} Role;

static void *play(void *argument) {
    Role *role = argument;
    pthread_setname_np(pthread_self(), role->name);
    role->body();
    return NULL;
}

int main(void) {
    static Role roles[] = {
        {"turns", by_turns}, {"seldom", seldom}, {"runs", without_end}, {"often", often}, {"never", never},
    };
    pthread_t thread;
    for (unsigned i = 0; i < sizeof roles / sizeof *roles; i++) {
        pthread_create(&thread, NULL, play, &roles[i]);
    }
    never();
}
