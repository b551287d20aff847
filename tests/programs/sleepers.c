// sleepers COUNT: COUNT processes that sleep until their parent ends.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 100;
    for (int at = 0; at < count; at++) {
        pid_t child = fork();
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;) {
                pause();
            }
        }
        if (child < 0) {
            perror("fork");
            return 1;
        }
    }
    puts("ready");
    fflush(stdout);
    getchar();
    return 0;
}
