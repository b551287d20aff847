// jit [CPU_SECONDS]: main -> run_jitted -> jit_outer -> jit_inner, the last two made at run time.
//
// They keep frame pointers and have no unwind information, as the code of most runtimes, and
// their names stand in /tmp/perf-PID.map. The map is removed only by whoever started the program,
// since a profiler reads it late.
#include "cpu.h"
#include "jit_code.h"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef void (*jit_outer_fn)(uint64_t rounds, void *inner);

FUNCTION static void run_jitted(jit_outer_fn outer, void *inner, uint64_t end) {
    while (cpu_ns() < end) {
        outer(1000000, inner);
    }
    NO_TAIL_CALL();
}

static int write_map(const char *outer, const char *inner) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    FILE *map = fopen(path, "w");
    if (map == NULL) {
        perror(path);
        return -1;
    }
    fprintf(map, "%lx %zx jit_outer\n", (unsigned long)outer, sizeof outer_code);
    fprintf(map, "%lx %zx jit_inner\n", (unsigned long)inner, sizeof inner_code);
    return fclose(map);
}

int main(int argc, char **argv) {
    uint64_t end = ns_argument(argc, argv, 1, 1.0) + cpu_ns();
    char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    char *outer = code, *inner = code + 256;
    memcpy(outer, outer_code, sizeof outer_code);
    memcpy(inner, inner_code, sizeof inner_code);
    mprotect(code, 4096, PROT_READ | PROT_EXEC);
    __builtin___clear_cache(code, code + 4096);
    if (write_map(outer, inner) != 0) {
        return 1;
    }
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    run_jitted((jit_outer_fn)outer, inner, end);
    return 0;
}
