// Claims to be Perl 5.36 without threads, and has memory that leads whoever reads it astray:
// `false_perl circle|names SECONDS`. circle: a stack that is outside of itself. names: 100 subs that are
// others all the time, with names that say they have two gigabytes.
#include "cpu.h"

#include <stdint.h>
#include <string.h>

enum { SUBS = 100, CONTEXT = 13, WORDS = 256 };

const uint8_t PL_version = 36;
uint64_t PL_curcop, PL_curstackinfo;

static uint64_t stack[6], contexts[SUBS * CONTEXT], text[WORDS], statement[8], package[3], table[9];
static uint64_t subs[SUBS][3], bodies[SUBS][12];

// The function that Perl runs operations in.
FUNCTION uint64_t Perl_runops_standard(int changes, uint64_t end) {
    uint64_t x = 88172645463325252u;
    while (cpu_ns() < end) {
        CRUNCH(x);
        for (int i = 0; changes && i < SUBS; i++) {
            bodies[i][4] = (uint64_t)package;
            bodies[i][7] = (uint64_t)text;
            statement[7] += UINT64_C(1) << 32;
        }
    }
    return x;
}

FUNCTION uint64_t perl_run(int names, uint64_t end) {
    uint64_t x = Perl_runops_standard(names, end);
    return x + 1;
}

int main(int argc, char **argv) {
    int names = argc > 1 && strcmp(argv[1], "names") == 0;
    PL_curstackinfo = (uint64_t)stack;
    PL_curcop = (uint64_t)statement;
    stack[1] = (uint64_t)contexts;
    stack[2] = names ? 0 : (uint64_t)stack;
    stack[4] = SUBS - 1;
    stack[5] = SUBS - 1;
    // A statement's operation has the number 195 in 5.36.
    statement[4] = 195 | UINT64_C(7) << 32;
    text[0] = UINT64_C(0x7fffffff) << 32;
    for (int i = 1; i < WORDS; i++) {
        memcpy(&text[i], "\033[2J;\n<\"", 8);
    }
    package[0] = (uint64_t)table;
    package[1] = (UINT64_C(0x02000000) | 12) << 32;
    table[4] = (uint64_t)text;
    for (int i = 0; i < SUBS; i++) {
        uint64_t *context = contexts + i * CONTEXT;
        context[0] = 9;
        context[2] = (uint64_t)statement;
        context[6] = 1;
        context[9] = (uint64_t)subs[i];
        subs[i][0] = (uint64_t)bodies[i];
        subs[i][1] = UINT64_C(13) << 32;
        bodies[i][5] = (uint64_t)statement;
        // A sub that has a name rather than a variable.
        bodies[i][11] = UINT64_C(0x8000) << 32;
    }
    uint64_t end = argc > 2 ? (uint64_t)(atof(argv[2]) * 1e9) : 1000000000u;
    return perl_run(names, end) == 0;
}
