// transfers N: N reads of 100 bytes in `small`, N / 10 writes of 4096 in `large`, ten reads in `slow`
// that wait for 20 ms each, and in `piped` 3000 bytes that go into a pipe, into another, and out of it.
#define _GNU_SOURCE
#include "cpu.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

static char buffer[65536];

static void must(int holds) {
    if (!holds) {
        abort();
    }
}

FUNCTION static void small(int from, int times) {
    for (int i = 0; i < times; i++) {
        must(read(from, buffer, 100) == 100);
    }
    NO_TAIL_CALL();
}

FUNCTION static void large(int to, int times) {
    for (int i = 0; i < times; i++) {
        must(write(to, buffer, 4096) == 4096);
    }
    NO_TAIL_CALL();
}

FUNCTION static void slow(int from) {
    for (int i = 0; i < 10; i++) {
        must(read(from, buffer, 1) == 1);
    }
    NO_TAIL_CALL();
}

FUNCTION static void piped(void) {
    int first[2], second[2];
    struct iovec bytes = {buffer, 3000};
    must(pipe(first) == 0 && pipe(second) == 0);
    must(vmsplice(first[1], &bytes, 1, 0) == 3000);
    must(tee(first[0], second[1], 3000, 0) == 3000);
    must(read(second[0], buffer, 3000) == 3000);
    NO_TAIL_CALL();
}

int main(int argc, char **argv) {
    int times = argc > 1 ? atoi(argv[1]) : 100, ends[2];
    must(pipe(ends) == 0);
    if (fork() == 0) {
        for (int i = 0; i < 10; i++) {
            usleep(20000);
            must(write(ends[1], buffer, 1) == 1);
        }
        _exit(0);
    }
    slow(ends[0]);
    small(open("/dev/zero", O_RDONLY), times);
    large(open("/dev/null", O_WRONLY), times / 10);
    piped();
    return 0;
}
