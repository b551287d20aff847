// wakes take FIFO: main -> take_work reads a byte again and again, and beside it main -> nap of another
// thread sleeps for 30 ms at a time. Ends when nobody writes any more.
// wakes give FIFO SECONDS: main -> give_work writes a byte each 20 ms.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "cpu.h"

static void sleep_ms(long ms) {
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

FUNCTION static int take_work(int fifo) {
    char byte;
    int got = (int)read(fifo, &byte, 1);
    NO_TAIL_CALL();
    return got;
}

FUNCTION static void give_work(int fifo) {
    if (write(fifo, "x", 1) != 1) {
        exit(1);
    }
    NO_TAIL_CALL();
}

FUNCTION static void nap(void) {
    sleep_ms(30);
    NO_TAIL_CALL();
}

static void *naps(void *unused) {
    prctl(PR_SET_NAME, "napper");
    for (;;) {
        nap();
    }
    return unused;
}

int main(int argc, char **argv) {
    if (argc < 3) {
        return 2;
    }
    if (strcmp(argv[1], "give") == 0) {
        prctl(PR_SET_NAME, "giver");
        int fifo = open(argv[2], O_WRONLY);
        for (int i = 0; i < atof(argv[3]) * 50; i++) {
            sleep_ms(20);
            give_work(fifo);
        }
        return 0;
    }
    prctl(PR_SET_NAME, "taker");
    pthread_t napper;
    pthread_create(&napper, NULL, naps, NULL);
    int fifo = open(argv[2], O_RDONLY);
    puts("ready");
    fflush(stdout);
    while (take_work(fifo) == 1) {
    }
    return 0;
}
