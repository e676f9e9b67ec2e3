// Checks that end the program and say where, and the few tools all tests share.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) hardmargin::test::fail(__FILE__, __LINE__, #condition);                  \
    } while (false)

// |actual - expected| <= tolerance * (1 + |expected|)
#define CHECK_CLOSE(actual, expected, tolerance)                                                   \
    hardmargin::test::check_close(__FILE__, __LINE__, #actual, actual, expected, tolerance)

#define CHECK_THROWS(Error, ...)                                                                   \
    do {                                                                                           \
        bool threw = false;                                                                        \
        try {                                                                                      \
            __VA_ARGS__;                                                                           \
        } catch (const Error&) {                                                                   \
            threw = true;                                                                          \
        }                                                                                          \
        if (!threw) hardmargin::test::fail(__FILE__, __LINE__, #__VA_ARGS__ " did not throw");     \
    } while (false)

namespace hardmargin::test {

[[noreturn]] inline void fail(const char* file, int line, const char* what) {
    std::fprintf(stderr, "%s:%d: failed: %s\n", file, line, what);
    std::exit(1);
}

inline void check_close(const char* file, int line, const char* what, double actual,
                        double expected, double tolerance) {
    if (std::abs(actual - expected) <= tolerance * (1 + std::abs(expected))) return;
    std::fprintf(stderr, "%s is %.17g instead of %.17g\n", what, actual, expected);
    fail(file, line, what);
}

class Random {
  public:
    explicit Random(unsigned seed) : engine_(seed) {}
    double normal() { return std::normal_distribution<double>()(engine_); }
    std::size_t below(std::size_t n) { return engine_() % n; }

    std::vector<double> normals(std::size_t n) {
        std::vector<double> v(n);
        for (double& x : v) x = normal();
        return v;
    }

  private:
    std::mt19937_64 engine_;
};

}  // namespace hardmargin::test
