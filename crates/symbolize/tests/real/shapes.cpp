// A program with much of the C++ library inlined into it, for lookups to be compared on.
#include <algorithm>
#include <functional>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>
namespace {
struct Shape { virtual ~Shape() = default; virtual double area() const = 0; };
template <typename T> struct Box : Shape { T a, b; Box(T x, T y) : a(x), b(y) {} double area() const override { return a * b; } };
std::map<std::string, std::vector<std::unique_ptr<Shape>>> shapes;
template <typename F> auto timed(F f) { return std::async(std::launch::deferred, f).get(); }
}
int main(int argc, char **argv) {
    std::unordered_map<std::string, std::function<double(double)>> functions;
    functions["twice"] = [](double x) { return x * 2; };
    functions["more"] = [&](double x) { return x + argc; };
    std::regex word("([a-z]+)=([0-9.]+)(;|$)");
    for (int i = 0; i < argc; i++) {
        std::string text = argv[i];
        for (std::sregex_iterator at(text.begin(), text.end(), word), end; at != end; ++at) {
            shapes[(*at)[1]].push_back(std::make_unique<Box<double>>(std::stod((*at)[2]), i));
            shapes[(*at)[1]].push_back(std::make_unique<Box<int>>(i, i));
        }
    }
    std::vector<double> areas;
    for (auto &[name, list] : shapes) for (auto &s : list) areas.push_back(functions["twice"](s->area()));
    std::sort(areas.begin(), areas.end(), std::greater<>());
    std::ostringstream out;
    for (double a : areas) out << timed([&] { return a; }) << ' ';
    std::cout << std::regex_replace(out.str(), std::regex("0+"), "0") << std::endl;
}
