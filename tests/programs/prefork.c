// prefork WORKERS BEFORE_SECONDS CPU_SECONDS: a server with its workers.
//
// Each worker uses BEFORE_SECONDS of CPU time in `warm_up`. Then the server says `ready` and waits
// for a line, upon which each worker uses CPU_SECONDS in `serve`, and the server itself in `lead`.
// The workers end one after the other and are waited for. Prints `FUNCTION CPU_SECONDS`.
#include "cpu.h"
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 64

FUNCTION static void warm_up(uint64_t end) { BURN_UNTIL(end); }
FUNCTION static void serve(uint64_t end) { BURN_UNTIL(end); }
FUNCTION static void lead(uint64_t end) { BURN_UNTIL(end); }

int main(int argc, char **argv) {
    int workers = argc > 1 ? atoi(argv[1]) : 4;
    uint64_t before = ns_argument(argc, argv, 2, 0.2), span = ns_argument(argc, argv, 3, 0.5);
    int start[2], warm[2], used[2];
    if (workers < 1 || workers > MOST || pipe(start) != 0 || pipe(warm) != 0 || pipe(used) != 0) {
        return 2;
    }
    for (int worker = 0; worker < workers; worker++) {
        if (fork() != 0) {
            continue;
        }
        char byte = 1;
        close(start[1]);
        warm_up(before);
        if (write(warm[1], &byte, 1) != 1 || read(start[0], &byte, 1) != 1) {
            _exit(1);
        }
        uint64_t begin = cpu_ns();
        serve(begin + span);
        uint64_t spent = cpu_ns() - begin;
        _exit(write(used[1], &spent, sizeof spent) != sizeof spent);
    }
    char line[8];
    for (int worker = 0; worker < workers; worker++) {
        if (read(warm[0], line, 1) != 1) {
            return 1;
        }
    }
    puts("ready");
    fflush(stdout);
    if (fgets(line, sizeof line, stdin) == NULL) {
        return 1;
    }
    for (int worker = 0; worker < workers; worker++) {
        if (write(start[1], line, 1) != 1) {
            return 1;
        }
    }
    uint64_t begin = cpu_ns();
    lead(begin + span);
    double led = (double)(cpu_ns() - begin) / 1e9, served = 0;
    for (int worker = 0; worker < workers; worker++) {
        uint64_t spent;
        if (read(used[0], &spent, sizeof spent) != sizeof spent || wait(NULL) < 0) {
            return 1;
        }
        served += (double)spent / 1e9;
    }
    printf("serve %.6f\nlead %.6f\n", served, led);
    return 0;
}
