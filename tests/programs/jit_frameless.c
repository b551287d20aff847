// jit_frameless trampoline|dump [CPU_SECONDS]: main -> run_jitted -> jit_outer -> jit_inner, the
// last two made at run time, without frame pointers: jit_inner uses the register for other things.
//
// `trampoline`: jit_outer ends right behind its call, as CPython's trampolines do; what it calls is
// `spin` of this program, and the names stand in /tmp/perf-PID.map. `dump`: the end does not show, and
// unwinding tables stand with the names in jit-PID.dump of the current directory, whose header names no
// machine, as CPython's does. The files are removed only by whoever started the program.
#include "cpu.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if !defined(__x86_64__)
int main(void) { return 3; }
#else

enum { LOAD = 0, CLOSE = 3, UNWINDING = 4 };

// sub $8,%rsp; call *%rsi; add $8,%rsp; ret
static const unsigned char trampoline[] = {0x48, 0x83, 0xec, 8, 0xff, 0xd6, 0x48, 0x83, 0xc4, 8, 0xc3};
// push %rbx; sub $16,%rsp; call *%rsi; mov %rax,%rbx; add $16,%rsp; pop %rbx; ret
static const unsigned char outer[] = {0x53, 0x48, 0x83, 0xec, 16, 0xff, 0xd6, 0x48, 0x89, 0xc3,
                                      0x48, 0x83, 0xc4, 16, 0x5b, 0xc3};
// push %rbp; xor %ebp,%ebp; 0: dec %rdi; jnz 0b; pop %rbp; ret
static const unsigned char inner[] = {0x55, 0x31, 0xed, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0x5d, 0xc3};

// Rows of both: what the instructions above do to the stack (DW_CFA_advance_loc, def_cfa_offset and
// offset of rbx = 3 and rbp = 6).
static const unsigned char outer_rows[] = {0x41, 0x0e, 16, 0x83, 2, 0x44, 0x0e, 32,
                                           0x49, 0x0e, 16, 0x41, 0x0e, 8};
static const unsigned char inner_rows[] = {0x41, 0x0e, 16, 0x86, 2, 0x48, 0x0e, 8};

typedef void (*outer_fn)(uint64_t rounds, void *inner);

static FILE *output;

FUNCTION static void spin(uint64_t rounds) {
    for (volatile uint64_t left = rounds; left > 0; left--) {
    }
}

FUNCTION static void run_jitted(outer_fn call, void *what, uint64_t end) {
    while (cpu_ns() < end) {
        call(1000000, what);
    }
    NO_TAIL_CALL();
}

static void put_record(uint32_t id, const void *body, uint32_t len) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t time = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    uint32_t head[2] = {id, len + 16};
    fwrite(head, sizeof head, 1, output);
    fwrite(&time, sizeof time, 1, output);
    fwrite(body, len, 1, output);
    fflush(output);
}

// A CIE ("zR", pc-relative addresses of 4 bytes), an FDE for code that ends at the next multiple of 8
// before it, and 20 bytes in the place of a sorted table.
static void put_tables(uint32_t code_len, const unsigned char *rows, uint32_t rows_len) {
    unsigned char body[24 + 128] = {0};
    unsigned char *table = body + 24;
    static const unsigned char cie[] = {20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0,
                                        1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0};
    memcpy(table, cie, sizeof cie);
    uint32_t fde_len = 4 + 4 + 4 + 1 + rows_len;
    uint32_t padded = (fde_len + 4 + 7) / 8 * 8 - 4;
    uint32_t back = (code_len + 7) / 8 * 8 + sizeof cie + 8;
    uint32_t fde[4] = {padded, sizeof cie + 4, (uint32_t)-back, code_len};
    memcpy(table + sizeof cie, fde, sizeof fde);
    memcpy(table + sizeof cie + sizeof fde + 1, rows, rows_len);
    uint64_t len = sizeof cie + 4 + padded, lengths[3] = {len + 20, 20, 0};
    memcpy(body, lengths, sizeof lengths);
    put_record(UNWINDING, body, (uint32_t)(sizeof lengths + len + 20));
}

static void put_code(const char *name, const char *at, const unsigned char *code, uint32_t len,
                     uint64_t index) {
    unsigned char body[256];
    uint64_t address = (uint64_t)at, pid = (uint64_t)getpid();
    uint64_t load[] = {pid | pid << 32, address, address, len, index};
    uint32_t name_len = (uint32_t)strlen(name) + 1;
    memcpy(body, load, sizeof load);
    memcpy(body + sizeof load, name, name_len);
    memcpy(body + sizeof load + name_len, code, len);
    put_record(LOAD, body, (uint32_t)sizeof load + name_len + len);
}

static void write_dump(const char *at_outer, const char *at_inner) {
    char path[64];
    snprintf(path, sizeof path, "jit-%d.dump", (int)getpid());
    output = fopen(path, "w+");
    if (output == NULL) {
        perror(path);
        exit(1);
    }
    uint32_t header[10] = {0x4a695444, 1, 40, 0, 0, (uint32_t)getpid(), 0, 0, 0, 0};
    fwrite(header, sizeof header, 1, output);
    fflush(output);
    // By this mapping, and nothing else, profilers find the file.
    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(output), 0);
    put_tables(sizeof outer, outer_rows, sizeof outer_rows);
    put_code("jit_outer", at_outer, outer, sizeof outer, 1);
    put_tables(sizeof inner, inner_rows, sizeof inner_rows);
    put_code("jit_inner", at_inner, inner, sizeof inner, 2);
}

static void write_map(const char *at) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    output = fopen(path, "w");
    if (output == NULL) {
        perror(path);
        exit(1);
    }
    fprintf(output, "%lx %zx jit_outer\n", (unsigned long)at, sizeof trampoline);
    fflush(output);
}

int main(int argc, char **argv) {
    int is_dump = argc > 1 && strcmp(argv[1], "dump") == 0;
    uint64_t end = ns_argument(argc, argv, 2, 1.0) + cpu_ns();
    char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    memcpy(code, is_dump ? outer : trampoline, is_dump ? sizeof outer : sizeof trampoline);
    memcpy(code + 256, inner, sizeof inner);
    mprotect(code, 4096, PROT_READ | PROT_EXEC);
    if (is_dump) {
        write_dump(code, code + 256);
    } else {
        write_map(code);
    }
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    run_jitted((outer_fn)code, is_dump ? (void *)(code + 256) : (void *)spin, end);
    return 0;
}
#endif
