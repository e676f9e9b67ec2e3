// What kernels make of distances. Part of level.cpp.
#pragma once

#include "vectors.hpp"

namespace hardmargin {
namespace {

// value_of_distance(kernel, d) of vectors; its numbers are settled once, before a loop.
template <class T>
class ValueOfDistance {
  public:
    explicit ValueOfDistance(const KernelSpec& kernel)
        : scale(finite<T>(-kernel.gamma * 1.4426950408889634)), metric_only_(kernel.metric_only) {}

    Vec<T> operator()(Vec<T> distance) const {
        return metric_only_ ? distance : exp2(scale * distance);
    }

    T scale;  // exp(-gamma * distance) is 2 to the power of this times the distance

  private:
    bool metric_only_;
};

}  // namespace
}  // namespace hardmargin
