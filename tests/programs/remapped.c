// remapped [SECONDS] [HOW]: replaces the pages of `work` by a copy in anonymous memory, as programs
// do that put their code into huge pages, says `ready`, and works there for SECONDS (0.5). HOW is
// `copy` (the default), or `other` for memory that has other code in the file's place.
#define _GNU_SOURCE
#include "cpu.h"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096
// So many bytes from the start of `work` on are moved; its end stays where it is.
#define MOVED (2 * PAGE)

__attribute__((aligned(PAGE))) FUNCTION void work(uint64_t end) {
    BURN_UNTIL(end);
    __asm__ volatile("jmp 1f\n.skip 8192, 0x90\n1:");
}

int main(int argc, char **argv) {
    uint64_t ns = ns_argument(argc, argv, 1, 0.5);
    char *code = (char *)work;
    char copy[MOVED];
    memcpy(copy, code, MOVED);
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    if (mmap(code, MOVED, PROT_READ | PROT_WRITE, flags, -1, 0) != code) {
        return 1;
    }
    memcpy(code, copy, MOVED);
    if (argc > 2 && strcmp(argv[2], "other") == 0) {
        // All but what runs.
        memset(code + 1024, 0xcc, MOVED - 1024);
    }
    if (mprotect(code, MOVED, PROT_READ | PROT_EXEC) != 0) {
        return 1;
    }
    puts("ready");
    fflush(stdout);
    work(cpu_ns() + ns);
    NO_TAIL_CALL();
    return 0;
}
