// Trains the two-class machines of one fit on threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "hardmargin/control.hpp"
#include "hardmargin/packed_classes.hpp"

namespace hardmargin {

// Shares the remaining time evenly among the machines still to run, several at once.
class TimeShare {
  public:
    TimeShare(double max_seconds, std::size_t n_machines, int n_threads)
        : end_(after(max_seconds)), left_(n_machines),
          n_threads_(static_cast<std::size_t>(n_threads > 1 ? n_threads : 1)) {}

    // The deadline of the next machine, which starts now.
    Clock::time_point next() {
        if (end_ == Clock::time_point::max()) return end_;
        const auto now = Clock::now();
        const std::size_t rounds = (left_-- + n_threads_ - 1) / n_threads_;
        return now + (end_ - now) / static_cast<std::ptrdiff_t>(rounds);
    }

  private:
    const Clock::time_point end_;
    std::atomic<std::size_t> left_;
    const std::size_t n_threads_;
};

// Each machine has its share of the time that is left, counted from when the loop is made.
class MachineLoop {
  public:
    MachineLoop(std::size_t n_machines, double max_seconds, int n_threads, Control& control)
        : n_machines_(n_machines), n_threads_(n_threads), control_(control),
          time_(max_seconds, n_machines, n_threads) {}
    MachineLoop(const MachineProblem& problem, Control& control)
        : MachineLoop(problem.machines.size(), problem.max_seconds, problem.n_threads, control) {}

    // The results of train(machine, deadline, meter), by machine.
    template <class Train>
    auto run(Train&& train) {
        using Result = std::invoke_result_t<Train&, std::size_t, Clock::time_point, Meter&>;
        std::vector<Result> results(n_machines_);
        parallel_for(n_machines_, n_threads_, control_, [&](std::size_t m, Meter& meter) {
            results[m] = train(m, time_.next(), meter);
            control_.machine_done();
        });
        return results;
    }

  private:
    const std::size_t n_machines_;
    const int n_threads_;
    Control& control_;
    TimeShare time_;
};

// The same where classes are packed with their rows in order, and `state_bytes` are needed per row
// of a machine: the results of train(parts, values, memory left, deadline, meter).
template <class T, class Train>
auto train_in_order(const MachineProblem& problem, std::size_t memory_bytes,
                    std::size_t state_bytes, Control& control, Train&& train) {
    MachineLoop loop(problem, control);
    PackedClasses<T> classes(problem);
    const std::size_t memory = classes.memory_left(memory_bytes, state_bytes);
    classes.pack(BlockOrder::natural, nullptr, control);
    return loop.run([&](std::size_t m, Clock::time_point deadline, Meter& meter) {
        const auto parts = classes.parts(problem.machines[m]);
        const auto values = classes.values(parts, false);
        return train(parts, *values, memory, deadline, meter);
    });
}

}  // namespace hardmargin
