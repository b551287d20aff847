// timers MICROSECONDS: has a timer fire on each CPU at that interval, for as long as the machine runs. It only sleeps:
// a loop of the shell would start a process each time.
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc != 2) {
        return 2;
    }
    useconds_t interval = (useconds_t)atoi(argv[1]);
    for (int cpu = 0; cpu < sysconf(_SC_NPROCESSORS_ONLN); cpu++) {
        if (fork() == 0) {
            cpu_set_t only;
            CPU_ZERO(&only);
            CPU_SET(cpu, &only);
            if (sched_setaffinity(0, sizeof only, &only)) {
                perror("timers");
                return 1;
            }
            for (;;) {
                usleep(interval);
            }
        }
    }
    return 0;
}
