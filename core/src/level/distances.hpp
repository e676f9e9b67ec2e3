// What kernels make of distances. Part of level.cpp.
#pragma once

#include "vectors.hpp"

namespace hardmargin {
namespace {

inline Vec<float> square_root(Vec<float> v) {
    for (std::size_t i = 0; i < sizeof(v) / sizeof(v[0]); ++i) v[i] = __builtin_sqrtf(v[i]);
    return v;
}
inline Vec<double> square_root(Vec<double> v) {
    for (std::size_t i = 0; i < sizeof(v) / sizeof(v[0]); ++i) v[i] = __builtin_sqrt(v[i]);
    return v;
}

constexpr double log2_of_e = 1.4426950408889634;

// value_of_distance(kernel, d) of vectors; its numbers are settled once, before a loop.
template <class T>
class ValueOfDistance {
  public:
    explicit ValueOfDistance(const KernelSpec& kernel)
        : scale(finite<T>(-kernel.gamma * log2_of_e)),
          stretch_(finite<T>(kernel.gamma * kernel.twice_nu())), kind_(kernel.kind),
          metric_only_(kernel.metric_only),
          is_exponential_(!kernel.metric_only && kernel.twice_nu() == 0) {}

    Vec<T> operator()(Vec<T> distance) const {
        return is_exponential_ ? exp2(scale * distance) : other(distance);
    }

    bool operator==(const ValueOfDistance&) const = default;

    T scale;  // exp(-gamma * distance) is 2 to the power of this times the distance

  private:
    // Out of line, so that loops over exponentials stay small.
    [[gnu::noinline]] Vec<T> other(Vec<T> distance) const {
        if (metric_only_) return distance;
        constexpr T longest = sizeof(T) == 4 ? T(87) : T(708);  // so that no product is inf * 0
        const Vec<T> s = smaller(square_root(stretch_ * distance), spread(longest));
        const Vec<T> decay = exp2(static_cast<T>(-log2_of_e) * s);
        if (kind_ == KernelKind::matern32) return (T(1) + s) * decay;
        return (T(1) + s + s * s / T(3)) * decay;
    }

    T stretch_;  // of squared distances, in Matern kernels
    KernelKind kind_;
    bool metric_only_, is_exponential_;
};

}  // namespace
}  // namespace hardmargin
