// A kernel as the core sees it: a metric between two rows and a function of it.
#pragma once

#include <cmath>

namespace hardmargin {

enum class KernelKind { rbf, laplacian, linear, poly, sigmoid };

struct KernelSpec {
    KernelKind kind = KernelKind::rbf;
    double gamma = 1.0;
    double coef0 = 0.0;
    double degree = 3.0;
    bool metric_only = false;  // for a distance kernel: the distance itself

    // Distance kernels depend on x - z alone: they lie in (0, 1], are 1 on the diagonal, do not
    // change when all rows are shifted alike, and can be bounded over a box.
    bool is_distance() const { return kind == KernelKind::rbf || kind == KernelKind::laplacian; }
};

// What a distance kernel makes of a distance. (The hot loops have the same in level/distances.hpp.)
inline double value_of_distance(const KernelSpec& kernel, double distance) {
    return kernel.metric_only ? distance : std::exp(-kernel.gamma * distance);
}

}  // namespace hardmargin
