#include "hardmargin/hard_margin_machines.hpp"

#include "hardmargin/machine_loop.hpp"

namespace hardmargin {
namespace {

// Memory per row of a machine, not counting columns.
constexpr std::size_t state_bytes = 80;

}  // namespace

template <class T>
std::vector<HardMarginResult> hard_margin_machines(const HardMarginProblem& problem,
                                                   Control& control) {
    return train_in_order<T>(problem, problem.options.memory_bytes, state_bytes, control,
                             [&](const std::vector<Part<T>>& parts, BlockValues<T>& values,
                                 std::size_t memory, Clock::time_point deadline, Meter& meter) {
                                 HardMarginOptions options = problem.options;
                                 options.memory_bytes = memory;
                                 return hard_margin_fit<T>(parts, values, options, deadline, meter);
                             });
}

template std::vector<HardMarginResult> hard_margin_machines<float>(const HardMarginProblem&,
                                                                   Control&);
template std::vector<HardMarginResult> hard_margin_machines<double>(const HardMarginProblem&,
                                                                    Control&);

}  // namespace hardmargin
