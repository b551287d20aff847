// What plugin.c is under other names: mapped where the first one was, its code has the same
// addresses.
#include "cpu.h"

FUNCTION static void other_inner(uint64_t end) { BURN_UNTIL(end); }

FUNCTION void other_work(uint64_t end) {
    other_inner(end);
    NO_TAIL_CALL();
}
