// churn PLUGIN OTHER_PLUGIN OTHER_NAME [CPU_SECONDS]: all that a process is known by changes.
//
// A sixth of the time each: `use_plugin` and `use_other` load and unload one plugin after the other
// at the same address, time and again; `after_rename` is called when the thread is named `renamed`;
// `first_life` is a child named `life-1` that loads PLUGIN, `second_life` one named `life-2` that
// has the same process id and OTHER_PLUGIN at the same address; at last OTHER_NAME (a copy of this
// program) is executed and burns in `after_exec`.
// Prints `reused PID`, or `not reused` where process ids cannot be chosen, and `same ADDRESS`, or
// `not same` where the plugins were not at one address.
#define _GNU_SOURCE
#include "cpu.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 20
#define TRIES 2000

typedef void burn_function(uint64_t);

static uint64_t part;
static const char *plugins[2];
static const char *const symbols[2] = {"plugin_work", "other_work"};

FUNCTION static void use_plugin(burn_function *work, uint64_t end) {
    work(end);
    NO_TAIL_CALL();
}
FUNCTION static void use_other(burn_function *work, uint64_t end) {
    work(end);
    NO_TAIL_CALL();
}
FUNCTION static void first_life(burn_function *work, uint64_t end) {
    work(end);
    NO_TAIL_CALL();
}
FUNCTION static void second_life(burn_function *work, uint64_t end) {
    work(end);
    NO_TAIL_CALL();
}
FUNCTION static void after_rename(uint64_t end) { BURN_UNTIL(end); }
FUNCTION static void after_exec(uint64_t end) { BURN_UNTIL(end); }

// Loads a plugin, has `use` burn in it, and unloads it; returns where its function was.
static void *with_plugin(int which, void (*use)(burn_function *, uint64_t), uint64_t length) {
    void *plugin = dlopen(plugins[which], RTLD_NOW);
    if (plugin == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        _exit(1);
    }
    void *work = dlsym(plugin, symbols[which]);
    use((burn_function *)work, cpu_ns() + length);
    dlclose(plugin);
    return work;
}

static void load_and_unload(void) {
    void *first = NULL, *second = NULL;
    for (int round = 0; round < ROUNDS; round++) {
        first = with_plugin(0, use_plugin, part / ROUNDS);
        second = with_plugin(1, use_other, part / ROUNDS);
    }
    if (first == second) {
        printf("same %p\n", first);
    } else {
        puts("not same");
    }
}

// Forks a child with that process id: the kernel counts on from what is written. Others may fork
// in between, so it takes some tries; -1 where it cannot be done.
static pid_t fork_as(pid_t wanted) {
    int last = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
    if (last < 0) {
        return -1;
    }
    for (int tried = 0; tried < TRIES; tried++) {
        dprintf(last, "%d", wanted - 1);
        pid_t child = fork();
        if (child == 0 && getpid() != wanted) {
            _exit(0);
        }
        if (child <= 0 || child == wanted) {
            close(last);
            return child;
        }
        waitpid(child, NULL, 0);
    }
    close(last);
    return -1;
}

static void two_lives(void) {
    fflush(stdout);
    pid_t first = fork();
    if (first == 0) {
        prctl(PR_SET_NAME, "life-1");
        with_plugin(0, first_life, part);
        _exit(0);
    }
    waitpid(first, NULL, 0);
    pid_t second = fork_as(first);
    if (second == 0) {
        prctl(PR_SET_NAME, "life-2");
        with_plugin(1, second_life, part);
        _exit(0);
    }
    waitpid(second, NULL, 0);
    if (second == first) {
        printf("reused %d\n", first);
    } else {
        puts("not reused");
    }
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "executed") == 0) {
        part = strtoull(argv[2], NULL, 10);
        after_exec(cpu_ns() + part);
        return 0;
    }
    if (argc < 4) {
        return 2;
    }
    plugins[0] = argv[1], plugins[1] = argv[2];
    part = ns_argument(argc, argv, 4, 1.0) / 6;
    load_and_unload();
    two_lives();
    prctl(PR_SET_NAME, "renamed");
    after_rename(cpu_ns() + part);
    char length[24];
    snprintf(length, sizeof length, "%llu", (unsigned long long)part);
    fflush(stdout);
    execl(argv[3], argv[3], "executed", length, (char *)NULL);
    perror(argv[3]);
    return 1;
}
