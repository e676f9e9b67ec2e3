#include "hardmargin/hard_margin_machines.hpp"

namespace hardmargin {
namespace {

// Memory per row of a machine, not counting columns.
constexpr std::size_t state_bytes = 80;

}  // namespace

template <class T>
std::vector<HardMarginResult> hard_margin_machines(const HardMarginProblem& problem,
                                                   Control& control) {
    TimeShare time(problem.max_seconds, problem.machines.size(), problem.n_threads);
    PackedClasses<T> classes(problem);
    HardMarginOptions options = problem.options;
    options.memory_bytes = classes.memory_left(options.memory_bytes, state_bytes);
    classes.pack(BlockOrder::natural, nullptr, control);
    std::vector<HardMarginResult> results(problem.machines.size());
    parallel_for(results.size(), problem.n_threads, control, [&](std::size_t m, Meter& meter) {
        const auto parts = classes.parts(problem.machines[m]);
        const auto values = classes.values(parts, false);
        results[m] = hard_margin_fit<T>(parts, *values, options, time.next(), meter);
        control.machine_done();
    });
    return results;
}

template std::vector<HardMarginResult> hard_margin_machines<float>(const HardMarginProblem&,
                                                                   Control&);
template std::vector<HardMarginResult> hard_margin_machines<double>(const HardMarginProblem&,
                                                                    Control&);

}  // namespace hardmargin
