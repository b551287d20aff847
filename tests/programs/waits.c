// waits [flood | turns | rare | deep | unwritten | handler SECONDS]: threads that wait for known times, and say for how long
// each did.
//
// A wait's truth is the time that passed without what its thread ran meanwhile. With `flood` two threads hand a byte to and
// fro all the time, tens of thousands of switches a second, and main naps before that, and rests for long after it. With
// `turns` main sleeps in three places in turn, some thousand times a second. With `rare` it does so for 12, 15 and 40 ms after
// each hundred short times, with `deep` below 100 KiB of frames, with `unwritten` below 64 KiB that nobody has written to, and
// with `handler` in a signal handler on a stack of its own.
#define _GNU_SOURCE
#include "cpu.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int pipe_ends[2], socket_ends[2], back[2];

static uint64_t wall_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// Runs a statement and prints how long its thread did not run.
#define MEASURED(name, statement)                                                   \
    do {                                                                            \
        uint64_t wall = wall_ns(), cpu = cpu_ns();                                  \
        statement;                                                                  \
        printf(name " %lu\n", (wall_ns() - wall) - (cpu_ns() - cpu));               \
    } while (0)

FUNCTION static void nap(long ms) {
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
    NO_TAIL_CALL();
}

FUNCTION static void in_naps(void) {
    for (int i = 0; i < 10; i++) {
        nap(30);
    }
}

FUNCTION static void in_rest(void) {
    nap(700);
    NO_TAIL_CALL();
}

FUNCTION static void in_lock(void) {
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    NO_TAIL_CALL();
}

FUNCTION static void in_pipe(void) {
    char byte;
    if (read(pipe_ends[0], &byte, 1) != 1) {
        abort();
    }
    NO_TAIL_CALL();
}

FUNCTION static void in_socket(void) {
    char byte;
    if (recv(socket_ends[0], &byte, 1, 0) != 1) {
        abort();
    }
    NO_TAIL_CALL();
}

// Four times 4 MiB, each until the disk has them.
FUNCTION static void in_disk(void) {
    static char block[4 << 20];
    char path[] = "/var/tmp/flame-waits-XXXXXX";
    int file = mkstemp(path);
    unlink(path);
    for (int i = 0; i < 4; i++) {
        memset(block, i, sizeof block);
        if (write(file, block, sizeof block) < 0 || fsync(file) < 0) {
            abort();
        }
    }
    close(file);
}

static void *lock_thread(void *unused) {
    (void)unused;
    MEASURED("in_lock", in_lock());
    return NULL;
}

static void *pipe_thread(void *unused) {
    (void)unused;
    MEASURED("in_pipe", in_pipe());
    return NULL;
}

static void *socket_thread(void *unused) {
    (void)unused;
    MEASURED("in_socket", in_socket());
    return NULL;
}

// Gets a byte and gives it back, until there is none.
FUNCTION static void in_pong(void) {
    char byte;
    while (read(pipe_ends[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1) {
    }
}

static void *pong_thread(void *unused) {
    (void)unused;
    MEASURED("in_pong", in_pong());
    return NULL;
}

FUNCTION static void in_ping(uint64_t end) {
    char byte = 0;
    while (wall_ns() < end) {
        if (write(pipe_ends[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) {
            abort();
        }
    }
}

static void flood(uint64_t ns) {
    pthread_t pong;
    pthread_create(&pong, NULL, pong_thread, NULL);
    MEASURED("in_naps", in_naps());
    MEASURED("in_ping", in_ping(wall_ns() + ns));
    MEASURED("in_rest", in_rest());
    close(pipe_ends[1]);
    pthread_join(pong, NULL);
}

FUNCTION static void in_short(void) {
    usleep(205);
    NO_TAIL_CALL();
}

FUNCTION static void in_middle(void) {
    usleep(315);
    NO_TAIL_CALL();
}

FUNCTION static void in_long(void) {
    usleep(405);
    NO_TAIL_CALL();
}

// A place where a thread waits, and for how long it did.
struct place {
    const char *name;
    void (*wait)(void);
    uint64_t waited;
};

// Waits in three places in turn, each after so many short times elsewhere.
static void in_turn(struct place *places, int before, uint64_t ns) {
    uint64_t end = wall_ns() + ns;
    while (wall_ns() < end) {
        for (int i = 0; i < 3; i++) {
            for (int n = 0; n < before; n++) {
                in_short();
            }
            uint64_t wall = wall_ns(), cpu = cpu_ns();
            places[i].wait();
            places[i].waited += (wall_ns() - wall) - (cpu_ns() - cpu);
        }
    }
    for (int i = 0; i < 3; i++) {
        printf("%s %lu\n", places[i].name, places[i].waited);
    }
}

static void turns(uint64_t ns) {
    struct place places[] = {
        {"in_long", in_long, 0}, {"in_middle", in_middle, 0}, {"in_short", in_short, 0}};
    in_turn(places, 0, ns);
}

FUNCTION static void in_12_ms(void) {
    nap(12);
    NO_TAIL_CALL();
}

FUNCTION static void in_15_ms(void) {
    nap(15);
    NO_TAIL_CALL();
}

FUNCTION static void in_40_ms(void) {
    nap(40);
    NO_TAIL_CALL();
}

static void rare(uint64_t ns) {
    struct place places[] = {
        {"in_12_ms", in_12_ms, 0}, {"in_15_ms", in_15_ms, 0}, {"in_40_ms", in_40_ms, 0}};
    in_turn(places, 100, ns);
}

FUNCTION static int in_deep(int depth, uint64_t end) {
    volatile char frame[1024];
    frame[0] = (char)depth;
    if (depth > 0) {
        return in_deep(depth - 1, end) + frame[0];
    }
    while (wall_ns() < end) {
        nap(10);
    }
    return 0;
}

// The pages of the buffer are not in memory, and a copy of the stack ends before the first of them.
FUNCTION static void in_unwritten(uint64_t end) {
    char buffer[64 * 1024];
    __asm__ volatile("" : : "r"(buffer) : "memory");
    while (wall_ns() < end) {
        nap(10);
    }
    __asm__ volatile("" : : "r"(buffer) : "memory");
}

static void handle(int number) {
    (void)number;
    nap(10);
}

FUNCTION static void in_handler(uint64_t end) {
    stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
    if (sigaltstack(&stack, NULL) || sigaction(SIGUSR1, &action, NULL)) {
        abort();
    }
    while (wall_ns() < end) {
        raise(SIGUSR1);
    }
}

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[1], "handler") == 0) {
        MEASURED("in_handler", in_handler(wall_ns() + ns_argument(argc, argv, 2, 1.0)));
        return 0;
    }
    if (argc > 2 && strcmp(argv[1], "unwritten") == 0) {
        MEASURED("in_unwritten", in_unwritten(wall_ns() + ns_argument(argc, argv, 2, 1.0)));
        return 0;
    }
    if (argc > 2 && strcmp(argv[1], "deep") == 0) {
        MEASURED("in_deep", in_deep(100, wall_ns() + ns_argument(argc, argv, 2, 1.0)));
        return 0;
    }
    if (argc > 2 && strcmp(argv[1], "rare") == 0) {
        rare(ns_argument(argc, argv, 2, 1.0));
        return 0;
    }
    if (argc > 2 && strcmp(argv[1], "turns") == 0) {
        turns(ns_argument(argc, argv, 2, 1.0));
        return 0;
    }
    if (pipe(pipe_ends) || pipe(back) || socketpair(AF_UNIX, SOCK_STREAM, 0, socket_ends)) {
        abort();
    }
    if (argc > 2 && strcmp(argv[1], "flood") == 0) {
        flood(ns_argument(argc, argv, 2, 1.0));
        return 0;
    }
    pthread_t threads[3];
    pthread_mutex_lock(&lock);
    pthread_create(&threads[0], NULL, lock_thread, NULL);
    pthread_create(&threads[1], NULL, pipe_thread, NULL);
    pthread_create(&threads[2], NULL, socket_thread, NULL);
    MEASURED("in_naps", in_naps());
    pthread_mutex_unlock(&lock);
    MEASURED("in_disk", in_disk());
    if (write(pipe_ends[1], "", 1) != 1) {
        abort();
    }
    nap(200);
    if (send(socket_ends[1], "", 1, 0) != 1) {
        abort();
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
