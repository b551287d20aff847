// pool: a server that burns until it is killed in its main thread and in the threads `pool-1-thread-1` to
// `-4`, and has set the title `server: busy` itself, as PostgreSQL and nginx do. It says `ready`.
#define _GNU_SOURCE
#include "cpu.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#define THREADS 4

FUNCTION static void serve(void) { BURN_UNTIL(UINT64_MAX); }

static void *worker(void *name) {
    pthread_setname_np(pthread_self(), name);
    serve();
    return NULL;
}

int main(int argc, char **argv) {
    // Over the words, up to the end of the last one, with no zero between them.
    size_t room = (size_t)(argv[argc - 1] + strlen(argv[argc - 1]) - argv[0]);
    memset(argv[0], 0, room);
    snprintf(argv[0], room, "server: busy");
    static char names[THREADS][16];
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        snprintf(names[i], sizeof names[i], "pool-1-thread-%d", i + 1);
        pthread_create(&thread, NULL, worker, names[i]);
    }
    puts("ready");
    fflush(stdout);
    serve();
    return 0;
}
