// Claims to be LuaJIT 2.1, and has memory that leads whoever reads it astray: `false_luajit deep|names|trace SECONDS`.
// deep: more frames than anybody reads. names: a function that is another one all the time, with a
// source without an end. trace: compiled code that is the whole program, and returns anywhere.
#include "cpu.h"

#include <stdint.h>
#include <string.h>

enum { FRAMES = 20000, VALUES = 2 * FRAMES + 64, GLOBAL = 96 };

struct state {
    char before[32];
    uint64_t *base, *top;
};

static uint64_t values[VALUES], memory[256], function[8], code[32], trace[16], traces[2];
static char text[1 << 16];

static void put(void *at, size_t offset, uint64_t value, size_t len) {
    memcpy((char *)at + offset, &value, len);
}

__attribute__((noipa)) void luaJIT_setmode(void) {}

__attribute__((noipa)) long lua_gettop(struct state *of) {
    return of->top - of->base;
}

// Whoever runs outside of the interpreter was called by it.
FUNCTION uint64_t spin(uint64_t end) {
    uint64_t x = 88172645463325252u;
    while (cpu_ns() < end) {
        CRUNCH(x);
        put(code, 72, x % 100000 + 1, 4);
    }
    return x;
}

#define EIGHT(x) do { CRUNCH(x); CRUNCH(x); CRUNCH(x); CRUNCH(x); } while (0)
#define MANY(x) do { EIGHT(x); EIGHT(x); EIGHT(x); EIGHT(x); EIGHT(x); EIGHT(x); EIGHT(x); } while (0)

// The largest function by far: so it is the interpreter.
FUNCTION uint64_t interpret(void *state, uint64_t end) {
    uint64_t x = 88172645463325252u;
    void *volatile on_stack = state;
    // A C frame: how many results are wanted, the state, the next instruction, none outside of it.
    uint64_t c_frame[16] = {0, 1, (uint64_t)state, (uint64_t)code + 108};
    put(state, 80, (uint64_t)c_frame, 8);
    __asm__ volatile("" : : "r"(c_frame) : "memory");
    if (end == 0) {
        MANY(x); MANY(x); MANY(x); MANY(x); MANY(x); MANY(x);
    }
    // LuaJIT has the next instruction there.
    register uint64_t next __asm__("rbx") = (uint64_t)code + 108;
    __asm__ volatile("" : "+r"(next));
    x += spin(end);
    __asm__ volatile("" : : "r"(next));
    return x + (on_stack == c_frame);
}

FUNCTION uint64_t lua_call(void *state, uint64_t end) {
    return interpret(state, end) + 1;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "deep";
    uint64_t frames = strcmp(what, "deep") == 0 ? FRAMES : 2;
    for (size_t at = 0; at + 8 <= sizeof text; at += 8) {
        memcpy(text + at, "\033[2J;\n<\"", 8);
    }
    text[0] = '@';
    char *state = (char *)memory, *global = state + GLOBAL;
    // A function, its prototype, and behind that its instructions: each calls what is in register 0.
    char *prototype = (char *)code;
    put(function, 9, 8, 1);
    put(function, 32, (uint64_t)prototype + 104, 8);
    put(prototype, 9, 7, 1);
    put(prototype, 12, strcmp(what, "names") == 0 ? UINT32_MAX : 8, 4);
    put(prototype, 32, UINT64_MAX - 7, 8);
    put(prototype, 64, (uint64_t)text - 24, 8);
    put(prototype, 72, 1, 4);
    put(prototype, 76, UINT32_MAX, 4);
    put(prototype, 80, (uint64_t)text, 8);
    put(prototype, 88, UINT64_MAX - 7, 8);
    put(prototype, 96, UINT64_MAX - 7, 8);
    // The outermost frame stands for the state, and has called the first function from C.
    uint64_t tagged = UINT64_C(0x1fff7) << 47 | (uint64_t)function;
    values[0] = UINT64_C(0x1fff7) << 47 | (uint64_t)state;
    values[2] = tagged;
    values[3] = 16 | 1;
    for (uint64_t frame = 1; frame < frames; frame++) {
        values[2 + 2 * frame] = tagged;
        values[3 + 2 * frame] = (uint64_t)prototype + 104 + 4;
    }
    put(state, 9, 6, 1);
    put(state, 16, (uint64_t)global, 8);
    put(state, 32, (uint64_t)(values + 2 + 2 * frames), 8);
    put(state, 40, (uint64_t)(values + 4 + 2 * frames), 8);
    put(state, 56, (uint64_t)values, 8);
    put(state, 88, VALUES, 4);
    put(global, 192, (uint64_t)state, 8);
    put(global, 368, (uint64_t)state, 8);
    put(global, 184, UINT32_MAX, 4);
    if (strcmp(what, "trace") == 0) {
        put(trace, 9, 9, 1);
        put(trace, 64, (uint64_t)prototype, 8);
        put(trace, 84, UINT32_MAX, 4);
        put(trace, 88, (uint64_t)&main & ~UINT64_C(0xffffff), 8);
        put(trace, 102, UINT16_MAX, 2);
        put(trace, 104, 1, 2);
        traces[1] = (uint64_t)trace;
        put(global, 184, 1, 4);
        put(global, 376, (uint64_t)(values + 2 + 2 * frames), 8);
        put(global, 1112, (uint64_t)traces, 8);
        put(global, 1112 + 12, 2, 4);
    }
    luaJIT_setmode();
    return lua_gettop((struct state *)state) + (long)lua_call(state, ns_argument(argc, argv, 2, 1)) == 7;
}
