// Weights tilted by an exponential, as multiplicative updates need them. Part of level.cpp.
#pragma once

#include "vectors.hpp"

namespace hardmargin {
namespace {

using LooseDoubles = Vector<double>::unaligned;  // as a template argument it would be aligned
constexpr std::size_t doubles_per_vector = vector_bytes / sizeof(double);

// Calls use(i, number of rows) for whole vectors of rows, then for the rest.
template <class Use>
inline void each_vector(std::size_t n, Use&& use) {
    std::size_t i = 0;
    for (; i + doubles_per_vector <= n; i += doubles_per_vector) use(i, doubles_per_vector);
    if (i < n) use(i, n - i);
}

inline Vec<double> load_some(const double* p, std::size_t n, double padding) {
    if (n == doubles_per_vector) return *reinterpret_cast<const LooseDoubles*>(p);
    Vec<double> v = spread(padding);
    for (std::size_t i = 0; i < n; ++i) v[i] = p[i];
    return v;
}

inline double sum_of_lanes(Vec<double> v) {
    double sum = 0;
    for (std::size_t i = 0; i < doubles_per_vector; ++i) sum += v[i];
    return sum;
}

TiltSums tilt(const double* logs, const double* values, double rate, double centre, double* weights,
              std::size_t n) {
    // Padding rows have the least possible weight and lie at the centre.
    constexpr double lightest = -1e300;
    Vec<double> largest = spread(lightest);
    each_vector(n, [&](std::size_t i, std::size_t some) {
        const Vec<double> v = load_some(values + i, some, 0.0);
        largest = larger(load_some(logs + i, some, lightest) - rate * v, largest);
    });
    double top = largest[0];
    for (std::size_t i = 1; i < doubles_per_vector; ++i) top = largest[i] > top ? largest[i] : top;

    constexpr double log2_e = 1.4426950408889634;
    Vec<double> mass = {}, first = {}, second = {};
    each_vector(n, [&](std::size_t i, std::size_t some) {
        const Vec<double> v = load_some(values + i, some, centre);
        const Vec<double> tilted = load_some(logs + i, some, lightest) - rate * v;
        const Vec<double> w = exp2(log2_e * (tilted - top));
        const Vec<double> off = v - centre;
        mass += w;
        first += w * off;
        second += w * off * off;
        if (some == doubles_per_vector) *reinterpret_cast<LooseDoubles*>(weights + i) = w;
        else
            for (std::size_t j = 0; j < some; ++j) weights[i + j] = w[j];
    });
    return {top, sum_of_lanes(mass), sum_of_lanes(first), sum_of_lanes(second)};
}

}  // namespace
}  // namespace hardmargin
