// The hard-margin SVM, at any scale of the kernel, by moving mass between pairs of rows.
//
//     min over alpha >= 0 of  alpha' Kt alpha,     Kt_ij = y_i y_j K_ij
//
// where the multipliers of each group of rows have a fixed sum: all rows 1 (no bias: the rho-SVM),
// or each class 1/2 (with bias: the nearest points of the two hulls). With g = Kt alpha, the
// objective is rho_bar = alpha'g = ||w||^2; at the optimum, rho* is also the margin of w.
//
// The scale of alpha is free while the solver runs; dividing by the sums gives the problem above.
// Steps are taken on the scale where alpha'g = sum alpha, so that the margin is 1 as in the usual
// form,
//
//     min over alpha >= 0 of  alpha' Kt alpha / 2 - sum alpha,     with bias: y'alpha = 0.
//
// With u = 1 without bias and u = y with bias, they are (numbered as in solvers/hard_margin.py):
//
// 1. Choose the row i of least u (g - 1) among those whose multiplier may move along u, and the row
//    j that gains most together with it: difference^2 / (K_ii + K_jj - 2 u_i u_j y_i y_j K_ij)
//    (second-order working set selection: Fan, Chen & Lin, JMLR 2005).
// 2. Change alpha_i by u_i t and alpha_j by -u_j t. Without bias, mass moves from j to i. With
//    bias, it moves within a class, or multipliers of opposite labels grow or fall together. (Moves
//    within the classes alone would zigzag between close rows of opposite labels. Without bias,
//    every other step therefore uses u = y too.)
// 3. Add both columns to g.
// 4. Stop when rho_bar vanishes, or when in every group
//
//        max over alpha > 0 of g  -  min g  <=  tol * (the mean of g, weighted by alpha).
//
// Certificate: rho* >= max(0, mean over groups of min g)^2 / rho_bar, for any alpha.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hardmargin/block_values.hpp"
#include "hardmargin/control.hpp"

namespace hardmargin {

enum class HardMarginStop { converged, rho_zero, max_stages, max_time };

struct HardMarginOptions {
    bool bias = true;
    double tol = 1e-3;
    std::size_t max_stages = 0;                       // steps
    std::size_t memory_bytes = std::size_t{1} << 30;  // for columns
    const double* diagonal = nullptr;                 // K_ii by original row; null: all 1
};

struct HardMarginResult {
    std::vector<std::int32_t> support;  // original rows with alpha > 0, ascending
    std::vector<double> multipliers;    // their alpha
    double intercept = 0;               // on the scale of alpha; 0 without bias
    double rho = 0;                     // rho_bar
    double rho_lower_bound = 0;         // rho* lies between this and rho_bar
    double violation = 0;               // the largest difference of step 4, relative to the mean
    std::size_t n_stages = 0;
    std::uint64_t n_values = 0;  // kernel values evaluated
    HardMarginStop reason = HardMarginStop::converged;
};

// Throws std::invalid_argument if a side has no rows or a kernel value is not finite.
template <class T>
HardMarginResult hard_margin_fit(const std::vector<Part<T>>& parts, BlockValues<T>& values,
                                 const HardMarginOptions& options, Clock::time_point deadline,
                                 Meter& meter);

}  // namespace hardmargin
