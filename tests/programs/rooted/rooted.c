// rooted SECONDS WAY: main -> outer -> inner, which burns some milliseconds and sleeps for two in turn, and
// what WAY says between outer and inner:
//
// plain:     nothing
// signal:    a signal handler, on the stack that it interrupted
// alternate: a signal handler on a stack of its own
// bare:      assembly without a table or a frame pointer (x86-64 only)
// deep:      500 levels of recursion
#define _GNU_SOURCE
#include "../cpu.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>

static volatile sig_atomic_t seconds;
static char stack[1 << 16];
static uint64_t sink;

static uint64_t wall_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

FUNCTION void inner(void) {
    uint64_t end = wall_ns() + (uint64_t)seconds * 1000000000u, x = 1;
    while (wall_ns() < end) {
        for (int round = 0; round < 200; round++) {
            CRUNCH(x);
        }
        struct timespec pause = {0, 2000000};
        nanosleep(&pause, 0);
    }
    sink = x;
}

#ifdef __x86_64__
__asm__(".text\n"
        ".globl bare\n"
        ".type bare, @function\n"
        "bare: push %rbx\n"
        "call inner\n"
        "pop %rbx\n"
        "ret\n"
        ".size bare, .-bare\n");
void bare(void);
#else
FUNCTION static void bare(void) { exit(2); }
#endif

FUNCTION static void level(int left) {
    volatile char room[40];
    __asm__ volatile("" : : "r"(room) : "memory");
    if (left > 1) {
        level(left - 1);
    } else {
        inner();
    }
    NO_TAIL_CALL();
}

FUNCTION static void handler(int signal) {
    (void)signal;
    inner();
    NO_TAIL_CALL();
}

FUNCTION void outer(const char *way) {
    if (strcmp(way, "signal") == 0 || strcmp(way, "alternate") == 0) {
        raise(SIGUSR1);
    } else if (strcmp(way, "bare") == 0) {
        bare();
    } else if (strcmp(way, "deep") == 0) {
        level(500);
    } else {
        inner();
    }
    NO_TAIL_CALL();
}

int main(int argc, char **argv) {
    const char *way = argc > 2 ? argv[2] : "plain";
    seconds = argc > 1 ? atoi(argv[1]) : 1;
    struct sigaction action = {.sa_handler = handler};
    action.sa_flags = strcmp(way, "alternate") == 0 ? SA_ONSTACK : 0;
    sigaction(SIGUSR1, &action, 0);
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&other, 0);
    puts("ready");
    fflush(stdout);
    outer(way);
    return 0;
}
