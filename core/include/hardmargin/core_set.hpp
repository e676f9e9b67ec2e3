// The L2-SVM on a core set, and sums of cached kernel columns (see solvers/core_sets).
// Matrices begin on a cache line, and their rows lie a multiple of 16 entries apart.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hardmargin/control.hpp"

namespace hardmargin {

struct CoreSetResult {
    std::size_t n_steps = 0;
    double violation = 0;  // largest distance of a gradient from 1, only from below if alpha = 0
    bool timed_out = false;
    bool diverged = false;  // the sum of alpha is larger than a positive semi-definite Q allows
};

// min 1/2 alpha' Q alpha - sum alpha over alpha >= 0, starting from the given alpha and
// gradient = Q alpha. This is step 3 of solvers/core_sets/core_vector.py:
//
// 1. Choose the row i whose gradient is furthest from 1 (rows with alpha = 0: below 1).
// 2. Choose the row j that gains most if its multiplier changes together with that of i.
// 3. Move both multipliers to the minimum over the two.
// 4. Add both columns to the gradient.
// 5. Stop when step 1 finds no row further from 1 than tol.
//
// Q is symmetric; between n and the next multiple of pair_rows its rows must hold finite numbers.
template <class T>
CoreSetResult core_set_steps(const T* q, std::size_t stride, std::size_t n, double* alpha,
                             double* gradient, double tol, double largest_mass,
                             std::size_t max_steps, Clock::time_point deadline, Control& control);

// Rows of a machine, the first `n` of them in its core set, the others about to join.
struct CoreSetRows {
    std::size_t n, total;
    const double* labels;       // +1 or -1
    const double* projections;  // (total, n_directions): on directions the machine may not use
    std::size_t n_directions;
    double bias;             // added to every kernel value
    const double* diagonal;  // of Q, for the rows that join
};

// Q[i][j] = labels[i] labels[j] (k_ij - projections[i]'projections[j] + bias) for n <= i < total,
// j < total, and the same for Q[j][i]; k_ij = values[slots[i - n] * stride + places[j]].
template <class T>
void join_core_set(const CoreSetRows& rows, const T* values, std::size_t stride,
                   const std::int64_t* slots, const std::int64_t* places, T* q,
                   std::size_t q_stride);

// out[i] = sum_c coef[c] * values[slots[c] * stride + i] for i < n.
template <class T>
void sum_columns(const T* values, std::size_t stride, const std::int64_t* slots, const double* coef,
                 std::size_t n_columns, std::size_t n, double* out, Control& control);

// out[i] = sum_c coef[c] * values[slots[c] * stride + rows[i]] for i < n.
template <class T>
void sum_columns_at(const T* values, std::size_t stride, const std::int64_t* slots,
                    const double* coef, std::size_t n_columns, const std::int64_t* rows,
                    std::size_t n, double* out);

}  // namespace hardmargin
