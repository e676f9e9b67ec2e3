// The hard-margin SVM, free of scale, by moving mass between pairs of rows.
//
//     min over alpha >= 0 of  alpha' Kt alpha,     Kt_ij = y_i y_j K_ij
//
// where the rows of each group have a fixed sum: all rows 1 (no bias: the rho-SVM), or each class
// 1/2 (with bias: the nearest points of the two hulls). With g = Kt alpha, rho_bar = alpha'g is the
// objective, ||w||^2, and at the optimum rho* also the margin of w.
//
// The scale of alpha is free while it runs: dividing by the sums gives the above, and the scale on
// which alpha'g = sum alpha, so that the margin is 1, that of the usual form,
//
//     min over alpha >= 0 of  alpha' Kt alpha / 2 - sum alpha,     with bias: y'alpha = 0.
//
// Steps are taken there, on two rows each: alpha_i += u_i t, alpha_j -= u_j t, where u = 1 without
// bias (mass moves from j to i) and u = y with bias (mass moves within a class, or multipliers of
// opposite labels grow or fall together; between rows of opposite labels close to each other, moves
// within the classes would zigzag; without bias such steps are taken in turn). Row i has the least
// u g - u of those whose multiplier may move along u, row j gains most together with it:
// difference^2 / (K_ii + K_jj - 2 u_i u_j y_i y_j K_ij) (second-order working set selection: Fan,
// Chen & Lin, JMLR 2005). It ends when in every group
//
//     max over alpha > 0 of g  -  min g  <=  tol * (the mean of g, weighted by alpha).
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
    double rho_lower_bound = 0;         // rho* lies between
    double violation = 0;               // the largest such difference over the mean
    std::size_t n_stages = 0;
    std::uint64_t n_values = 0;  // kernel values evaluated
    HardMarginStop reason = HardMarginStop::converged;
};

// Throws std::invalid_argument when a side has no rows or a kernel value is not finite.
template <class T>
HardMarginResult hard_margin_fit(const std::vector<Part<T>>& parts, BlockValues<T>& values,
                                 const HardMarginOptions& options, Clock::time_point deadline,
                                 Meter& meter);

}  // namespace hardmargin
