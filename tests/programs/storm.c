// storm MODE [THREADS]: changes what whoever looks at it has to keep up with, until it is ended. It
// says `ready`.
//
// comm      gives its thread another name, over and over
// exec      forks children that execute this program, which ends at once
// mmap      maps 65,000 parts of its own file as code, and unmaps them
// threads   starts THREADS threads, lets them end, and starts as many again
// map       runs code without a file, and writes its perf map anew: megabytes of names a second
#define _GNU_SOURCE
#include "cpu.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jit_code.h"

#define MAPPINGS 65000
#define MAP_LINES 20000

static void comm(void) {
    for (unsigned number = 0;; number++) {
        char name[16];
        snprintf(name, sizeof name, "storm-%u", number);
        prctl(PR_SET_NAME, name);
    }
}

static void exec_children(const char *program) {
    for (;;) {
        pid_t child = fork();
        if (child == 0) {
            execl(program, program, "nothing", (char *)NULL);
            _exit(1);
        }
        if (child > 0) {
            waitpid(child, NULL, 0);
        }
    }
}

static void map_pages(const char *program) {
    static void *pages[MAPPINGS];
    for (;;) {
        int file = open(program, O_RDONLY);
        for (int page = 0; page < MAPPINGS; page++) {
            int rights = page % 2 ? PROT_READ | PROT_EXEC : PROT_READ;
            pages[page] = mmap(NULL, 4096, rights, MAP_PRIVATE, file, 0);
        }
        for (int page = 0; page < MAPPINGS; page++) {
            if (pages[page] != MAP_FAILED) {
                munmap(pages[page], 4096);
            }
        }
        close(file);
    }
}

static pthread_barrier_t barrier;

static void *wait_for_all(void *unused) {
    pthread_barrier_wait(&barrier);
    return unused;
}

static void start_threads(int count) {
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 16384);
    pthread_t *threads = calloc((size_t)count, sizeof *threads);
    for (;;) {
        // As many as this machine lets one have: those that wait are let go one by one else.
        pthread_barrier_init(&barrier, NULL, (unsigned)count + 1);
        for (int i = 0; i < count; i++) {
            while (pthread_create(&threads[i], &small, wait_for_all, NULL) != 0) {
                usleep(1000);
            }
        }
        pthread_barrier_wait(&barrier);
        for (int i = 0; i < count; i++) {
            pthread_join(threads[i], NULL);
        }
        pthread_barrier_destroy(&barrier);
    }
}

static void write_maps(void) {
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, inner_code, sizeof inner_code);
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
    void (*code)(uint64_t) = (void (*)(uint64_t))page;
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    for (unsigned round = 0;; round++) {
        FILE *map = fopen(path, round % 8 == 0 ? "w" : "a");
        if (map == NULL) {
            return;
        }
        for (int line = 0; line < MAP_LINES; line++) {
            fprintf(map, "%lx 1000 storm_%u_%d\n", (unsigned long)page, round, line);
        }
        fclose(map);
        code(10000000);
    }
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "";
    if (strcmp(mode, "nothing") == 0) {
        return 0;
    }
    // The test that starts it may be killed.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    printf("ready\n");
    fflush(stdout);
    if (strcmp(mode, "comm") == 0) {
        comm();
    } else if (strcmp(mode, "exec") == 0) {
        exec_children("/proc/self/exe");
    } else if (strcmp(mode, "mmap") == 0) {
        map_pages("/proc/self/exe");
    } else if (strcmp(mode, "threads") == 0) {
        start_threads(argc > 2 ? atoi(argv[2]) : 1000);
    } else if (strcmp(mode, "map") == 0) {
        write_maps();
    }
    return 3;
}
