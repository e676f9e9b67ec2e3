// The C-SVM with bias, by steps on two multipliers at a time.
//
//     min over 0 <= alpha_i <= C w_i, y'alpha = 0 of  alpha' Kt alpha / 2 - sum alpha,
//     Kt_ij = y_i y_j K_ij
//
// With f = K (alpha * y) and the errors e = y - f, they are (numbered as in
// solvers/soft_margin.py):
//
// 1. Choose the row i of largest e among those whose alpha * y may grow, and the row j that gains
//    most together with it, (e_i - e_j)^2 / (K_ii + K_jj - 2 K_ij), among those whose alpha * y may
//    fall (second-order working set selection: Fan, Chen & Lin, JMLR 2005).
// 2. Let alpha * y grow at i and fall at j by as much, to the minimum or until one is at a bound.
// 3. Add both columns to f.
// 4. Stop when the largest e that may grow exceeds the least that may fall by at most tol, or by no
//    more than rounding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hardmargin/control.hpp"
#include "hardmargin/packed_classes.hpp"

namespace hardmargin {

enum class SoftMarginStop { converged, max_stages, max_time };

struct SoftMarginProblem : MachineProblem {
    double C = 1;
    double tol = 1e-3;
    std::size_t max_stages = 0;                       // steps of each machine
    std::size_t memory_bytes = std::size_t{1} << 30;  // for packed rows and cached columns
    const double* weights = nullptr;                  // w by original row; null: all 1
    const double* diagonal = nullptr;                 // K_ii by original row; null: all 1
};

struct SoftMarginResult {
    std::vector<std::int32_t> support;  // original rows with alpha > 0, ascending
    std::vector<double> multipliers;    // their alpha
    double intercept = 0;
    double violation = 0;  // the difference of step 4
    std::size_t n_stages = 0;
    std::uint64_t n_values = 0;  // kernel values evaluated
    SoftMarginStop reason = SoftMarginStop::converged;
};

// Throws std::invalid_argument if a side has no rows or a kernel value is not finite.
template <class T>
std::vector<SoftMarginResult> soft_margin_machines(const SoftMarginProblem& problem,
                                                   Control& control);

}  // namespace hardmargin
