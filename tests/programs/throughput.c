// throughput KIND [SECONDS]: does one thing over and over for that long (2 s), and prints how often it did in a second.
//
// compute: 20 us of arithmetic; read: 4 KiB of /dev/zero; malloc: 256 bytes that are freed again; fault: a page of memory
// is touched first; map: a page is mapped and unmapped; pipe: a byte to another thread and back; lock: a mutex that two
// threads want, of which one has it for 20 us at a time.
#include "cpu.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static double wall(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint64_t noise = 1;
static int there[2], back[2], zero;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int stop;
static char *pages;
static size_t touched;
enum { PAGES = 1 << 14 };

FUNCTION static void compute(void) { CRUNCH(noise); }
FUNCTION static void read_zeros(void) {
    static char bytes[4096];
    if (read(zero, bytes, sizeof bytes) <= 0) _exit(1);
}
FUNCTION static void allocate(void) {
    void *volatile block = malloc(256);
    free(block);
}
FUNCTION static void fault(void) {
    if (touched == PAGES) {
        madvise(pages, (size_t)PAGES * 4096, MADV_DONTNEED);
        touched = 0;
    }
    ((volatile char *)pages)[touched++ * 4096] = 1;
}
FUNCTION static void map(void) {
    void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(page, 4096);
}
FUNCTION static void exchange(void) {
    char byte = 1;
    if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) _exit(1);
}
FUNCTION static void hold(void) {
    pthread_mutex_lock(&mutex);
    CRUNCH(noise);
    pthread_mutex_unlock(&mutex);
}
static void *answer(void *unused) {
    for (char byte; read(there[0], &byte, 1) == 1;) if (write(back[1], &byte, 1) != 1) break;
    return unused;
}
static void *compete(void *unused) {
    while (!stop) hold();
    return unused;
}

int main(int argc, char **argv) {
    static const struct { const char *name; void (*work)(void); void *(*other)(void *); } kinds[] = {
        {"compute", compute, NULL}, {"read", read_zeros, NULL}, {"malloc", allocate, NULL}, {"fault", fault, NULL},
        {"map", map, NULL}, {"pipe", exchange, answer}, {"lock", hold, compete},
    };
    double seconds = argc > 2 ? atof(argv[2]) : 2;
    zero = open("/dev/zero", O_RDONLY);
    pages = mmap(NULL, (size_t)PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(pages, (size_t)PAGES * 4096, MADV_NOHUGEPAGE);
    if (zero < 0 || pages == MAP_FAILED || pipe(there) || pipe(back)) return 1;
    for (size_t k = 0; argc > 1 && k < sizeof kinds / sizeof *kinds; k++) {
        if (strcmp(kinds[k].name, argv[1])) continue;
        pthread_t thread;
        if (kinds[k].other && pthread_create(&thread, NULL, kinds[k].other, NULL)) return 1;
        double start = wall(), now = start;
        long done = 0;
        for (; now - start < seconds; now = wall()) for (int i = 0; i < 16; i++, done++) kinds[k].work();
        stop = 1;
        printf("%.0f\n", (double)done / (now - start));
        return 0;
    }
    return 2;
}
