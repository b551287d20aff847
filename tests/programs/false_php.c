// Claims to be PHP 8.2, and has memory that leads whoever reads it astray: `false_php circle|names SECONDS`.
// circle: a frame that is outside of itself. names: a function that is another one all the time, with names
// without an end.
#include "cpu.h"

#include <stdint.h>
#include <string.h>

uint64_t executor_globals[128];

static uint64_t frame[16], function[32], class[4], instructions[64];
static char text[1 << 16];

// What shows where a PHP has its frame and the file of a function, and where its instructions are.
FUNCTION uint64_t zend_get_executed_filename_ex(uint64_t *of) {
    uint64_t found;
    __asm__ volatile("mov 488(%1), %0\n mov 152(%1), %0" : "=r"(found) : "r"(of));
    return found;
}

FUNCTION uint64_t zend_get_executed_lineno(uint64_t *of) {
    uint64_t found;
    __asm__ volatile("mov 88(%1), %0" : "=r"(found) : "r"(of));
    return found;
}

FUNCTION uint64_t execute_ex(uint64_t *volatile on_stack, uint64_t end) {
    uint64_t x = 88172645463325252u;
    uint64_t *volatile its_frame = frame;
    while (cpu_ns() < end) {
        CRUNCH(x);
        CRUNCH(x);
        function[20] += UINT64_C(1);
    }
    return x + (on_stack == its_frame);
}

int main(int argc, char **argv) {
    int names = argc > 1 && strcmp(argv[1], "names") == 0;
    for (size_t at = 24; at + 8 <= sizeof text; at += 8) {
        memcpy(text + at, "\033[2J;\n<\"", 8);
    }
    // As long as a text may be.
    ((uint64_t *)text)[2] = UINT64_MAX;
    executor_globals[61] = (uint64_t)frame;
    frame[0] = (uint64_t)instructions;
    frame[3] = (uint64_t)function;
    frame[5] = UINT64_C(1) << 17;
    frame[6] = names ? 0 : (uint64_t)frame;
    function[0] = 2;
    function[1] = (uint64_t)text;
    function[2] = (uint64_t)class;
    class[1] = (uint64_t)text;
    // As many instructions as there may be.
    function[10] = UINT32_MAX;
    function[11] = (uint64_t)instructions;
    function[19] = (uint64_t)text;
    uint64_t end = ns_argument(argc, argv, 2, 1);
    zend_get_executed_filename_ex(executor_globals);
    zend_get_executed_lineno(executor_globals);
    return execute_ex(frame, end) == 7;
}
