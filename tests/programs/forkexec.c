// forkexec CPU_SECONDS OTHER_NAME: a parent, its child before exec, and the child after it.
//
// The parent burns in `in_parent` beside the child, which burns in `before_exec` and then executes
// OTHER_NAME (a copy of this program), which burns in `after_exec`: CPU_SECONDS each.
#include "cpu.h"
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

FUNCTION static void in_parent(uint64_t end) { BURN_UNTIL(end); }
FUNCTION static void before_exec(uint64_t end) { BURN_UNTIL(end); }
FUNCTION static void after_exec(uint64_t end) { BURN_UNTIL(end); }

int main(int argc, char **argv) {
    uint64_t total = ns_argument(argc, argv, 1, 1.0);
    if (argc < 3) {
        return 2;
    }
    if (strcmp(argv[2], "executed") == 0) {
        after_exec(cpu_ns() + total);
        return 0;
    }
    puts("ready");
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        before_exec(cpu_ns() + total);
        execl(argv[2], argv[2], argv[1], "executed", (char *)NULL);
        perror(argv[2]);
        _exit(1);
    }
    in_parent(cpu_ns() + total);
    int status = 1;
    waitpid(child, &status, 0);
    return status != 0;
}
