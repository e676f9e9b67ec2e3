// The hard-margin engine: its optimality conditions, checked with all kernel values, from every
// source of values and with any memory.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <thread>
#include <vector>

#include "greedy_cases.hpp"
#include "hardmargin/column_cache.hpp"
#include "hardmargin/hard_margin_machines.hpp"

using namespace hardmargin;
using namespace hardmargin::test;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

HardMarginProblem hard_margin_problem(const KernelSpec& kernel, const Data& data) {
    HardMarginProblem problem;
    problem.kernel = kernel;
    problem.matrix = data.matrix();
    problem.classes = data.classes.data();
    problem.n_classes = 2;
    problem.machines = {{{0}, {1}}};
    problem.options.max_stages = 1'000'000;
    problem.options.tol = 1e-8;
    return problem;
}

template <class T = double>
HardMarginResult solve_hard_margin(const HardMarginProblem& problem) {
    Control control;
    return hard_margin_machines<T>(problem, control).at(0);
}

// The result must agree with its own multipliers, and be optimal up to `tol`.
void check_optimal(const HardMarginResult& result, const KernelSpec& kernel, const Data& data,
                   const std::vector<double>& label, bool bias, double tol,
                   double rounding = 1e-9) {
    CHECK(result.reason == HardMarginStop::converged);
    CHECK(std::is_sorted(result.support.begin(), result.support.end()));
    std::vector<double> alpha(data.n, 0.0), mass(2, 0.0);
    for (std::size_t s = 0; s < result.support.size(); ++s) {
        const auto row = static_cast<std::size_t>(result.support[s]);
        CHECK(label[row] != 0);
        CHECK(result.multipliers[s] > 0);
        alpha[row] = result.multipliers[s];
        mass[label[row] > 0] += alpha[row];
    }
    CHECK_CLOSE(mass[0] + mass[1], 1.0, 1e-13);
    if (bias) CHECK_CLOSE(mass[0], 0.5, 1e-13);

    double rho = 0, least[2] = {infinity, infinity}, most[2] = {-infinity, -infinity};
    for (std::size_t i = 0; i < data.n; ++i) {
        if (label[i] == 0) continue;
        double g = 0;
        for (std::size_t j = 0; j < data.n; ++j)
            if (alpha[j] > 0)
                g += alpha[j] * label[i] * label[j] *
                     kernel_value(kernel, data.row(i), data.row(j), data.d);
        const bool side = label[i] > 0;
        rho += alpha[i] * g;
        least[side] = std::min(least[side], g);
        if (alpha[i] > 0) most[side] = std::max(most[side], g);
    }
    CHECK_CLOSE(result.intercept, bias ? (least[0] - least[1]) / 2 : 0.0, rounding);
    if (!bias) {
        least[0] = least[1] = std::min(least[0], least[1]);
        most[0] = most[1] = std::max(most[0], most[1]);
    }
    const double margin = (least[0] + least[1]) / 2;
    CHECK_CLOSE(result.rho, rho, rounding);
    CHECK_CLOSE(result.rho_lower_bound, margin * margin / rho, rounding);
    for (const int side : {0, 1}) CHECK(most[side] - least[side] <= tol * rho + rounding);
    CHECK(result.violation <= tol);
}

void test_columns_unused_for_longest_leave() {
    ColumnCache<double> cache;
    cache.reset(10, 3, 5 * 3 * sizeof(double));
    for (std::size_t key = 0; key < 5; ++key) cache.add(key)[2] = static_cast<double>(key);
    CHECK(cache.find(0)[2] == 0);
    cache.add(7);
    CHECK(cache.find(1) == nullptr);
    for (const std::size_t key : {0, 2, 3, 4})
        CHECK(cache.find(key)[2] == static_cast<double>(key));
    cache.reset(4, 6, 0);
    for (std::size_t key = 0; key < 4; ++key) {
        CHECK(cache.find(key) == nullptr);
        cache.add(key)[5] = 1;
    }
    for (std::size_t key = 0; key < 4; ++key) CHECK(cache.find(key) != nullptr);
}

void test_every_memory_and_block_gives_an_optimum() {
    const Data narrow(170, 12, 8, 2, 1), wide(170, 100, 20, 2, 1);
    const KernelSpec broad{KernelKind::rbf, 0.005, 0, 3};  // from products and norms
    for (const KernelSpec& kernel : {rbf, laplacian, broad})
        for (const bool bias : {true, false}) {
            const Data& data = kernel.gamma == broad.gamma ? wide : narrow;
            HardMarginProblem problem = hard_margin_problem(kernel, data);
            problem.options.bias = bias;
            const HardMarginResult whole = solve_hard_margin(problem);
            check_optimal(whole, kernel, data, labels(data, 0, 1), bias, 1e-8);
            const std::size_t least = 35'000 + data.n * 8 * (data.d - narrow.d);
            for (const std::size_t block_rows : {16, 40, 512})
                for (const std::size_t memory : {least, std::size_t{1} << 30}) {
                    problem.block_rows = block_rows;
                    problem.options.memory_bytes = memory;
                    const HardMarginResult result = solve_hard_margin(problem);
                    check_optimal(result, kernel, data, labels(data, 0, 1), bias, 1e-8);
                    CHECK_CLOSE(result.rho, whole.rho, 1e-8);
                    CHECK(result.support == whole.support);
                }
        }
}

void test_many_rows_of_which_few_matter() {
    Data data(1500, 3, 0, 2, 2);
    for (std::size_t i = 0; i < data.n; ++i)
        data.x[i * data.d] += data.classes[i] ? 6.0 : -6.0;  // far apart
    for (const bool bias : {true, false}) {
        HardMarginProblem problem = hard_margin_problem({KernelKind::linear, 1, 0, 3}, data);
        const auto diagonal = data.diagonal(problem.kernel);
        problem.options.diagonal = diagonal.data();
        problem.options.bias = bias;
        const HardMarginResult result = solve_hard_margin(problem);
        check_optimal(result, problem.kernel, data, labels(data, 0, 1), bias, 1e-8);
        CHECK(result.support.size() < 20);
        CHECK(result.n_values < data.n * data.n / 4);
    }
}

void test_other_sources_give_an_optimum() {
    const Data data(90, 4, 0, 2, 3);
    std::vector<double> matrix;
    for (std::size_t i = 0; i < data.n; ++i)
        for (std::size_t j = 0; j < data.n; ++j)
            matrix.push_back(kernel_value(rbf, data.row(i), data.row(j), data.d));
    const std::vector<double> diagonal(data.n, 1.0);
    HardMarginProblem problem = hard_margin_problem(rbf, data);
    problem.options.diagonal = diagonal.data();
    problem.source = Source::function;
    problem.column = [&](std::int32_t id, double* out) {
        std::copy_n(matrix.data() + static_cast<std::size_t>(id) * data.n, data.n, out);
    };
    check_optimal(solve_hard_margin(problem), rbf, data, labels(data, 0, 1), true, 1e-8);
    problem.source = Source::precomputed;
    problem.matrix.data = matrix.data();
    problem.matrix.n_cols = data.n;
    problem.matrix.row_stride = static_cast<std::ptrdiff_t>(data.n);
    check_optimal(solve_hard_margin(problem), rbf, data, labels(data, 0, 1), true, 1e-8);

    matrix[5 * data.n + 7] = matrix[7 * data.n + 5] = std::nan("");
    CHECK_THROWS(std::invalid_argument, solve_hard_margin(problem));
}

void test_single_precision() {
    const Data data(300, 12, 8, 2, 8);
    for (const bool bias : {true, false}) {
        HardMarginProblem problem = hard_margin_problem(rbf, data);
        problem.options.bias = bias;
        problem.options.tol = 1e-3;
        check_optimal(solve_hard_margin<float>(problem), rbf, data, labels(data, 0, 1), bias, 1e-3,
                      1e-5);
    }
}

void test_machines_share_classes() {
    Data data(150, 8, 6, 3, 7);
    data.classes[5] = data.classes[6] = -1;
    HardMarginProblem problem = hard_margin_problem(rbf, data);
    problem.n_classes = 3;
    problem.machines = {{{0}, {1}}, {{0}, {2}}, {{1}, {2}}, {{0, 1}, {2}}};
    std::vector<double> rest = labels(data, 0, 2);
    for (std::size_t i = 0; i < data.n; ++i)
        if (data.classes[i] == 1) rest[i] = -1;
    for (const int n_threads : {1, 2}) {
        problem.n_threads = n_threads;
        Control control;
        const auto results = hard_margin_machines<double>(problem, control);
        CHECK(control.progress().machines_done == 4);
        check_optimal(results[0], rbf, data, labels(data, 0, 1), true, 1e-8);
        check_optimal(results[1], rbf, data, labels(data, 0, 2), true, 1e-8);
        check_optimal(results[2], rbf, data, labels(data, 1, 2), true, 1e-8);
        check_optimal(results[3], rbf, data, rest, true, 1e-8);
    }
    problem.n_classes = 4;
    problem.machines = {{{0}, {3}}};  // class 3 has no rows
    CHECK_THROWS(std::invalid_argument, solve_hard_margin(problem));
}

void test_one_spot_with_both_labels_has_no_margin() {
    Data data(100, 4, 0, 2, 9);
    std::copy_n(data.row(0), data.d, data.x.begin() + static_cast<std::ptrdiff_t>(61 * data.d));
    for (const bool bias : {true, false}) {
        HardMarginProblem problem = hard_margin_problem(rbf, data);
        problem.options.bias = bias;
        const HardMarginResult result = solve_hard_margin(problem);
        CHECK(result.reason == HardMarginStop::rho_zero);
        CHECK(result.rho <= 1e-10);
        CHECK(result.rho_lower_bound == 0);
    }
}

void test_equal_rows_end() {
    Data data(64, 3, 0, 2, 17);
    for (std::size_t i = 0; i < data.n; ++i)
        for (std::size_t k = 0; k < data.d; ++k) data.x[i * data.d + k] = data.classes[i];
    check_optimal(solve_hard_margin(hard_margin_problem(rbf, data)), rbf, data, labels(data, 0, 1),
                  true, 1e-8);
    data.x.assign(data.x.size(), 2.5);
    CHECK(solve_hard_margin(hard_margin_problem(rbf, data)).reason == HardMarginStop::rho_zero);
}

void test_limits_end_early() {
    const Data data(3000, 20, 0, 2, 11);
    HardMarginProblem problem = hard_margin_problem({KernelKind::rbf, 0.05, 0, 3}, data);
    problem.options.max_stages = 7;
    const HardMarginResult cut = solve_hard_margin(problem);
    CHECK(cut.reason == HardMarginStop::max_stages);
    CHECK(cut.n_stages == 7);
    CHECK(cut.rho_lower_bound < cut.rho);
    problem.options.max_stages = 1'000'000;
    problem.max_seconds = 1e-6;
    CHECK(solve_hard_margin(problem).reason == HardMarginStop::max_time);
    problem.options.memory_bytes = 1000;
    CHECK_THROWS(std::invalid_argument, solve_hard_margin(problem));
}

void test_caller_can_stop_or_interrupt() {
    const Data data(3000, 20, 0, 2, 12);
    HardMarginProblem problem = hard_margin_problem({KernelKind::rbf, 0.05, 0, 3}, data);
    problem.options.tol = 1e-12;
    for (const int n_threads : {1, 2}) {
        problem.n_threads = n_threads;
        problem.machines.assign(3, {{0}, {1}});
        const auto go_on = [](const Progress& progress) {
            std::this_thread::sleep_for(std::chrono::milliseconds(60));  // until the next poll
            return progress.stage < 10;
        };
        Control stopping(go_on);
        for (const HardMarginResult& result : hard_margin_machines<double>(problem, stopping))
            CHECK(result.reason == HardMarginStop::max_time && !result.support.empty());
        Control interrupting([&](const Progress& progress) {
            if (!go_on(progress)) throw std::domain_error("Ctrl-C");
            return true;
        });
        CHECK_THROWS(std::domain_error, hard_margin_machines<double>(problem, interrupting));
    }
}

}  // namespace

int main() {
    test_columns_unused_for_longest_leave();
    test_every_memory_and_block_gives_an_optimum();
    test_many_rows_of_which_few_matter();
    test_other_sources_give_an_optimum();
    test_single_precision();
    test_machines_share_classes();
    test_one_spot_with_both_labels_has_no_margin();
    test_equal_rows_end();
    test_limits_end_early();
    test_caller_can_stop_or_interrupt();
}
