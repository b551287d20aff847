// recursion CPU_SECONDS DEPTH [mutual]: burns at the bottom of a recursion.
//
// Direct: main -> DEPTH times `descend` -> bottom. Mutual: main -> `even`, `odd`, `even`, ...
// (DEPTH frames in all) -> bottom.
#include "cpu.h"
#include <stdio.h>

static uint64_t end;

FUNCTION static void bottom(void) { BURN_UNTIL(end); }

FUNCTION static void descend(int left) {
    if (left <= 1) {
        bottom();
    } else {
        descend(left - 1);
    }
    NO_TAIL_CALL();
}

FUNCTION static void odd(int left);

FUNCTION static void even(int left) {
    if (left <= 1) {
        bottom();
    } else {
        odd(left - 1);
    }
    NO_TAIL_CALL();
}

FUNCTION static void odd(int left) {
    if (left <= 1) {
        bottom();
    } else {
        even(left - 1);
    }
    NO_TAIL_CALL();
}

int main(int argc, char **argv) {
    int depth = argc > 2 ? atoi(argv[2]) : 100;
    end = ns_argument(argc, argv, 1, 1.0) + cpu_ns();
    if (argc > 3) {
        even(depth);
    } else {
        descend(depth);
    }
    puts("done");
    return 0;
}
