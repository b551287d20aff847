// names [CPU_SECONDS]: equal shares for functions whose names need the C++ demangler.
#include "cpu.h"
#include <functional>

namespace {
struct Hidden {
    FUNCTION void method(uint64_t end) const { BURN_UNTIL(end); }
};
} // namespace

namespace geometry {
struct Vector {
    uint64_t x;
    FUNCTION Vector operator+(const Vector &end) const {
        BURN_UNTIL(end.x);
        return *this;
    }
};

template <typename T, int N> FUNCTION void scale(T end) { BURN_UNTIL(end); }
} // namespace geometry

FUNCTION static void call(const std::function<void(uint64_t)> &function, uint64_t end) {
    function(end);
    NO_TAIL_CALL();
}

int main(int argc, char **argv) {
    uint64_t quarter = ns_argument(argc, argv, 1, 1.0) / 4;
    Hidden().method(cpu_ns() + quarter);
    geometry::Vector one{1};
    (void)(one + geometry::Vector{cpu_ns() + quarter});
    geometry::scale<uint64_t, 3>(cpu_ns() + quarter);
    call([](uint64_t end) { BURN_UNTIL(end); }, cpu_ns() + quarter);
    return 0;
}
