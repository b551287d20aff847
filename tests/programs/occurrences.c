// occurrences faults|switches RATE SECONDS [wait]: page faults or context switches at an exact rate.
//
// Of four, three are of `in_three` and one of `in_one`, in turn. The program is busy in between, so
// that nothing else gives up the CPU, and prints lines `FUNCTION COUNT` at its end, and how many the
// kernel counted for the main thread meanwhile, those that it did not ask for with them: `kernel main
// COUNT`. With `wait` it says `ready` and waits for a line first.
#define _GNU_SOURCE
#include "cpu.h"
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define PAGES 4096

static int there[2], back[2];
static char *memory;
static long page_size;
static uint64_t pages;

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void happen(int switches) {
    char byte = 1;
    if (switches) {
        // The other thread is on the same CPU: it cannot answer before this one waits.
        if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) {
            exit(1);
        }
    } else {
        if (pages % PAGES == 0) {
            madvise(memory, (size_t)(PAGES * page_size), MADV_DONTNEED);
        }
        ((volatile char *)memory)[pages++ % PAGES * (uint64_t)page_size] = 1;
    }
}

FUNCTION static void in_three(int switches) {
    happen(switches);
    NO_TAIL_CALL();
}

FUNCTION static void in_one(int switches) {
    happen(switches);
    NO_TAIL_CALL();
}

static uint64_t counted(int switches) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return (uint64_t)(switches ? usage.ru_nvcsw + usage.ru_nivcsw
                               : usage.ru_minflt + usage.ru_majflt);
}

static void *answer(void *unused) {
    (void)unused;
    char byte;
    while (read(there[0], &byte, 1) == 1) {
        if (write(back[1], &byte, 1) != 1) {
            break;
        }
    }
    return NULL;
}

int main(int argc, char **argv) {
    int switches = argc > 1 && strcmp(argv[1], "switches") == 0;
    double rate = argc > 2 ? atof(argv[2]) : 1000;
    uint64_t span = ns_argument(argc, argv, 3, 1.0);
    page_size = sysconf(_SC_PAGESIZE);
    size_t size = (size_t)(PAGES * page_size);
    memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || pipe(there) != 0 || pipe(back) != 0) {
        perror("occurrences");
        return 1;
    }
    // A huge page would take many faults at once.
    madvise(memory, size, MADV_NOHUGEPAGE);
    if (switches) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(sched_getcpu(), &one);
        sched_setaffinity(0, sizeof one, &one);
        pthread_t other;
        pthread_create(&other, NULL, answer, NULL);
    }
    if (argc > 4) {
        char line[8];
        puts("ready");
        fflush(stdout);
        if (fgets(line, sizeof line, stdin) == NULL) {
            return 1;
        }
    }
    uint64_t counts[2] = {0, 0};
    uint64_t before = counted(switches), start = now_ns(), now = start;
    for (uint64_t n = 0; now - start < span; n++) {
        int one = n % 4 == 3;
        (one ? in_one : in_three)(switches);
        counts[one]++;
        uint64_t next = start + (uint64_t)((double)(n + 1) * 1e9 / rate);
        while ((now = now_ns()) < next && now - start < span) {
        }
    }
    printf("in_three %llu\nin_one %llu\n", (unsigned long long)counts[0],
           (unsigned long long)counts[1]);
    printf("kernel main %llu\n", (unsigned long long)(counted(switches) - before));
    return 0;
}
