#include "hardmargin/greedy_machines.hpp"

#include "hardmargin/errors.hpp"
#include "hardmargin/machine_loop.hpp"

namespace hardmargin {
namespace {

// Below this many rows a machine is done before the bounds of lazy blocks could pay off.
constexpr std::size_t fewest_lazy_rows = 2048;

// All that the machines of one problem share.
template <class T>
class Trainer {
  public:
    Trainer(const GreedyProblem& problem, Control& control)
        : classes_(problem), options_(problem.options), in_files_(!problem.folder.empty()) {
        if (problem.need_bits && !classes_.has_bits()) throw NothingToPack();
        plan_memory();
        // Equal rows can share one gradient if each of them may be visited once.
        if (classes_.is_distance() && !options_.weights && options_.max_visits == 1) {
            next_copy_.assign(problem.matrix.n_rows, -1);
            options_.next_copy = next_copy_.data();
        }
        classes_.pack(is_lazy_ ? BlockOrder::kd_tree : BlockOrder::natural,
                      next_copy_.empty() ? nullptr : next_copy_.data(), control);
    }

    GreedyResult train(const MachineSpec& machine, const Resumption& resumption,
                       Clock::time_point deadline, Meter& meter) const {
        const auto parts = classes_.parts(machine);
        const auto values = classes_.values(parts, is_lazy_);
        auto result = greedy_fit<T>(parts, *values, options_, resumption, deadline, meter);
        result.bits = classes_.has_bits();
        return result;
    }

  private:
    // Decides what depends on the size of the problem: whether columns are put off, and how much
    // memory is left for them.
    void plan_memory() {
        const std::size_t states = options_.max_visits > 1 || options_.diagonal ? 52 : 12;
        options_.memory_bytes = classes_.memory_left(options_.memory_bytes, states);

        is_lazy_ = classes_.is_distance() && options_.schedule != Schedule::eager;
        if (options_.schedule == Schedule::automatic) {
            const bool has_room =  // to sort rows
                in_files_ || options_.memory_bytes > classes_.packed_bytes();
            is_lazy_ = is_lazy_ && classes_.largest_machine() >= fewest_lazy_rows && has_room;
            if (!is_lazy_) options_.schedule = Schedule::eager;
        }
    }

    PackedClasses<T> classes_;
    GreedyOptions options_;
    const bool in_files_;
    bool is_lazy_ = false;
    std::vector<std::int32_t> next_copy_;
};

}  // namespace

template <class T>
std::vector<GreedyResult> greedy_machines(const GreedyProblem& problem, Control& control) {
    MachineLoop loop(problem, control);
    const Trainer<T> trainer(problem, control);
    return loop.run([&](std::size_t m, Clock::time_point deadline, Meter& meter) {
        return trainer.train(problem.machines[m],
                             problem.resumptions.empty() ? Resumption{} : problem.resumptions[m],
                             deadline, meter);
    });
}

template std::vector<GreedyResult> greedy_machines<float>(const GreedyProblem&, Control&);
template std::vector<GreedyResult> greedy_machines<double>(const GreedyProblem&, Control&);

}  // namespace hardmargin
