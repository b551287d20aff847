// jit_reuse map|dump|late [CPU_SECONDS]: three functions, one after the other at the same address,
// with 50, 30 and 20 % of the time.
//
// The names stand in /tmp/perf-PID.map, or in jit-PID.dump of the current directory, written at
// once or, for `late`, through a buffer that is larger than the file, as V8 does. In a dump the last
// function is moved to another address before it runs, and has source lines. The files are removed
// only by whoever started the program, since a profiler reads them late.
#include "cpu.h"
#include "jit_code.h"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CODE_LEN = 4096, AWAY = 2048, LATE_BUFFER = 1 << 20 };
enum { LOAD = 0, MOVE = 1, LINES = 2, CLOSE = 3 };

typedef void (*loop_fn)(uint64_t rounds);

static FILE *output;
static int is_dump;

struct prefix { uint32_t id, len; uint64_t time; };

static void put_record(uint32_t id, const void *body, uint32_t body_len, const void *rest,
                       uint32_t rest_len) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    struct prefix prefix = {
        id, (uint32_t)sizeof prefix + body_len + rest_len,
        (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec,
    };
    fwrite(&prefix, sizeof prefix, 1, output);
    fwrite(body, body_len, 1, output);
    fwrite(rest, rest_len, 1, output);
}

static void flush(void) {
    if (is_dump != 2) {
        fflush(output);
    }
}

static void say_loaded(const char *name, const char *code, uint64_t index) {
    if (!is_dump) {
        fprintf(output, "%lx %zx %s\n", (unsigned long)code, sizeof inner_code, name);
    } else {
        uint64_t address = (uint64_t)code, pid = (uint64_t)getpid();
        uint64_t load[] = {pid | pid << 32, address, address, sizeof inner_code, index};
        char rest[256];
        size_t len = strlen(name) + 1;
        memcpy(rest, name, len);
        memcpy(rest + len, inner_code, sizeof inner_code);
        put_record(LOAD, load, sizeof load, rest, (uint32_t)(len + sizeof inner_code));
    }
    flush();
}

static void say_moved(const char *from, const char *to, uint64_t index) {
    uint64_t pid = (uint64_t)getpid();
    uint64_t move[] = {pid | pid << 32, (uint64_t)to, (uint64_t)from, (uint64_t)to,
                       sizeof inner_code, index};
    put_record(MOVE, move, sizeof move, "", 0);
}

static void open_output(const char *how) {
    char path[64];
    is_dump = strcmp(how, "dump") == 0 ? 1 : strcmp(how, "late") == 0 ? 2 : 0;
    snprintf(path, sizeof path, is_dump ? "jit-%d.dump" : "/tmp/perf-%d.map", (int)getpid());
    output = fopen(path, "w+");
    if (output == NULL) {
        perror(path);
        _exit(1);
    }
    setvbuf(output, NULL, _IOFBF, LATE_BUFFER);
    if (is_dump) {
        uint32_t machine = sizeof(inner_code[0]) == 4 ? 183 : 62;
        uint32_t header[10] = {0x4a695444, 1, 40, machine, 0, (uint32_t)getpid(), 0, 0, 0, 0};
        fwrite(header, sizeof header, 1, output);
        // By this mapping, and nothing else, profilers find the file.
        mmap(NULL, CODE_LEN, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(output), 0);
    }
}

static void put_code(char *code, const char *at) {
    mprotect(code, CODE_LEN, PROT_READ | PROT_WRITE);
    memset(code, 0, CODE_LEN);
    memcpy(code + (at - code), inner_code, sizeof inner_code);
    mprotect(code, CODE_LEN, PROT_READ | PROT_EXEC);
    __builtin___clear_cache(code, code + CODE_LEN);
}

FUNCTION static void run_code(const char *at, uint64_t nanos) {
    uint64_t end = cpu_ns() + nanos;
    while (cpu_ns() < end) {
        ((loop_fn)at)(100000);
    }
    NO_TAIL_CALL();
}

int main(int argc, char **argv) {
    open_output(argc > 1 ? argv[1] : "map");
    uint64_t total = ns_argument(argc, argv, 2, 1.0);
    char *code = mmap(NULL, CODE_LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    put_code(code, code);
    say_loaded("first in place", code, 1);
    run_code(code, total / 10 * 5);
    put_code(code, code);
    say_loaded("second in place", code, 2);
    run_code(code, total / 10 * 3);
    char *at = code;
    if (is_dump) {
        struct { uint64_t code, count, address; uint32_t line, column; char file[8]; } lines =
            {(uint64_t)code, 1, (uint64_t)code, 42, 1, "made.js"};
        put_record(LINES, &lines, sizeof lines, "", 0);
    }
    put_code(code, at);
    say_loaded("third in place", at, 3);
    if (is_dump) {
        at = code + AWAY;
        put_code(code, at);
        say_moved(code, at, 3);
        // What is put over its old address must not change its name.
        say_loaded("never run", code, 4);
        flush();
    }
    run_code(at, total / 10 * 2);
    if (is_dump) {
        put_record(CLOSE, "", 0, "", 0);
    }
    return fclose(output);
}
