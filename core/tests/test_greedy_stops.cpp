// How a greedy path ends early, and what its caller learns.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

#include "greedy_cases.hpp"

using namespace hardmargin;
using namespace hardmargin::test;

namespace {

void test_limits_end_the_path_early() {
    const Data data(100, 4, 0, 2, 9);
    GreedyProblem problem = problem_of(rbf, data);
    const GreedyResult whole = solve(problem);
    problem.options.max_stages = 7;
    const GreedyResult cut = solve(problem);
    CHECK(cut.reason == StopReason::max_stages);
    CHECK(cut.rows == std::vector<std::int32_t>(whole.rows.begin(), whole.rows.begin() + 7));
    CHECK(cut.violation > 0);
    problem.options.max_stages = 0;
    CHECK(solve(problem).rows.empty());
    problem.options.max_stages = whole.rows.size();
    CHECK(solve(problem).reason == StopReason::converged);
}

void test_rows_far_apart_are_all_taken() {
    const Data data(60, 4, 0, 2, 10);
    const GreedyResult result = solve(problem_of({KernelKind::rbf, 1e4, 0, 3}, data));
    CHECK(result.reason == StopReason::exhausted);
    CHECK(result.rows.size() == data.n);
}

void test_deadline_leaves_a_prefix_of_the_path() {
    const Data data(3000, 20, 0, 2, 11);
    GreedyProblem problem = problem_of({KernelKind::rbf, 0.05, 0, 3}, data);
    const GreedyResult whole = solve(problem);
    CHECK(whole.rows.size() > 200);
    problem.max_seconds = 1e-6;
    const GreedyResult cut = solve(problem);
    CHECK(cut.reason == StopReason::max_time);
    CHECK(cut.rows.size() < whole.rows.size());
    CHECK(std::equal(cut.rows.begin(), cut.rows.end(), whole.rows.begin()));
}

// Longer than the control waits between two polls.
void sleep_past_a_poll() { std::this_thread::sleep_for(std::chrono::milliseconds(60)); }

void test_caller_can_stop_or_interrupt() {
    const Data data(3000, 20, 0, 2, 12);
    GreedyProblem problem = problem_of({KernelKind::rbf, 0.05, 0, 3}, data);
    for (const Schedule schedule : {Schedule::eager, Schedule::lazy}) {
        problem.options.schedule = schedule;
        Control stopping([](const Progress& progress) {
            sleep_past_a_poll();
            return progress.stage < 10;
        });
        for (const GreedyResult& result : greedy_machines<double>(problem, stopping)) {
            CHECK(result.reason == StopReason::max_time);
            CHECK(result.rows.size() >= 10);
        }
        Control interrupting([](const Progress& progress) {
            sleep_past_a_poll();
            if (progress.stage >= 10) throw std::domain_error("Ctrl-C");
            return true;
        });
        CHECK_THROWS(std::domain_error, greedy_machines<double>(problem, interrupting));
    }
}

void test_caller_can_stop_or_interrupt_other_threads() {
    const Data data(3000, 2, 0, 2, 12);
    const std::vector<double> diagonal(data.n, 1.0);
    GreedyProblem problem = problem_of(rbf, data);
    problem.source = Source::function;
    problem.options.diagonal = diagonal.data();
    problem.column = [&](std::int32_t id, double* out) {
        sleep_past_a_poll();
        std::fill_n(out, data.n, 0.0);
        out[id] = 1;
    };
    problem.machines.assign(4, {{0}, {1}});
    problem.n_threads = 2;
    Control stopping([](const Progress& progress) { return progress.stage < 2; });
    for (const GreedyResult& result : greedy_machines<double>(problem, stopping))
        CHECK(result.reason == StopReason::max_time);
    CHECK(stopping.progress().machines_done == 4);
    Control interrupting([](const Progress& progress) {
        if (progress.stage >= 2) throw std::domain_error("Ctrl-C");
        return true;
    });
    CHECK_THROWS(std::domain_error, greedy_machines<double>(problem, interrupting));
}

void test_exception_of_a_kernel_function_is_thrown() {
    const Data data(50, 4, 0, 2, 13);
    const std::vector<double> diagonal(data.n, 1.0);
    GreedyProblem problem = problem_of(rbf, data);
    problem.source = Source::function;
    problem.options.diagonal = diagonal.data();
    problem.machines.assign(3, {{0}, {1}});
    problem.column = [](std::int32_t, double*) { throw std::domain_error("kernel"); };
    for (const int n_threads : {1, 2}) {
        problem.n_threads = n_threads;
        CHECK_THROWS(std::domain_error, solve(problem));
    }
}

void test_bits_are_refused_where_there_are_none() {
    const Data data(50, 4, 0, 2, 15);
    GreedyProblem problem = problem_of(rbf, data);
    problem.need_bits = true;
    CHECK_THROWS(std::invalid_argument, solve(problem));
}

}  // namespace

int main() {
    test_limits_end_the_path_early();
    test_rows_far_apart_are_all_taken();
    test_deadline_leaves_a_prefix_of_the_path();
    test_caller_can_stop_or_interrupt();
    test_caller_can_stop_or_interrupt_other_threads();
    test_exception_of_a_kernel_function_is_thrown();
    test_bits_are_refused_where_there_are_none();
}
