// threads CPU_SECONDS [wait|leave]: two threads `early` and two `late`, each burns CPU_SECONDS.
//
// The early ones exist when `ready` is printed, but with `wait` nothing burns and the late ones
// are not started before a line comes on standard input. main itself only waits; with `leave` its thread
// ends before the others.
#define _GNU_SOURCE
#include "cpu.h"
#include <pthread.h>
#include <stdio.h>

static uint64_t total;
static pthread_barrier_t start;

FUNCTION static void early_work(void) { BURN_UNTIL(total); }
FUNCTION static void late_work(void) { BURN_UNTIL(total); }

static void *early_thread(void *unused) {
    (void)unused;
    pthread_setname_np(pthread_self(), "early");
    pthread_barrier_wait(&start); // named
    pthread_barrier_wait(&start); // may burn
    early_work();
    return NULL;
}

static void *late_thread(void *unused) {
    (void)unused;
    pthread_setname_np(pthread_self(), "late");
    late_work();
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[4];
    total = ns_argument(argc, argv, 1, 1.0);
    pthread_barrier_init(&start, NULL, 3);
    pthread_create(&threads[0], NULL, early_thread, NULL);
    pthread_create(&threads[1], NULL, early_thread, NULL);
    pthread_barrier_wait(&start);
    puts("ready");
    fflush(stdout);
    if (argc > 2 && argv[2][0] == 'w') {
        getchar();
    }
    pthread_barrier_wait(&start);
    pthread_create(&threads[2], NULL, late_thread, NULL);
    pthread_create(&threads[3], NULL, late_thread, NULL);
    if (argc > 2 && argv[2][0] == 'l') {
        pthread_exit(NULL);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
