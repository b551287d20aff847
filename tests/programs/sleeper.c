// sleeper [SECONDS]: sleeps, and uses no CPU time to speak of; without SECONDS until it is killed.
#include "cpu.h"
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv) {
    puts("ready");
    fflush(stdout);
    if (argc < 2) {
        for (;;) {
            pause();
        }
    }
    uint64_t ns = ns_argument(argc, argv, 1, 1.0);
    struct timespec left = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    nanosleep(&left, NULL);
    return 0;
}
