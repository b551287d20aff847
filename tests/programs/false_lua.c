// Claims to be Lua 5.4, and has memory that leads whoever reads it astray: `false_lua circle|names SECONDS`.
// circle: a call that is outside of itself. names: a function that is another one all the time, with a
// source without an end.
#include "cpu.h"

#include <stdint.h>
#include <string.h>

const char lua_ident[] = "$LuaVersion: Lua 5.4.4  Copyright $";

enum { STATE = 16, CALL = 8, VALUES = 64 };

static uint64_t state[STATE], call[CALL], values[VALUES], closure[4], prototype[16], global[8];
static char text[1 << 16];

#define EIGHT(x) do { CRUNCH(x); CRUNCH(x); CRUNCH(x); CRUNCH(x); } while (0)
#define MANY(x) do { EIGHT(x); EIGHT(x); EIGHT(x); EIGHT(x); EIGHT(x); EIGHT(x); EIGHT(x); } while (0)

// The largest function by far: so it is the one that runs instructions.
FUNCTION uint64_t luaV_execute(uint64_t *volatile on_stack, uint64_t end) {
    uint64_t x = 88172645463325252u;
    uint64_t *volatile its_call = call;
    while (cpu_ns() < end) {
        MANY(x); MANY(x); MANY(x); MANY(x); MANY(x); MANY(x);
        prototype[5] += UINT64_C(1) << 32;
    }
    return x + (on_stack == its_call);
}

FUNCTION uint64_t lua_callk(uint64_t *of, uint64_t end) {
    return luaV_execute(of, end) + 1;
}

int main(int argc, char **argv) {
    int names = argc > 1 && strcmp(argv[1], "names") == 0;
    for (size_t at = 0; at + 8 <= sizeof text; at += 8) {
        memcpy(text + at, "\033[2J;\n<\"", 8);
    }
    ((uint8_t *)state)[8] = 8;
    state[2] = (uint64_t)(values + 8);
    state[3] = (uint64_t)global;
    // Of calls that end, the last is in the state.
    state[4] = (uint64_t)call;
    state[6] = (uint64_t)values;
    call[0] = (uint64_t)values;
    call[2] = names ? (uint64_t)(state + 12) : (uint64_t)call;
    call[7] = UINT64_C(4) << 48;
    values[0] = (uint64_t)closure;
    values[1] = 70;
    closure[3] = (uint64_t)prototype;
    // As many instructions, lines, functions and variables as there may be.
    prototype[3] = UINT64_MAX;
    prototype[4] = UINT64_MAX;
    prototype[14] = (uint64_t)text - 24;
    text[0] = '@';
    return lua_callk(state, ns_argument(argc, argv, 2, 1)) == 7;
}
