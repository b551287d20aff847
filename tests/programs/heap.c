// heap: moves the end of its heap by brk(2): 40 times 64 KiB further in `grow`, 10 times 16 KiB in `little`, and
// back each time in between.
#include "cpu.h"
#include <unistd.h>

FUNCTION static void grow(void) {
    if (sbrk(65536) == (void *)-1) _exit(1);
}
FUNCTION static void little(void) {
    if (sbrk(16384) == (void *)-1) _exit(1);
}
FUNCTION static void back(intptr_t bytes) {
    if (sbrk(-bytes) == (void *)-1) _exit(1);
}

int main(void) {
    for (int i = 0; i < 40; i++) grow(), back(65536);
    for (int i = 0; i < 10; i++) little(), back(16384);
    return 0;
}
