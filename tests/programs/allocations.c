// allocations N: N rounds of 100 bytes by malloc, 600 by calloc, 200 by realloc of nothing that grow to
// 1000, and 4096 by posix_memalign.
#include "cpu.h"
#include <stdio.h>
#include <stdlib.h>

FUNCTION static void *small(void) {
    void *block = malloc(100);
    NO_TAIL_CALL();
    return block;
}

FUNCTION static void *array(void) {
    void *block = calloc(10, 60);
    NO_TAIL_CALL();
    return block;
}

FUNCTION static void *grown(void) {
    void *block = realloc(realloc(NULL, 200), 1000);
    NO_TAIL_CALL();
    return block;
}

FUNCTION static void *aligned(void) {
    void *block = NULL;
    int failed = posix_memalign(&block, 64, 4096);
    NO_TAIL_CALL();
    return failed ? NULL : block;
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 100;
    for (int i = 0; i < rounds; i++) {
        void *blocks[] = {small(), array(), grown(), aligned()};
        for (int j = 0; j < 4; j++) {
            free(blocks[j]);
        }
    }
    return 0;
}
