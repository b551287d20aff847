// leaks N: N rounds in which `lost` keeps 100 bytes and `grown` 1000, while what `freed`, `moved` and `large`
// allocate is freed in the end.
#include "cpu.h"
#include <stdlib.h>

static void *kept;

// What is kept is in a list, so that the compiler cannot do without it.
static void keep(void *block) {
    *(void **)block = kept;
    kept = block;
}

FUNCTION static void lost(void) {
    keep(malloc(100));
    NO_TAIL_CALL();
}

FUNCTION static void grown(void) {
    keep(realloc(realloc(NULL, 200), 1000));
    NO_TAIL_CALL();
}

FUNCTION static void *freed(void) {
    void *block = calloc(20, 10);
    NO_TAIL_CALL();
    return block;
}

FUNCTION static void *moved(void) {
    void *block = realloc(malloc(50), 3000);
    NO_TAIL_CALL();
    return block;
}

// Blocks of this size are mappings of their own.
FUNCTION static void *large(void) {
    void *block = realloc(malloc(200000), 2000000);
    NO_TAIL_CALL();
    return block;
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 100;
    for (int i = 0; i < rounds; i++) {
        lost();
        grown();
        void *blocks[] = {freed(), moved(), i % 100 ? NULL : large()};
        for (int j = 0; j < 3; j++) {
            free(blocks[j]);
        }
    }
    return 0;
}
