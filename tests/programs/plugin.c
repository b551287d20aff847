// The shared object that dlopen.c loads: plugin_work -> plugin_inner, which burns.
#include "cpu.h"

FUNCTION static void plugin_inner(uint64_t end) { BURN_UNTIL(end); }

FUNCTION void plugin_work(uint64_t end) {
    plugin_inner(end);
    NO_TAIL_CALL();
}
