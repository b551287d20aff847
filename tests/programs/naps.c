// naps THREADS: so many threads that sleep for 10 ms over and over, until it is killed. It prints `ready` when all have begun.
#define _GNU_SOURCE
#include "cpu.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_barrier_t begun;

FUNCTION static void naps(void) {
    for (;;) {
        usleep(10000);
    }
}

static void *napper(void *unused) {
    (void)unused;
    pthread_barrier_wait(&begun);
    naps();
    return NULL;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    pthread_barrier_init(&begun, NULL, threads + 1);
    for (int i = 0; i < threads; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, napper, NULL);
    }
    pthread_barrier_wait(&begun);
    puts("ready");
    fflush(stdout);
    for (;;) {
        pause();
    }
}
