// The greedy stagewise SVM (Bo, Wang & Jiao, IEEE TNN 2008), with and without revisits.
//
//     min over a >= 0 of  L(a) = a' Kt a / 2 - sum a,     Kt_ij = y_i y_j K_ij
//
// by changing one multiplier per stage. With the gradient g = Kt a - 1 (TNN-08's steps, numbered as
// in solvers/greedy.py):
//
// 1. Choose the row b whose step lowers L most.
// 2. Change a_b by -g_b / K_bb.
// 3. Add its column to g.
// 4. Stop when no row is left with g < 0.
//
// In the paper each row is visited at most once; stopping there is what regularises.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hardmargin/aligned.hpp"
#include "hardmargin/block_values.hpp"
#include "hardmargin/control.hpp"
#include "hardmargin/state.hpp"

namespace hardmargin {

// When the column of a stage is added to the gradients: at once, or only where the next choice
// could depend on it.
enum class Schedule { eager, lazy, automatic };

enum class StopReason { converged, exhausted, max_stages, max_time };

struct GreedyOptions {
    double max_visits = 1;  // 1: the paper's algorithm, multipliers never shrink
    double step_tol = 0;    // stop when no step changes its own gradient by more
    std::size_t max_stages = 0;
    Schedule schedule = Schedule::automatic;
    std::size_t memory_bytes = std::size_t{1} << 30;  // for columns cached or put off
    double constant_diagonal = 1;                     // used when `diagonal` is null
    const double* diagonal = nullptr;                 // K_ii by original row
    const double* weights = nullptr;                  // visits allowed, by original row
    const std::int32_t* next_copy = nullptr;          // by original row: the next equal row, or -1
};

struct GreedyResult {
    std::vector<std::int32_t> rows;     // original row of each stage
    std::vector<double> steps;          // change of its multiplier
    std::vector<double> losses;         // L after the stage
    std::vector<std::int32_t> support;  // the rows, in order of their first stage
    std::vector<double> multipliers;    // of the support, at the end
    double squared_norm = 0;            // ||w||^2
    double violation = 0;               // the largest step still open
    std::uint64_t n_values = 0;         // kernel values evaluated
    StopReason reason = StopReason::converged;
    bool lazy = false;  // whether columns were still put off at the end
    bool bits = false;  // whether two-valued columns were packed
};

template <class T>
GreedyResult greedy_fit(const std::vector<Part<T>>& parts, BlockValues<T>& values,
                        const GreedyOptions& options, const Resumption& resumption,
                        Clock::time_point deadline, Meter& meter);

}  // namespace hardmargin
