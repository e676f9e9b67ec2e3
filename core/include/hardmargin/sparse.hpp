// Kernels of CSR rows that are too wide to pack: metrics from stored entries only.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "hardmargin/kernel.hpp"
#include "hardmargin/matrix.hpp"

namespace hardmargin {

// What each row contributes by itself: ||x||^2 (rbf), ||x||_1 (laplacian), 0 (other kernels).
inline std::vector<double> row_norms(const KernelSpec& kernel, const Matrix& matrix) {
    std::vector<double> norms(matrix.n_rows, 0.0);
    if (!kernel.is_distance()) return norms;
    const bool squared = kernel.kind == KernelKind::rbf;
    for (std::size_t i = 0; i < matrix.n_rows; ++i)
        matrix.each(i, [&](std::size_t, double v) { norms[i] += squared ? v * v : std::abs(v); });
    return norms;
}

// What a stored entry x of one row and z in the same column of another add beyond the norms.
inline double joint_term(const KernelSpec& kernel, double x, double z) {
    if (kernel.kind == KernelKind::laplacian) return std::abs(x - z) - std::abs(x) - std::abs(z);
    return x * z;
}

// The kernel from the sum of joint terms and both norms.
inline double from_joint(const KernelSpec& kernel, double joint, double norm_x, double norm_z) {
    const auto of_distance = [&](double distance) {
        distance = std::fmax(distance, 0.0);
        return kernel.metric_only ? distance : std::exp(-kernel.gamma * distance);
    };
    switch (kernel.kind) {
        case KernelKind::rbf: return of_distance(norm_x + norm_z - 2 * joint);
        case KernelKind::laplacian: return of_distance(norm_x + norm_z + joint);
        case KernelKind::linear: return joint;
        case KernelKind::poly: return std::pow(kernel.gamma * joint + kernel.coef0, kernel.degree);
        case KernelKind::sigmoid: return std::tanh(kernel.gamma * joint + kernel.coef0);
    }
    return 0;
}

}  // namespace hardmargin
