// lockstep CPU_SECONDS RHYTHM...: a thread a RHYTHM, which goes round its functions in time.
//
// A RHYTHM is NAME=HZ:SHARE,SHARE[,SHARE[,SHARE]][:clock|:rest]. The thread is called NAME, and its
// HZ cycles a second are divided by those shares (percent) among `first`, `second`, `third` and
// `fourth`. The cycles are counted in CPU time; with `clock` on the monotonic clock, so that they
// stay in phase with it whatever else runs; with `rest` on that clock, too, but the functions share
// the first half of a cycle, and the thread sleeps through the other half.
// Each thread ends when it has used CPU_SECONDS, and prints lines `NAME FUNCTION CPU_SECONDS`;
// last comes `total CPU_SECONDS` of the process.
#define _GNU_SOURCE
#include "cpu.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define STEPS 4
#define MAX_RHYTHMS 32

enum pace { BY_CPU_TIME, BY_CLOCK, WITH_REST };

struct rhythm {
    char name[16];
    double hz;
    double shares[STEPS];
    enum pace pace;
    uint64_t used[STEPS];
    pthread_t thread;
};

static const char *const names[STEPS] = {"first", "second", "third", "fourth"};
static uint64_t total;

static uint64_t now_of(enum pace pace) {
    struct timespec t;
    clock_gettime(pace == BY_CPU_TIME ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#define PACE_UNTIL(pace, end)                 \
    do {                                      \
        uint64_t pace_x = 88172645463325252u; \
        while (now_of(pace) < (end)) {        \
            CRUNCH(pace_x);                   \
        }                                     \
    } while (0)

FUNCTION static void first(enum pace pace, uint64_t end) { PACE_UNTIL(pace, end); }
FUNCTION static void second(enum pace pace, uint64_t end) { PACE_UNTIL(pace, end); }
FUNCTION static void third(enum pace pace, uint64_t end) { PACE_UNTIL(pace, end); }
FUNCTION static void fourth(enum pace pace, uint64_t end) { PACE_UNTIL(pace, end); }

static void (*const functions[STEPS])(enum pace, uint64_t) = {first, second, third, fourth};

static void sleep_until(uint64_t end) {
    struct timespec t = {(time_t)(end / 1000000000u), (long)(end % 1000000000u)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void *run(void *argument) {
    struct rhythm *rhythm = argument;
    pthread_setname_np(pthread_self(), rhythm->name);
    double cycle = 1e9 / rhythm->hz, busy = rhythm->pace == WITH_REST ? cycle / 2 : cycle;
    uint64_t start = now_of(rhythm->pace), now = cpu_ns();
    for (uint64_t turn = 0; now < total; turn++) {
        // Counted from the start each time, so that no error adds up.
        double end = (double)turn * cycle;
        for (int step = 0; step < STEPS && rhythm->shares[step] > 0; step++) {
            end += busy * rhythm->shares[step] / 100;
            functions[step](rhythm->pace, start + (uint64_t)end);
            uint64_t then = cpu_ns();
            rhythm->used[step] += then - now;
            now = then;
        }
        if (rhythm->pace == WITH_REST) {
            sleep_until(start + (uint64_t)((double)(turn + 1) * cycle));
            now = cpu_ns();
        }
    }
    return NULL;
}

static int parse(const char *text, struct rhythm *rhythm) {
    char pace[8] = "";
    double *shares = rhythm->shares;
    int read = sscanf(text, "%15[^=]=%lf:%lf,%lf,%lf,%lf", rhythm->name, &rhythm->hz, &shares[0],
                      &shares[1], &shares[2], &shares[3]);
    const char *last = strrchr(text, ':');
    if (read < 4 || rhythm->hz <= 0 || last == NULL) {
        return 0;
    }
    sscanf(last, ":%7[a-z]", pace);
    rhythm->pace = strcmp(pace, "clock") == 0  ? BY_CLOCK
                   : strcmp(pace, "rest") == 0 ? WITH_REST
                                               : BY_CPU_TIME;
    return 1;
}

int main(int argc, char **argv) {
    static struct rhythm rhythms[MAX_RHYTHMS];
    total = ns_argument(argc, argv, 1, 1.0);
    int count = argc - 2;
    if (count < 1 || count > MAX_RHYTHMS) {
        return 2;
    }
    for (int at = 0; at < count; at++) {
        if (!parse(argv[at + 2], &rhythms[at])) {
            fprintf(stderr, "not a rhythm: %s\n", argv[at + 2]);
            return 2;
        }
    }
    for (int at = 0; at < count; at++) {
        pthread_create(&rhythms[at].thread, NULL, run, &rhythms[at]);
    }
    for (int at = 0; at < count; at++) {
        pthread_join(rhythms[at].thread, NULL);
        for (int step = 0; step < STEPS && rhythms[at].shares[step] > 0; step++) {
            double seconds = (double)rhythms[at].used[step] / 1e9;
            printf("%s %s %.6f\n", rhythms[at].name, names[step], seconds);
        }
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("total %.6f\n", (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                               (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
    return 0;
}
