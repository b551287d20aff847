// jit [CPU_SECONDS]: main -> run_jitted -> jit_outer -> jit_inner, the last two made at run time.
//
// They keep frame pointers and have no unwind information, as the code of most runtimes, and
// their names stand in /tmp/perf-PID.map. The map is removed only by whoever started the program,
// since a profiler reads it late.
#include "cpu.h"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
static const unsigned char inner_code[] = {
    0x55,                         // push rbp
    0x48, 0x89, 0xe5,             // mov rbp, rsp
    0x48, 0xff, 0xcf,             // dec rdi
    0x75, 0xfb,                   // jnz -5
    0x5d,                         // pop rbp
    0xc3,                         // ret
};
static const unsigned char outer_code[] = {
    0x55,                         // push rbp
    0x48, 0x89, 0xe5,             // mov rbp, rsp
    0xff, 0xd6,                   // call rsi
    0x5d,                         // pop rbp
    0xc3,                         // ret
};
#elif defined(__aarch64__)
static const unsigned int inner_code[] = {
    0xa9bf7bfd,                   // stp x29, x30, [sp, #-16]!
    0x910003fd,                   // mov x29, sp
    0xf1000400,                   // subs x0, x0, #1
    0x54ffffe1,                   // b.ne -4
    0xa8c17bfd,                   // ldp x29, x30, [sp], #16
    0xd65f03c0,                   // ret
};
static const unsigned int outer_code[] = {
    0xa9bf7bfd,                   // stp x29, x30, [sp, #-16]!
    0x910003fd,                   // mov x29, sp
    0xd63f0020,                   // blr x1
    0xa8c17bfd,                   // ldp x29, x30, [sp], #16
    0xd65f03c0,                   // ret
};
#else
#error "no code for this architecture"
#endif

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
