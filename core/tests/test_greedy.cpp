// The greedy engine against a plain loop over all rows: the same rows in the same order, by every
// schedule and from every source of kernel values.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "greedy_cases.hpp"

using namespace hardmargin;
using namespace hardmargin::test;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

void test_every_path_takes_the_naive_order() {
    const Data data(170, 12, 8, 2, 1);
    for (const KernelSpec& kernel : {rbf, laplacian})
        for (const double max_visits : {1.0, 4.0}) {
            const double step_tol = max_visits > 1 ? 0.02 : 0.0;
            const auto expected =
                naive_greedy(kernel, data, labels(data, 0, 1), max_visits, step_tol);
            CHECK(expected.rows.size() > 30);
            GreedyProblem problem = problem_of(kernel, data);
            problem.options.max_visits = max_visits;
            problem.options.step_tol = step_tol;
            for (const Schedule schedule : {Schedule::eager, Schedule::lazy})
                for (const bool bits : {true, false})
                    for (const std::size_t block_rows : {16, 40, 256})
                        // little memory: hardly any columns cached, few put off
                        for (const std::size_t memory :
                             {std::size_t{100'000}, std::size_t{1} << 30}) {
                            problem.options.schedule = schedule;
                            problem.use_bits = problem.need_bits = bits;
                            problem.block_rows = block_rows;
                            problem.options.memory_bytes = memory;
                            const GreedyResult actual = solve(problem);
                            check_same(actual, expected);
                            CHECK(actual.reason == StopReason::converged);
                            CHECK(actual.lazy == (schedule == Schedule::lazy));
                            CHECK(actual.violation <= step_tol);
                        }
        }
}

// Values come from products and norms, and rows are dropped from blocks with their norms.
void test_wide_dense_rows_take_the_naive_order() {
    const Data data(150, 110, 30, 2, 18);
    for (const KernelSpec& kernel :
         {KernelSpec{KernelKind::rbf, 0.005, 0, 3}, {KernelKind::matern32, 0.01, 0, 3}})
        for (const double max_visits : {1.0, 4.0}) {
            const double step_tol = max_visits > 1 ? 0.02 : 0.0;
            const auto expected =
                naive_greedy(kernel, data, labels(data, 0, 1), max_visits, step_tol);
            GreedyProblem problem = problem_of(kernel, data);
            problem.options.max_visits = max_visits;
            problem.options.step_tol = step_tol;
            for (const Schedule schedule : {Schedule::eager, Schedule::lazy})
                for (const bool bits : {true, false})
                    for (const std::size_t block_rows : {16, 40, 256}) {
                        problem.options.schedule = schedule;
                        problem.use_bits = problem.need_bits = bits;
                        problem.block_rows = block_rows;
                        check_same(solve(problem), expected);
                    }
        }
}

void test_one_hot_columns_take_the_naive_order() {
    Data data(200, 30, 0, 2, 16);
    for (std::size_t i = 0; i < data.n; ++i)
        for (std::size_t k = 2; k < data.d; ++k)  // two variables; some rows lack the second
            data.x[i * data.d + k] =
                static_cast<double>(k < 12 ? i * 7 % 10 == k - 2 : i * 11 % 19 == k - 12);
    for (const KernelSpec& kernel : {rbf, laplacian}) {
        const auto expected = naive_greedy(kernel, data, labels(data, 0, 1));
        GreedyProblem problem = problem_of(kernel, data);
        for (const Schedule schedule : {Schedule::eager, Schedule::lazy})
            for (const std::size_t block_rows : {16, 256}) {
                problem.options.schedule = schedule;
                problem.block_rows = block_rows;
                check_same(solve(problem), expected);
            }
    }
}

void test_kernels_without_constant_diagonal_take_the_naive_order() {
    const Data data(120, 5, 0, 2, 2);
    const KernelSpec kernels[] = {{KernelKind::linear, 1, 0, 3},
                                  {KernelKind::poly, 0.3, 1, 2},
                                  {KernelKind::sigmoid, 0.2, -0.3, 3}};  // indefinite
    for (const KernelSpec& kernel : kernels)
        for (const double max_visits : {1.0, 3.0}) {
            const double step_tol = max_visits > 1 ? 0.05 : 0.0;
            const std::vector<double> diagonal = data.diagonal(kernel);
            GreedyProblem problem = problem_of(kernel, data);
            problem.options.diagonal = diagonal.data();
            problem.options.max_visits = max_visits;
            problem.options.step_tol = step_tol;
            problem.block_rows = 32;
            check_same(solve(problem),
                       naive_greedy(kernel, data, labels(data, 0, 1), max_visits, step_tol));
        }
}

void test_stored_matrix_and_function_give_what_rows_give() {
    const Data data(90, 4, 0, 2, 3);
    std::vector<double> matrix;
    for (std::size_t i = 0; i < data.n; ++i)
        for (std::size_t j = 0; j < data.n; ++j)
            matrix.push_back(kernel_value(rbf, data.row(i), data.row(j), data.d));
    const std::vector<double> diagonal(data.n, 1.0);
    const auto expected = naive_greedy(rbf, data, labels(data, 0, 1));
    GreedyProblem problem = problem_of(rbf, data);
    problem.options.diagonal = diagonal.data();
    problem.source = Source::function;
    problem.column = [&](std::int32_t id, double* out) {
        std::copy_n(matrix.data() + static_cast<std::size_t>(id) * data.n, data.n, out);
    };
    check_same(solve(problem), expected);
    problem.source = Source::precomputed;
    problem.matrix.data = matrix.data();
    problem.matrix.n_cols = data.n;
    problem.matrix.row_stride = static_cast<std::ptrdiff_t>(data.n);
    check_same(solve(problem), expected);
}

void test_wide_sparse_rows_take_the_naive_order() {
    const std::size_t n_cols = 10'000;
    const Data data(80, 6, 0, 2, 4);
    std::vector<std::int32_t> indices;
    std::vector<std::int64_t> starts{0};
    for (std::size_t i = 0; i < data.n; ++i) {
        for (std::size_t k = 0; k < data.d; ++k)
            indices.push_back(static_cast<std::int32_t>(k * 1600 + 7));
        starts.push_back(static_cast<std::int64_t>(indices.size()));
    }
    for (const KernelSpec& kernel : {rbf, laplacian}) {
        GreedyProblem problem = problem_of(kernel, data);
        problem.matrix.n_cols = n_cols;
        problem.matrix.indices = indices.data();
        problem.matrix.row_starts = starts.data();
        check_same(solve(problem), naive_greedy(kernel, data, labels(data, 0, 1)));
    }
}

void test_whole_weights_stand_for_repeated_rows() {
    Data data(100, 4, 0, 2, 5), repeated = data;
    repeated.x.clear();
    repeated.classes.clear();
    std::vector<double> weights;
    std::vector<std::int32_t> origin;
    for (std::size_t i = 0; i < data.n; ++i) {
        weights.push_back(static_cast<double>(i % 4));
        for (std::size_t copy = 0; copy < i % 4; ++copy) {
            repeated.x.insert(repeated.x.end(), data.row(i), data.row(i) + data.d);
            repeated.classes.push_back(data.classes[i]);
            origin.push_back(static_cast<std::int32_t>(i));
        }
        if (i % 4 == 0) data.classes[i] = -1;  // a weight of zero leaves a row out
    }
    repeated.n = origin.size();
    GreedyResult expected = naive_greedy(rbf, repeated, labels(repeated, 0, 1));
    for (auto& row : expected.rows) row = origin[static_cast<std::size_t>(row)];
    GreedyProblem problem = problem_of(rbf, data);
    problem.options.weights = weights.data();
    for (const Schedule schedule : {Schedule::eager, Schedule::lazy}) {
        problem.options.schedule = schedule;
        problem.block_rows = 16;
        check_same(solve(problem), expected);
    }
}

void test_fractions_of_a_weight_scale_the_last_step() {
    const Data data(100, 4, 0, 2, 6);
    std::vector<double> weights;
    for (std::size_t i = 0; i < data.n; ++i) weights.push_back(0.25 + 0.5 * (i % 4));
    const auto expected = naive_greedy(rbf, data, labels(data, 0, 1), 1, 0, weights);
    GreedyProblem problem = problem_of(rbf, data);
    problem.options.weights = weights.data();
    for (const Schedule schedule : {Schedule::eager, Schedule::lazy}) {
        problem.options.schedule = schedule;
        check_same(solve(problem), expected);
    }
}

void test_machines_share_classes() {
    Data data(150, 8, 6, 3, 7);
    data.classes[5] = data.classes[6] = -1;
    GreedyProblem problem = problem_of(rbf, data);
    problem.n_classes = 3;
    problem.machines = {{{0}, {1}}, {{0}, {2}}, {{1}, {2}}, {{0, 1}, {2}}};
    for (const int n_threads : {1, 2}) {
        problem.n_threads = n_threads;
        Control control;
        const auto fitted = greedy_machines<double>(problem, control);
        for (const GreedyResult& result : fitted) CHECK(result.bits);
        CHECK(control.progress().machines_done == 4);
        check_same(fitted[0], naive_greedy(rbf, data, labels(data, 0, 1)));
        check_same(fitted[1], naive_greedy(rbf, data, labels(data, 0, 2)));
        check_same(fitted[2], naive_greedy(rbf, data, labels(data, 1, 2)));
        std::vector<double> rest = labels(data, 0, 2);
        for (std::size_t i = 0; i < data.n; ++i)
            if (data.classes[i] == 1) rest[i] = -1;
        check_same(fitted[3], naive_greedy(rbf, data, rest));
    }
}

void test_single_precision_reaches_its_certificate() {
    const Data data(300, 12, 8, 2, 8);
    const std::vector<double> label = labels(data, 0, 1);
    for (const Schedule schedule : {Schedule::eager, Schedule::lazy})
        for (const double max_visits : {1.0, 4.0}) {
            GreedyProblem problem = problem_of(rbf, data);
            problem.options.schedule = schedule;
            problem.options.max_visits = max_visits;
            problem.options.step_tol = max_visits > 1 ? 0.02 : 0.0;
            const GreedyResult result = solve<float>(problem);
            CHECK(result.reason == StopReason::converged);
            std::vector<double> alpha(data.n, 0.0), visits(data.n, 0.0);
            for (std::size_t t = 0; t < result.rows.size(); ++t) {
                alpha[static_cast<std::size_t>(result.rows[t])] += result.steps[t];
                visits[static_cast<std::size_t>(result.rows[t])] += 1;
            }
            for (std::size_t i = 0; i < data.n; ++i) {
                double g = -1;
                for (std::size_t j = 0; j < data.n; ++j)
                    g += alpha[j] * label[i] * label[j] *
                         kernel_value(rbf, data.row(i), data.row(j), data.d);
                const double up = visits[i] < max_visits ? infinity : 0.0;
                const double down = max_visits > 1 ? alpha[i] : 0.0;
                CHECK(std::max(std::min(-g, up), std::min(g, down)) <=
                      problem.options.step_tol + 1e-4);
            }
        }
}

void test_schedule_chosen_by_the_data_takes_the_same_order() {
    const Data data(2400, 3, 0, 2, 14);
    for (const double gamma : {0.02, 5.0, 500.0}) {
        GreedyProblem problem = problem_of({KernelKind::rbf, gamma, 0, 3}, data);
        problem.block_rows = 64;
        const GreedyResult eager = solve(problem);
        problem.options.schedule = Schedule::automatic;
        const GreedyResult chosen = solve(problem);
        CHECK(chosen.rows == eager.rows);
        if (gamma > 100) CHECK(chosen.n_values < eager.n_values / 2);
    }
}

void test_equal_rows_give_a_model() {
    Data data(200, 3, 0, 2, 17);
    data.x.assign(data.x.size(), 2.5);
    const auto expected = naive_greedy(rbf, data, labels(data, 0, 1));
    GreedyProblem problem = problem_of(rbf, data);
    problem.block_rows = 16;
    for (const Schedule schedule : {Schedule::eager, Schedule::lazy}) {
        problem.options.schedule = schedule;
        check_same(solve(problem), expected);
    }
}

}  // namespace

int main() {
    test_every_path_takes_the_naive_order();
    test_wide_dense_rows_take_the_naive_order();
    test_one_hot_columns_take_the_naive_order();
    test_kernels_without_constant_diagonal_take_the_naive_order();
    test_stored_matrix_and_function_give_what_rows_give();
    test_wide_sparse_rows_take_the_naive_order();
    test_whole_weights_stand_for_repeated_rows();
    test_fractions_of_a_weight_scale_the_last_step();
    test_machines_share_classes();
    test_single_precision_reaches_its_certificate();
    test_schedule_chosen_by_the_data_takes_the_same_order();
    test_equal_rows_give_a_model();
}
