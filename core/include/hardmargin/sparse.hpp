// Kernels of CSR rows that are too wide to pack: metrics from stored entries only.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "hardmargin/kernel.hpp"
#include "hardmargin/matrix.hpp"

namespace hardmargin {

// What each row contributes by itself: ||x||^2 (rbf), ||x||_1 (laplacian), 0 (other kernels).
inline std::vector<double> row_norms(const KernelSpec& kernel, const Matrix& matrix) {
    std::vector<double> norms(matrix.n_rows, 0.0);
    if (!kernel.is_distance()) return norms;
    const bool squared = kernel.is_squared();
    for (std::size_t i = 0; i < matrix.n_rows; ++i)
        matrix.each(i, [&](std::size_t, double v) { norms[i] += squared ? v * v : std::abs(v); });
    return norms;
}

// What entries of rows are divided by, of a cosine kernel: the rows' lengths. Without them, 1.
class RowLengths {
  public:
    RowLengths(const KernelSpec& kernel, const Matrix& matrix) {
        if (kernel.kind != KernelKind::cosine) return;
        for (std::size_t i = 0; i < matrix.n_rows; ++i) lengths_.push_back(length_of(matrix, i));
    }

    double operator[](std::size_t row) const { return lengths_.empty() ? 1.0 : lengths_[row]; }

  private:
    std::vector<double> lengths_;
};

// What a stored entry x of one row and z in the same column of another have in common: their
// product, or the part that does not add to |x - z| = |x| + |z| - 2 * common.
inline double common(const KernelSpec& kernel, double x, double z) {
    if (kernel.kind == KernelKind::laplacian)
        return std::max(std::min(x, z), 0.0) - std::min(std::max(x, z), 0.0);
    return x * z;
}

// Values of a distance kernel from differences: slower than from products and norms, but no digits
// cancel. The levels' `finish` says which values need it.
class ExactValues {
  public:
    ExactValues(const KernelSpec& kernel, const Matrix& queries, const Matrix& support)
        : kernel_(kernel), queries_(queries), support_(support) {}

    template <class T>
    T value(std::size_t query, std::size_t support) {
        constexpr double largest = std::numeric_limits<T>::max();
        const double value = value_of_distance(kernel_, distance(query, support));
        return static_cast<T>(std::min(value, largest));
    }

  private:
    using Entries = std::vector<std::pair<std::size_t, double>>;  // by column

    double distance(std::size_t query, std::size_t support) {
        read(queries_, query, x_);
        read(support_, support, z_);
        double sum = 0;
        const auto add = [&](double difference) {
            sum += kernel_.is_squared() ? difference * difference : std::abs(difference);
        };
        std::size_t i = 0, j = 0;
        while (i < x_.size() || j < z_.size()) {
            const bool has_x = j == z_.size() || (i < x_.size() && x_[i].first <= z_[j].first);
            const bool has_z = i == x_.size() || (j < z_.size() && z_[j].first <= x_[i].first);
            add((has_x ? x_[i].second : 0.0) - (has_z ? z_[j].second : 0.0));
            i += has_x;
            j += has_z;
        }
        return sum;
    }

    static void read(const Matrix& matrix, std::size_t row, Entries& entries) {
        entries.clear();
        matrix.each(row, [&](std::size_t k, double value) { entries.emplace_back(k, value); });
        std::sort(entries.begin(), entries.end());
    }

    const KernelSpec kernel_;
    const Matrix &queries_, &support_;
    Entries x_, z_;
};

}  // namespace hardmargin
