// hard CPU_SECONDS WAY: stacks that are hard to unwind. x86-64 only.
//
// alternate: main -> work -> interrupted, which raises a signal; the handler burns on a stack of
//            its own
// null:      main -> work -> call_null, which calls address 0; the handler of that burns
// bare:      main -> work -> bare, assembly without a table or a frame pointer -> burn; the frame
//            pointer is main's, so that who follows it from `bare` misses `work`
// zeros:     main -> work -> zeros, assembly without a table that burns with the frame pointer at
//            zeroed variables
// depths:    main -> ten -> 10 times `level` -> bottom, and main -> many -> 211 times `level` ->
//            bottom, half of the time each; the memory of the process is not for others to read
// size:      prints the bytes of stack that a `level` takes, and burns nothing
#define _GNU_SOURCE
#include "cpu.h"
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

static uint64_t end;
static sigjmp_buf back;
static char stack[1 << 16];

// Some 50 ms, so that the ways there and back do not matter.
FUNCTION void burn(void) {
    uint64_t until = cpu_ns() + 50000000u;
    BURN_UNTIL(until);
}

__asm__(".text\n"
        ".globl bare\n"
        ".type bare, @function\n"
        "bare: push %rbx\n"
        "call burn\n"
        "pop %rbx\n"
        "ret\n"
        ".size bare, .-bare\n"
        ".type zeros, @function\n"
        "zeros: push %rbp\n"
        "sub $64, %rsp\n"
        "movq $0, 16(%rsp)\n"
        "movq $0, 24(%rsp)\n"
        "lea 16(%rsp), %rbp\n"
        "mov $50000000, %eax\n"
        "1: dec %eax\n"
        "jnz 1b\n"
        "add $64, %rsp\n"
        "pop %rbp\n"
        "ret\n"
        ".size zeros, .-zeros\n");
void bare(void);
void zeros(void);

FUNCTION static void bottom(void) { burn(); }

static char *places[2];

FUNCTION static void level(int left) {
    volatile char room[40];
    __asm__ volatile("" : : "r"(room) : "memory");
    if (left <= 2) {
        places[left - 1] = __builtin_frame_address(0);
    }
    if (left > 1) {
        level(left - 1);
    } else if (end) {
        bottom();
    }
    NO_TAIL_CALL();
}

FUNCTION static void ten(void) {
    level(10);
    NO_TAIL_CALL();
}

FUNCTION static void many(void) {
    level(211);
    NO_TAIL_CALL();
}

FUNCTION static void handler(int signal) {
    burn();
    if (signal == SIGSEGV) {
        siglongjmp(back, 1);
    }
}

FUNCTION static void interrupted(void) {
    raise(SIGUSR1);
    NO_TAIL_CALL();
}

FUNCTION static void call_null(void (*volatile function)(void)) {
    function();
    NO_TAIL_CALL();
}

FUNCTION static void work(const char *way) {
    if (strcmp(way, "alternate") == 0) {
        interrupted();
    } else if (strcmp(way, "null") == 0) {
        if (sigsetjmp(back, 1) == 0) {
            call_null(0);
        }
    } else if (strcmp(way, "bare") == 0) {
        bare();
    } else if (strcmp(way, "depths") == 0) {
        ten();
        many();
    } else {
        zeros();
    }
    NO_TAIL_CALL();
}

__attribute__((optimize("no-omit-frame-pointer"))) int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[2], "size") == 0) {
        ten();
        printf("%td\n", places[1] - places[0]);
        return 0;
    }
    if (argc > 2 && strcmp(argv[2], "depths") == 0) {
        prctl(PR_SET_DUMPABLE, 0);
    }
    end = ns_argument(argc, argv, 1, 1.0) + cpu_ns();
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGSEGV, &action, 0);
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, 0);
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&other, 0);
    while (cpu_ns() < end) {
        work(argc > 2 ? argv[2] : "alternate");
    }
    puts("done");
    return 0;
}
