// The soft-margin engine: its optimality conditions, checked with all kernel values, and its
// limits.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "greedy_cases.hpp"
#include "hardmargin/soft_margin.hpp"

using namespace hardmargin;
using namespace hardmargin::test;

namespace {

SoftMarginProblem soft_margin_problem(const KernelSpec& kernel, const Data& data) {
    SoftMarginProblem problem;
    problem.kernel = kernel;
    problem.matrix = data.matrix();
    problem.classes = data.classes.data();
    problem.n_classes = 2;
    problem.machines = {{{0}, {1}}};
    problem.max_stages = 1'000'000;
    problem.tol = 1e-8;
    return problem;
}

template <class T = double>
SoftMarginResult solve(const SoftMarginProblem& problem) {
    Control control;
    return soft_margin_machines<T>(problem, control).at(0);
}

// Multipliers within their bounds that add up to zero, and margins that suit them up to `tol`.
void check_optimal(const SoftMarginResult& result, const SoftMarginProblem& problem,
                   const Data& data, double tol) {
    CHECK(result.reason == SoftMarginStop::converged);
    CHECK(std::is_sorted(result.support.begin(), result.support.end()));
    std::vector<double> alpha(data.n, 0.0);
    double sum = 0;
    for (std::size_t s = 0; s < result.support.size(); ++s) {
        const auto row = static_cast<std::size_t>(result.support[s]);
        alpha[row] = result.multipliers[s];
        sum += data.classes[row] ? alpha[row] : -alpha[row];
    }
    CHECK_CLOSE(sum, 0.0, 1e-9);
    for (std::size_t i = 0; i < data.n; ++i) {
        double f = result.intercept;
        for (std::size_t j = 0; j < data.n; ++j)
            if (alpha[j] > 0)
                f += (data.classes[j] ? alpha[j] : -alpha[j]) *
                     kernel_value(problem.kernel, data.row(i), data.row(j), data.d);
        const double margin = data.classes[i] ? f : -f;
        const double upper = problem.C * (problem.weights ? problem.weights[i] : 1.0);
        CHECK(alpha[i] >= 0 && alpha[i] <= upper);
        if (alpha[i] < upper) CHECK(margin >= 1 - tol);
        if (alpha[i] > 0) CHECK(margin <= 1 + tol);
    }
}

void test_every_memory_and_block_gives_an_optimum() {
    const Data data(170, 12, 8, 2, 1);
    std::vector<double> weights;
    for (std::size_t i = 0; i < data.n; ++i) weights.push_back(0.5 + static_cast<double>(i % 3));
    for (const KernelSpec& kernel : {rbf, laplacian})
        for (const double C : {0.1, 1.0, 20.0})
            for (const std::size_t memory : {std::size_t{40'000}, std::size_t{1} << 30}) {
                SoftMarginProblem problem = soft_margin_problem(kernel, data);
                problem.C = C;
                problem.memory_bytes = memory;
                check_optimal(solve(problem), problem, data, 1e-6);
                problem.block_rows = 40;
                problem.weights = weights.data();
                check_optimal(solve(problem), problem, data, 1e-6);
                problem.tol = 1e-4;
                check_optimal(solve<float>(problem), problem, data, 1e-3);
            }
}

void test_limits_leave_feasible_multipliers() {
    const Data data(170, 4, 0, 2, 2);
    SoftMarginProblem problem = soft_margin_problem(rbf, data);
    problem.max_stages = 5;
    SoftMarginResult result = solve(problem);
    CHECK(result.reason == SoftMarginStop::max_stages);
    CHECK(result.n_stages == 5);
    problem.max_stages = 1'000'000'000;
    problem.max_seconds = 0;
    problem.C = 1e6;
    problem.tol = 0;
    result = solve(problem);
    CHECK(result.reason == SoftMarginStop::max_time);
    double sum = 0;
    for (std::size_t s = 0; s < result.support.size(); ++s)
        sum += data.classes[static_cast<std::size_t>(result.support[s])] ? result.multipliers[s]
                                                                         : -result.multipliers[s];
    CHECK_CLOSE(sum, 0.0, 1e-3);
}

void test_what_cannot_be_trained_is_refused() {
    Data data(40, 3, 0, 2, 3);
    SoftMarginProblem problem = soft_margin_problem(rbf, data);
    std::vector<double> matrix(data.n * data.n, 0.5);
    for (std::size_t i = 0; i < data.n; ++i) matrix[i * data.n + i] = 1;
    matrix[1] = matrix[data.n] = std::numeric_limits<double>::quiet_NaN();
    problem.source = Source::precomputed;
    problem.matrix.data = matrix.data();
    problem.matrix.n_cols = data.n;
    problem.matrix.row_stride = static_cast<std::ptrdiff_t>(data.n);
    CHECK_THROWS(std::invalid_argument, solve(problem));
    problem = soft_margin_problem(rbf, data);
    std::fill(data.classes.begin(), data.classes.end(), 0);
    CHECK_THROWS(std::invalid_argument, solve(problem));
}

}  // namespace

int main() {
    test_every_memory_and_block_gives_an_optimum();
    test_limits_leave_feasible_multipliers();
    test_what_cannot_be_trained_is_refused();
}
