// shares [CPU_SECONDS]: main -> work -> alpha | beta | omega with 50, 30 and 20 % of the CPU time.
//
// The next function is always the one that is furthest behind its share, and each slice has a
// random length between 0.1 and 0.9 ms, so that no sampling frequency can lock on.
// Prints `alpha 0.500 beta 0.300 omega 0.200` as it was in the end.
#include "cpu.h"
#include <stdio.h>

static const double wanted[3] = {0.5, 0.3, 0.2};

FUNCTION static void alpha(uint64_t end) { BURN_UNTIL(end); }
FUNCTION static void beta(uint64_t end) { BURN_UNTIL(end); }
FUNCTION static void omega(uint64_t end) { BURN_UNTIL(end); }

static uint64_t random_bits = 0x9e3779b97f4a7c15u;

static uint64_t slice_ns(void) {
    random_bits ^= random_bits << 13, random_bits ^= random_bits >> 7;
    random_bits ^= random_bits << 17;
    return 100000 + random_bits % 800000;
}

FUNCTION static void work(uint64_t total, uint64_t used[3]) {
    uint64_t start = cpu_ns(), now = start;
    while (now - start < total) {
        int next = 0;
        double most_behind = -1e18;
        for (int i = 0; i < 3; i++) {
            double behind = wanted[i] * (double)(now - start) - (double)used[i];
            if (behind > most_behind) {
                most_behind = behind, next = i;
            }
        }
        uint64_t end = now + slice_ns();
        switch (next) {
        case 0: alpha(end); break;
        case 1: beta(end); break;
        default: omega(end); break;
        }
        uint64_t then = cpu_ns();
        used[next] += then - now;
        now = then;
    }
    NO_TAIL_CALL();
}

int main(int argc, char **argv) {
    uint64_t used[3] = {0, 0, 0};
    uint64_t total = ns_argument(argc, argv, 1, 1.0);
    puts("ready");
    fflush(stdout);
    work(total, used);
    double sum = (double)(used[0] + used[1] + used[2]);
    printf("alpha %.3f beta %.3f omega %.3f\n", used[0] / sum, used[1] / sum, used[2] / sum);
    return 0;
}
