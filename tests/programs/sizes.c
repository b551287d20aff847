// sizes N: N times 100 bytes in `small`, 1 of 50 times 8,192 in `middle`, and 1 of 5,000 times 1 MiB in `large`, which
// are allocated and written.
#include "cpu.h"
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static int nowhere;
static char buffer[1 << 20];

static void use(size_t len) {
    void *volatile block = malloc(len);
    if (block == NULL || write(nowhere, buffer, len) != (ssize_t)len) {
        abort();
    }
    free(block);
    NO_TAIL_CALL();
}

FUNCTION static void small(void) {
    use(100);
    NO_TAIL_CALL();
}

FUNCTION static void middle(void) {
    use(8192);
    NO_TAIL_CALL();
}

FUNCTION static void large(void) {
    use(1 << 20);
    NO_TAIL_CALL();
}

int main(int argc, char **argv) {
    int times = argc > 1 ? atoi(argv[1]) : 5000;
    nowhere = open("/dev/null", O_WRONLY);
    for (int i = 0; i < times; i++) {
        small();
        if (i % 50 == 7) {
            middle();
        }
        if (i % 5000 == 77) {
            large();
        }
    }
    return 0;
}
