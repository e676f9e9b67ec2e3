#include "hardmargin/machines.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "hardmargin/expansion.hpp"

namespace hardmargin {
namespace {

// Below this many rows a machine is done before the bounds of lazy blocks could pay.
constexpr std::size_t fewest_lazy_rows = 2048;

// Blocks of row numbers alone, for kernels whose values do not come from tiles.
template <class T>
PackedRows<T> number_rows(const std::vector<std::int32_t>& rows, std::size_t block_rows) {
    PackedRows<T> numbered(rows.size(), block_rows, 0, 0);
    for (std::size_t b = 0; b < numbered.blocks.size(); ++b)
        std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(b * block_rows),
                    numbered.blocks[b].n_rows,
                    numbered.ids.begin() +
                        static_cast<std::ptrdiff_t>(numbered.blocks[b].first_tile * lanes<T>));
    return numbered;
}

// What is left of the time, shared evenly by the machines still to run.
class TimeShare {
  public:
    TimeShare(double max_seconds, std::size_t n_machines, int n_threads)
        : limited_(max_seconds > 0),
          end_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                  std::chrono::duration<double>(std::min(max_seconds, 1e9)))),
          left_(n_machines), n_threads_(static_cast<std::size_t>(std::max(n_threads, 1))) {}

    Clock::time_point next() {
        if (!limited_) return Clock::time_point::max();
        const auto now = Clock::now();
        const std::size_t rounds = (left_-- + n_threads_ - 1) / n_threads_;
        return now + (end_ - now) / static_cast<std::ptrdiff_t>(rounds);
    }

  private:
    const bool limited_;
    const Clock::time_point end_;
    std::atomic<std::size_t> left_;
    const std::size_t n_threads_;
};

struct ClassRows {
    std::vector<std::int32_t> all;
    std::vector<std::vector<std::int32_t>> of_class;

    explicit ClassRows(const GreedyProblem& problem) : of_class(problem.n_classes) {
        for (std::size_t i = 0; i < problem.matrix.n_rows; ++i) {
            if (problem.classes[i] < 0) continue;
            all.push_back(static_cast<std::int32_t>(i));
            of_class[static_cast<std::size_t>(problem.classes[i])].push_back(
                static_cast<std::int32_t>(i));
        }
    }

    std::size_t in_machine(const MachineSpec& machine) const {
        std::size_t n = 0;
        for (const auto* side : {&machine.negative, &machine.positive})
            for (const std::int32_t c : *side) n += of_class[static_cast<std::size_t>(c)].size();
        return n;
    }
};

// All that the machines of one problem share.
template <class T>
class Trainer {
  public:
    Trainer(const GreedyProblem& problem, Control& control)
        : problem_(problem), rows_(problem), options_(problem.options) {
        const bool is_tiled = problem.source == Source::rows && is_packable(problem.matrix);
        if (is_tiled)
            layout_ = std::make_unique<Layout>(problem.kernel, std::vector<Matrix>{problem.matrix},
                                               &rows_.all, problem.use_bits);
        if (problem.need_bits && !has_bits())
            throw std::invalid_argument(
                "the bit-packed methods need a distance kernel and at least five columns that take "
                "two values each, the same step apart; method='auto' works on any data");
        is_distance_ = is_tiled && problem.kernel.is_distance();
        plan_memory();
        pack(control);
    }

    bool has_bits() const { return layout_ && layout_->has_bits(); }

    GreedyResult train(const MachineSpec& machine, Clock::time_point deadline, Meter& meter) const {
        std::vector<Part<T>> parts;
        for (const std::int32_t c : machine.negative)
            parts.push_back({packed_[static_cast<std::size_t>(c)], -1.0});
        for (const std::int32_t c : machine.positive)
            parts.push_back({packed_[static_cast<std::size_t>(c)], 1.0});
        const auto values = values_of(parts);
        return greedy_fit<T>(parts, *values, options_, deadline, meter);
    }

  private:
    // Settles what depends on the size of the problem: whether columns are put off, and what is
    // left of the memory for them.
    void plan_memory() {
        std::size_t largest = 0;
        for (const MachineSpec& m : problem_.machines)
            largest = std::max(largest, rows_.in_machine(m));
        const std::size_t row = layout_ ? layout_->n_dense() * sizeof(T) + layout_->n_bytes() : 0;
        const std::size_t states = options_.max_visits > 1 || options_.diagonal ? 52 : 12;
        const std::size_t threads = static_cast<std::size_t>(std::max(problem_.n_threads, 1));
        const std::size_t needed = rows_.all.size() * row + largest * states * threads;
        if (needed > options_.memory_bytes)
            throw std::invalid_argument("memory_limit is too small: these rows take " +
                                        std::to_string(needed) +
                                        " bytes in training; raise memory_limit" +
                                        (sizeof(T) == 8 ? " or use dtype='float32'" : ""));
        options_.memory_bytes = (options_.memory_bytes - needed) / threads;

        is_lazy_ = is_distance_ && options_.schedule != Schedule::eager;
        if (options_.schedule == Schedule::automatic) {
            const bool has_room = options_.memory_bytes > rows_.all.size() * row;  // to sort them
            is_lazy_ = is_lazy_ && largest >= fewest_lazy_rows && has_room;
            if (!is_lazy_) options_.schedule = Schedule::eager;
        }
    }

    void pack(Control& control) {
        // Copies of a row share one gradient as long as all may be visited alike.
        if (is_distance_ && !options_.weights && options_.max_visits == 1) {
            next_copy_.assign(problem_.matrix.n_rows, -1);
            options_.next_copy = next_copy_.data();
        }
        const BlockOrder order = is_lazy_ ? BlockOrder::kd_tree : BlockOrder::natural;
        packed_.resize(problem_.n_classes);
        parallel_for(
            problem_.n_classes, problem_.n_threads, control, [&](std::size_t c, Meter& meter) {
                packed_[c] = std::make_shared<const PackedRows<T>>(
                    layout_ ? pack_rows<T>(*layout_, problem_.matrix, rows_.of_class[c], order,
                                           problem_.block_rows,
                                           next_copy_.empty() ? nullptr : next_copy_.data(), meter)
                            : number_rows<T>(rows_.of_class[c], problem_.block_rows));
            });
    }

    std::unique_ptr<BlockValues<T>> values_of(const std::vector<Part<T>>& parts) const {
        if (problem_.source == Source::precomputed) return precomputed_values<T>(problem_.matrix);
        if (problem_.source == Source::function)
            return function_values<T>(problem_.column, problem_.matrix.n_rows);
        if (layout_) return tile_values<T>(problem_.kernel, *layout_, parts, is_lazy_);
        return sparse_values<T>(problem_.kernel, problem_.matrix);
    }

    const GreedyProblem& problem_;
    const ClassRows rows_;
    GreedyOptions options_;
    std::unique_ptr<Layout> layout_;  // null: values do not come from tiles
    bool is_distance_ = false, is_lazy_ = false;
    std::vector<std::int32_t> next_copy_;
    std::vector<std::shared_ptr<const PackedRows<T>>> packed_;  // by class
};

}  // namespace

template <class T>
GreedyMachines greedy_machines(const GreedyProblem& problem, Control& control) {
    TimeShare time(problem.max_seconds, problem.machines.size(), problem.n_threads);
    const Trainer<T> trainer(problem, control);
    GreedyMachines fitted;
    fitted.bits = trainer.has_bits();
    fitted.results.resize(problem.machines.size());
    parallel_for(problem.machines.size(), problem.n_threads, control,
                 [&](std::size_t m, Meter& meter) {
                     fitted.results[m] = trainer.train(problem.machines[m], time.next(), meter);
                     control.machine_done();
                 });
    return fitted;
}

template GreedyMachines greedy_machines<float>(const GreedyProblem&, Control&);
template GreedyMachines greedy_machines<double>(const GreedyProblem&, Control&);

}  // namespace hardmargin
