// Claims to be CPython 3.11, and has memory that leads whoever reads it astray:
// `false_python circle|twice|names SECONDS`. circle: a frame whose caller is itself. twice: the same, where each of two
// native frames runs it. names: 100 frames of functions that are others all the time, with names that say they have a
// terabyte.
#include "cpu.h"

#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FRAMES = 100 };

const uint32_t Py_Version = 0x030b00f0;
uint64_t _PyRuntime[512];
uint64_t PyCode_Type[64];

static uint64_t interpreter[64], state[64], root[3], text[1024];
static uint64_t frames[FRAMES][10], codes[FRAMES][26];

// The function that CPython runs frames in; its structure on the stack leads to the innermost.
FUNCTION uint64_t _PyEval_EvalFrameDefault(int changes, int calls, uint64_t outside, uint64_t end) {
    volatile uint64_t on_stack[3] = {0, (uint64_t)frames[0], outside};
    if (calls) {
        return _PyEval_EvalFrameDefault(changes, 0, (uint64_t)on_stack, end) + on_stack[0];
    }
    state[7] = (uint64_t)on_stack;
    uint64_t x = 88172645463325252u;
    while (cpu_ns() < end) {
        CRUNCH(x);
        for (int i = 0; changes && i < FRAMES; i++) {
            codes[i][9]++;
        }
    }
    return x + on_stack[0];
}

int main(int argc, char **argv) {
    int names = argc > 1 && strcmp(argv[1], "names") == 0;
    int twice = argc > 1 && strcmp(argv[1], "twice") == 0;
    _PyRuntime[5] = (uint64_t)interpreter;
    interpreter[2] = (uint64_t)state;
    state[20] = (uint64_t)syscall(SYS_gettid);
    text[2] = UINT64_C(1) << 40;
    text[4] = 1 << 2 | 1 << 5 | 1 << 6;
    for (size_t i = 6; i < sizeof(text) / sizeof(text[0]); i++) {
        memcpy(&text[i], "\033[2J;\n<\"", 8);
    }
    for (int i = 0; i < FRAMES; i++) {
        int last = i == FRAMES - 1;
        frames[i][4] = (uint64_t)codes[i];
        frames[i][6] = last ? 0 : (uint64_t)frames[names ? i + 1 : i];
        frames[i][8] = twice || (names && last) ? UINT64_C(1) << 32 : 0;
        codes[i][1] = (uint64_t)PyCode_Type;
        codes[i][14] = codes[i][16] = codes[i][17] = (uint64_t)text;
    }
    uint64_t end = argc > 2 ? (uint64_t)(atof(argv[2]) * 1e9) : 1000000000u;
    root[1] = twice ? (uint64_t)frames[0] : 0;
    return _PyEval_EvalFrameDefault(names, twice, (uint64_t)root, end) == 0;
}
