// thrown [CPU_SECONDS]: main -> work -> Step::turn (virtual) -> alpha | beta | omega with 50, 30 and 20 % of the CPU
// time. Each of them ends by an exception, which `work` catches; what throwing takes is theirs.
//
// Prints `alpha 0.500 beta 0.300 omega 0.200` as it was in the end.
#include "cpu.h"
#include <cstdio>
#include <stdexcept>

namespace {
struct Step {
    double wanted;
    uint64_t used = 0;
    explicit Step(double wanted) : wanted(wanted) {}
    virtual ~Step() = default;
    virtual void turn(uint64_t end) = 0;
};

[[noreturn]] FUNCTION void fail(uint64_t end) { throw std::runtime_error(end % 2 ? "odd" : "even"); }

FUNCTION void alpha(uint64_t end) {
    BURN_UNTIL(end);
    fail(end);
}
FUNCTION void beta(uint64_t end) {
    BURN_UNTIL(end);
    fail(end);
}
FUNCTION void omega(uint64_t end) {
    BURN_UNTIL(end);
    fail(end);
}

struct Alpha : Step {
    using Step::Step;
    FUNCTION void turn(uint64_t end) override { alpha(end); }
};
struct Beta : Step {
    using Step::Step;
    FUNCTION void turn(uint64_t end) override { beta(end); }
};
struct Omega : Step {
    using Step::Step;
    FUNCTION void turn(uint64_t end) override { omega(end); }
};

FUNCTION void work(uint64_t total, Step *const steps[3]) {
    uint64_t start = cpu_ns(), now = start, random_bits = 0x9e3779b97f4a7c15u;
    while (now - start < total) {
        Step *next = steps[0];
        double most_behind = -1e18;
        for (int i = 0; i < 3; i++) {
            double behind = steps[i]->wanted * double(now - start) - double(steps[i]->used);
            if (behind > most_behind) {
                most_behind = behind, next = steps[i];
            }
        }
        random_bits ^= random_bits << 13, random_bits ^= random_bits >> 7;
        random_bits ^= random_bits << 17;
        try {
            next->turn(now + 500000 + random_bits % 2000000);
        } catch (const std::exception &) {
        }
        uint64_t then = cpu_ns();
        next->used += then - now;
        now = then;
    }
}
} // namespace

int main(int argc, char **argv) {
    Alpha first(0.5);
    Beta second(0.3);
    Omega third(0.2);
    Step *steps[] = {&first, &second, &third};
    work(ns_argument(argc, argv, 1, 1.0), steps);
    double sum = double(first.used + second.used + third.used);
    printf("alpha %.3f beta %.3f omega %.3f\n", double(first.used) / sum, double(second.used) / sum,
           double(third.used) / sum);
    return 0;
}
