// syscalls [CPU_SECONDS]: main -> fill_from_kernel -> read of /dev/zero, 1 MiB at a time: nearly
// all time is the kernel's, clearing memory.
#include "cpu.h"
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static char buffer[1 << 20];

FUNCTION static void fill_from_kernel(int zero, uint64_t end) {
    while (cpu_ns() < end) {
        if (read(zero, buffer, sizeof buffer) <= 0) {
            break;
        }
    }
    NO_TAIL_CALL();
}

int main(int argc, char **argv) {
    int zero = open("/dev/zero", O_RDONLY);
    if (zero < 0) {
        perror("/dev/zero");
        return 1;
    }
    fill_from_kernel(zero, ns_argument(argc, argv, 1, 1.0) + cpu_ns());
    return 0;
}
