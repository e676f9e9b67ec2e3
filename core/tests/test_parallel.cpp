// Tasks over threads: each runs once, and failures and interruptions reach all of them.
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "hardmargin/control.hpp"

using namespace hardmargin;

namespace {

constexpr std::size_t much_work = std::size_t{1} << 30;  // enough for a meter to check the control

void test_every_task_runs_once(int n_threads) {
    for (const std::size_t n : {0, 1, 2, 7, 1000}) {
        Control control;
        std::vector<std::atomic<int>> runs(n);
        parallel_for(n, n_threads, control, [&](std::size_t i, Meter&) { ++runs[i]; });
        for (const auto& count : runs) CHECK(count == 1);
    }
}

void test_first_exception_is_thrown_and_stops_the_others(int n_threads) {
    Control control;
    std::atomic<int> n_started{0};
    const auto task = [&](std::size_t i, Meter& meter) {
        ++n_started;
        if (i == 3) throw std::domain_error("task 3");
        for (int k = 0; k < 100 && i > 3; ++k) meter.tick(much_work);
    };
    CHECK_THROWS(std::domain_error, parallel_for(100'000, n_threads, control, task));
    CHECK(n_started < 100'000);
}

void test_caller_can_stop(int n_threads) {
    Control control([](const Progress&) { return false; });
    std::atomic<int> n_ended{0};
    parallel_for(5, n_threads, control, [&](std::size_t, Meter& meter) {
        while (!meter.is_over(Clock::time_point::max())) meter.tick(much_work);
        ++n_ended;
    });
    CHECK(n_ended == 5);
}

void test_exception_of_the_poll_is_thrown(int n_threads) {
    Control control([](const Progress&) -> bool { throw std::domain_error("Ctrl-C"); });
    const auto endless = [](std::size_t, Meter& meter) {
        while (true) meter.tick(much_work);
    };
    CHECK_THROWS(std::domain_error, parallel_for(5, n_threads, control, endless));
}

void test_cancelled_work_does_not_pass_for_done(int n_threads) {
    Control control;
    control.cancel();
    CHECK_THROWS(Interrupted, parallel_for(5, n_threads, control, [](std::size_t, Meter&) {}));
}

void test_work_cancelled_from_within_does_not_pass_for_done(int n_threads) {
    Control control;
    const auto task = [&](std::size_t i, Meter&) {
        if (i == 2) control.cancel();
    };
    CHECK_THROWS(Interrupted, parallel_for(1000, n_threads, control, task));
}

void test_progress_reaches_the_poll(int n_threads) {
    std::atomic<bool> seen{false};
    Control control([&](const Progress& progress) {
        if (progress.machines_done == 1 && progress.stage == 7 && progress.violation == 0.5)
            seen = true;
        return true;
    });
    control.machine_done();
    control.report(7, 0.5);
    const auto until_seen = [&](std::size_t, Meter& meter) {
        while (!seen) meter.tick(much_work);
    };
    parallel_for(2, n_threads, control, until_seen);
    CHECK(seen);
}

void test_polls_keep_their_distance() {
    int n_polls = 0;
    Control control([&](const Progress&) {
        ++n_polls;
        return true;
    });
    const auto begin = Clock::now();
    for (int i = 0; i < 100'000; ++i) control.check(true);
    const std::chrono::duration<double> seconds = Clock::now() - begin;
    CHECK(n_polls >= 1);
    CHECK(n_polls <= 1 + seconds.count() / 0.05);
}

void test_other_threads_do_not_poll() {
    Control control([](const Progress&) -> bool { throw std::domain_error("polled"); });
    control.check(false);
    CHECK_THROWS(std::domain_error, control.check(true));
}

void test_meter_asks_only_after_enough_work() {
    Control control;
    Meter meter(control, true);
    CHECK(!meter.tick(1));
    CHECK(meter.tick(much_work));
    CHECK(!meter.tick(1));
}

}  // namespace

int main() {
    for (const int n_threads : {-1, 0, 1, 2, 5}) {
        test_every_task_runs_once(n_threads);
        test_first_exception_is_thrown_and_stops_the_others(n_threads);
        test_caller_can_stop(n_threads);
        test_exception_of_the_poll_is_thrown(n_threads);
        test_progress_reaches_the_poll(n_threads);
    }
    test_polls_keep_their_distance();
    test_other_threads_do_not_poll();
    test_meter_asks_only_after_enough_work();
    for (const int n_threads : {1, 2}) {
        test_cancelled_work_does_not_pass_for_done(n_threads);
        test_work_cancelled_from_within_does_not_pass_for_done(n_threads);
    }
}
