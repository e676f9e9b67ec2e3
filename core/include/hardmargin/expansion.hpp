// Sums of kernel functions evaluated tile by tile, and plain blocks of kernel values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hardmargin/control.hpp"
#include "hardmargin/kernel.hpp"
#include "hardmargin/matrix.hpp"

namespace hardmargin {

// Coefficients of n_machines expansions over the same support rows, stored by support row.
struct Coefficients {
    std::size_t n_machines;
    const std::int64_t* starts;    // n_support + 1
    const std::int32_t* machines;  // machine of each entry, ascending within a row
    const double* values;
};

// out[q * n_machines + m] = sum_s coef[s, m] * kernel(queries[q], support[s])
template <class T>
void expand(const KernelSpec& kernel, const Matrix& queries, const Matrix& support,
            const Coefficients& coefficients, double* out, int n_threads, Control& control);

// The same, added to out, for several kernels exp(-gamma * distance) of one metric, each with its
// own coefficients; distances are evaluated once.
template <class T>
void expand_decays(KernelKind metric, const std::vector<double>& gammas, const Matrix& queries,
                   const Matrix& support, const std::vector<Coefficients>& coefficients,
                   double* out, int n_threads, Control& control);

// The same within a task of parallel_for. What is added for a query does not depend on the others.
template <class T>
void add_decays(KernelKind metric, const std::vector<double>& gammas, const Matrix& queries,
                const Matrix& support, const std::vector<Coefficients>& coefficients, double* out,
                Meter& meter);

// out[q * n_support + s] = kernel(queries[q], support[s])
template <class T>
void kernel_block(const KernelSpec& kernel, const Matrix& queries, const Matrix& support, T* out,
                  std::size_t stride, int n_threads, Control& control);

// out[(q - first) * n + s] = distance of points q and s, for q from `first` to `end`, within a task
// of parallel_for. Points are contiguous rows of `width` numbers.
template <class T>
void distance_block(KernelKind metric, const T* points, std::size_t n, std::size_t width,
                    std::size_t first, std::size_t end, T* out, Meter& meter);

// Whether rows of this matrix are worth packing: dense ones always are, sparse ones if they are so
// narrow or so full that tiles are faster than stored entries.
bool is_packable(const Matrix& matrix);

}  // namespace hardmargin
