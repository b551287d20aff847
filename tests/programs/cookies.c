// cookies SECONDS THREADS HOLD: stacks of which all words tell to which activation they belong.
//
// Each thread builds a stack of 24 to 200 KiB, in frames of about 2 KiB, each full of a word that only this activation has.
// When all are written, the innermost frame says so, and for some 5 to 500 us the thread stays there: in user code, with
// HOLD = kernel in reads of /dev/zero, with `migrate` on one CPU after the other. Then it says that it leaves, and the next activation writes its own.
#define _GNU_SOURCE
#include "cpu.h"
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

enum { WORDS = 256, BUFFER = 64 * 1024 };
#define COOKIE UINT64_C(0x636f6f6b00000000)
#define STANDS UINT64_C(0x7374616e64733a29)

static uint64_t total;
static int in_kernel, migrates, zero;
static atomic_uint activations;

FUNCTION static void hold(uint32_t activation, uint32_t frames, unsigned rounds, char *buffer) {
    volatile uint64_t says[4] = {0, COOKIE | activation, frames, 0};
    atomic_signal_fence(memory_order_seq_cst);
    says[0] = STANDS;
    atomic_signal_fence(memory_order_seq_cst);
    uint64_t x = 88172645463325252u;
    for (unsigned i = 0; i < rounds; i++) {
        if (migrates && i % 8 == 0) {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(i / 8 % sysconf(_SC_NPROCESSORS_ONLN), &one);
            sched_setaffinity(0, sizeof one, &one);
        }
        if (in_kernel) {
            if (read(zero, buffer, BUFFER) < 0) {
                abort();
            }
        } else {
            for (int j = 0; j < 1000; j++) {
                x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            }
            __asm__ volatile("" : "+r"(x));
        }
    }
    atomic_signal_fence(memory_order_seq_cst);
    says[0] = 0;
    (void)says;
    atomic_signal_fence(memory_order_seq_cst);
}

FUNCTION static void frame(uint32_t activation, uint32_t frames, uint32_t left, unsigned rounds, char *buffer) {
    volatile uint64_t words[WORDS];
    for (int i = 0; i < WORDS; i++) {
        words[i] = COOKIE | activation;
    }
    if (left > 1) {
        frame(activation, frames, left - 1, rounds, buffer);
    } else {
        hold(activation, frames, rounds, buffer);
    }
    NO_TAIL_CALL();
    (void)words;
}

static void *thread(void *argument) {
    unsigned random = (unsigned)(uintptr_t)argument;
    char *buffer = malloc(BUFFER);
    while (cpu_ns() < total) {
        random = random * 1664525u + 1013904223u;
        uint32_t frames = 12 + (random >> 8) % 88;
        unsigned rounds = 1 + (random >> 16) % 200;
        frame(atomic_fetch_add(&activations, 1) + 1, frames, frames, rounds, buffer);
    }
    return NULL;
}

int main(int argc, char **argv) {
    total = ns_argument(argc, argv, 1, 1.0);
    int threads = argc > 2 ? atoi(argv[2]) : 1;
    in_kernel = argc > 3 && strcmp(argv[3], "kernel") == 0;
    migrates = argc > 3 && strcmp(argv[3], "migrate") == 0;
    zero = open("/dev/zero", O_RDONLY);
    pthread_t all[64];
    for (int i = 0; i < threads && i < 64; i++) {
        pthread_create(&all[i], NULL, thread, (void *)(uintptr_t)(i + 1));
    }
    for (int i = 0; i < threads && i < 64; i++) {
        pthread_join(all[i], NULL);
    }
    return 0;
}
