// untouched SECONDS: two functions that take half of the time each, in calls of the kernel that push nothing onto the stack.
//
// `large` has a buffer that nobody has written to, so that its stack pointer leads to a page that is not there.
#include "cpu.h"
#include <fcntl.h>
#include <sys/syscall.h>

enum { BUFFER = 1 << 20, LARGE = 200000, SMALL = 200 };

static long zero;
static char *buffer;

// Reads some 2 MiB without a call of libc, whose return address would be written to the stack.
#define READ()                                                                                        \
    for (int i = 0; i < 2; i++) {                                                                     \
        register long result __asm__("rax") = SYS_read;                                               \
        __asm__ volatile("syscall" : "+a"(result) : "D"(zero), "S"(buffer), "d"((long)BUFFER) : "rcx", "r11", "memory"); \
    }

FUNCTION static void large(void) {
    volatile char words[LARGE];
    words[LARGE - 1] = 1;
    READ();
    (void)words;
    NO_TAIL_CALL();
}

FUNCTION static void small(void) {
    volatile char words[SMALL];
    words[SMALL - 1] = 1;
    READ();
    (void)words;
    NO_TAIL_CALL();
}

FUNCTION static void calls_large(uint64_t ns) {
    for (uint64_t end = cpu_ns() + ns; cpu_ns() < end;) {
        large();
    }
}

FUNCTION static void calls_small(uint64_t ns) {
    for (uint64_t end = cpu_ns() + ns; cpu_ns() < end;) {
        small();
    }
}

int main(int argc, char **argv) {
    zero = open("/dev/zero", O_RDONLY);
    buffer = calloc(1, BUFFER);
    for (uint64_t end = ns_argument(argc, argv, 1, 1.0); cpu_ns() < end;) {
        calls_large(10000000);
        calls_small(10000000);
    }
    return 0;
}
