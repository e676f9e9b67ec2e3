// A kernel as the core sees it: a metric between two rows and a function of it.
#pragma once

#include <algorithm>
#include <cmath>

namespace hardmargin {

enum class KernelKind { rbf, laplacian, matern32, matern52, linear, cosine, poly, sigmoid };

struct KernelSpec {
    KernelKind kind = KernelKind::rbf;
    double gamma = 1.0;
    double coef0 = 0.0;
    double degree = 3.0;
    bool metric_only = false;  // for a distance kernel: the distance itself

    // Distance kernels depend on x - z alone: they lie in (0, 1], are 1 on the diagonal, do not
    // change when all rows are shifted alike, and can be bounded over a box.
    bool is_distance() const { return is_squared() || kind == KernelKind::laplacian; }

    // Whether the distance is ||x - z||^2; that of other distance kernels is ||x - z||_1.
    bool is_squared() const { return kind == KernelKind::rbf || twice_nu() > 0; }

    // Of a Matern kernel, which is a function of s = sqrt(2 nu gamma) ||x - z||; else 0.
    int twice_nu() const {
        return kind == KernelKind::matern32 ? 3 : kind == KernelKind::matern52 ? 5 : 0;
    }
};

// What a distance kernel makes of a distance. (The hot loops have the same in level/distances.hpp.)
inline double value_of_distance(const KernelSpec& kernel, double distance) {
    if (kernel.metric_only) return distance;
    if (!kernel.twice_nu()) return std::exp(-kernel.gamma * distance);
    const double s = std::min(std::sqrt(kernel.twice_nu() * kernel.gamma * distance), 708.0);
    const double smoother = kernel.kind == KernelKind::matern52 ? s * s / 3 : 0.0;
    return (1 + s + smoother) * std::exp(-s);
}

}  // namespace hardmargin
