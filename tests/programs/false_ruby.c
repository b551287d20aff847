// Claims to be Ruby 3.1, and has memory that leads whoever reads it astray: `false_ruby circle|names SECONDS`.
// circle: more frames than are read, each a block that is outside of itself. names: a method that is another one
// all the time, with a name and lines without an end.
#include "cpu.h"

#include <stdint.h>
#include <string.h>

const char ruby_version[] = "3.1.0";

enum { FRAME = 8, MANY_FRAMES = 4096, VALUES = 64 };

static uint64_t context[16], stack[VALUES + FRAME * MANY_FRAMES], code[4], body[32], name[8];
static char text[1 << 16];

#define EIGHT(x) do { CRUNCH(x); CRUNCH(x); CRUNCH(x); CRUNCH(x); } while (0)
#define MANY(x) do { EIGHT(x); EIGHT(x); EIGHT(x); EIGHT(x); EIGHT(x); EIGHT(x); EIGHT(x); } while (0)

// The largest function by far: so it is the one that runs instructions.
FUNCTION uint64_t vm_exec_core(uint64_t *volatile its_context, uint64_t end) {
    uint64_t x = 88172645463325252u;
    uint64_t *volatile its_frame = (uint64_t *)its_context[2];
    uint64_t volatile next = *its_frame;
    while (cpu_ns() < end) {
        MANY(x); MANY(x); MANY(x); MANY(x); MANY(x); MANY(x);
        body[11] += 2;
    }
    return x + (its_context[2] == (uint64_t)its_frame) + next;
}

FUNCTION uint64_t rb_vm_exec(uint64_t *its_context, uint64_t end) {
    return vm_exec_core(its_context, end) + 1;
}

int main(int argc, char **argv) {
    int names = argc > 1 && strcmp(argv[1], "names") == 0;
    for (size_t at = 0; at + 8 <= sizeof text; at += 8) {
        memcpy(text + at, "\033[2J;\n<\"", 8);
    }
    size_t frames = names ? 1 : MANY_FRAMES, size = sizeof stack / sizeof *stack;
    context[0] = (uint64_t)stack;
    context[1] = size;
    context[2] = (uint64_t)(stack + size - FRAME * frames);
    context[5] = context[6] = (uint64_t)context;
    for (size_t at = size - FRAME * frames; at < size; at += FRAME) {
        stack[at] = (uint64_t)(text + 8);
        stack[at + 2] = (uint64_t)code;
        stack[at + 4] = (uint64_t)(stack + 8);
    }
    // An environment: no method, outside of itself, a block; or a method that returns to C.
    stack[7] = (uint64_t)(stack + 8);
    stack[8] = names ? 0x11110022 | 1 : 0x22220001;
    code[0] = 0x701a;
    code[2] = (uint64_t)body;
    // As many instructions and lines as there may be.
    body[0] = UINT64_MAX << 32;
    body[1] = (uint64_t)text;
    body[8] = body[9] = body[10] = (uint64_t)name;
    body[15] = (uint64_t)text;
    body[17] = UINT64_MAX;
    body[18] = (uint64_t)text;
    name[0] = 0x2005;
    name[2] = UINT64_MAX;
    name[3] = (uint64_t)text;
    return rb_vm_exec(context, ns_argument(argc, argv, 2, 1)) == 7;
}
