// exitcode CPU_SECONDS CODE | exitcode CPU_SECONDS kill: burns, then exits with CODE or is killed
// by its own SIGKILL.
#include "cpu.h"
#include <signal.h>
#include <string.h>

FUNCTION static void burn(uint64_t end) { BURN_UNTIL(end); }

int main(int argc, char **argv) {
    burn(ns_argument(argc, argv, 1, 0.1) + cpu_ns());
    if (argc > 2 && strcmp(argv[2], "kill") == 0) {
        raise(SIGKILL);
    }
    return argc > 2 ? atoi(argv[2]) : 0;
}
