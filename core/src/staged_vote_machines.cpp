#include "hardmargin/staged_vote_machines.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "hardmargin/machine_loop.hpp"

namespace hardmargin {
namespace {

// Stages after which the kernels are compared, and how many may go on where a machine has many
// rows. (Machines of few rows are fast, and gain from many kernels.)
struct Round {
    std::size_t stage, most_kernels;
};
constexpr std::array<Round, 3> rounds = {{{16, 8}, {32, 5}, {64, 3}}};
constexpr double many_rows = 400;

// A kernel is stopped when it would have less than `least_share` of the leader's vote even if its
// loss fell by `optimism` times as much as in the second half of its stages.
constexpr double least_share = 0.01, optimism = 2;

// Its product with the least logistic weight is still a normal number.
template <class T>
constexpr T least_weight = sizeof(T) == 4 ? T(1e-15) : T(1e-100);

// Number of rows that weights stand for: their sum or, if larger, (sum w)^2 / sum w^2, which does
// not depend on their scale.
double evidence_of(const double* weights, const std::vector<std::int32_t>& rows, double largest) {
    double sum = 0, squares = 0;
    for (const std::int32_t row : rows) {
        const double share = weights[row] / largest;  // its square neither overflows nor vanishes
        sum += share;
        squares += share * share;
    }
    return sum * std::max(largest, sum / squares);
}

// Labels dealt out to rows in the order of their places, where copies share one: the first get the
// weight of the positive side.
template <class T>
void shuffle_labels(const StagedVoteProblem<T>& problem, const std::int32_t* places,
                    const std::vector<std::int32_t>& rows, const std::vector<T>& labels,
                    AlignedVector<T>& out) {
    std::vector<std::size_t> order(rows.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return places[rows[a]] < places[rows[b]];
    });
    double positive = 0, dealt = 0;
    for (std::size_t i = 0; i < rows.size(); ++i)
        if (labels[i] > 0) positive += problem.weights[rows[i]];
    for (std::size_t first = 0, end = 0; first < order.size(); first = end) {
        double of_copies = 0;
        for (; end < order.size() && places[rows[order[end]]] == places[rows[order[first]]]; ++end)
            of_copies += problem.weights[rows[order[end]]];
        const T label = dealt + of_copies / 2 < positive ? T(1) : T(-1);
        for (std::size_t p = first; p < end; ++p) out[order[p]] = label;
        dealt += of_copies;
    }
}

template <class T>
PathData<T> path_data(const StagedVoteProblem<T>& problem, const MachineSpec& machine) {
    PathData<T> data;
    std::vector<T> label;
    const auto contains = [](const std::vector<std::int32_t>& side, std::int32_t c) {
        return std::find(side.begin(), side.end(), c) != side.end();
    };
    for (std::size_t i = 0; i < problem.n_rows; ++i) {
        const bool positive = contains(machine.positive, problem.classes[i]);
        if (!positive && !contains(machine.negative, problem.classes[i])) continue;
        data.rows.push_back(static_cast<std::int32_t>(i));
        label.push_back(positive ? T(1) : T(-1));
    }
    const std::size_t n = data.rows.size();
    data.padded = round_up(std::max<std::size_t>(n, 1), lanes<T>);
    data.weights.assign(data.padded, T(0));
    double largest = 0;
    for (const std::int32_t row : data.rows) largest = std::max(largest, problem.weights[row]);
    data.evidence = evidence_of(problem.weights, data.rows, largest);
    for (std::size_t i = 0; i < n; ++i) {
        const double share = problem.weights[data.rows[i]] / largest;  // so that T can hold it
        if (share > 0) data.weights[i] = std::max(static_cast<T>(share), least_weight<T>);
    }

    const auto has_both = [&](const AlignedVector<T>& labels) {
        return std::find(labels.begin(), labels.end(), T(1)) != labels.end() &&
               std::find(labels.begin(), labels.end(), T(-1)) != labels.end();
    };
    AlignedVector<T> column(data.padded, T(0));
    std::copy(label.begin(), label.end(), column.begin());
    if (!has_both(column)) throw std::invalid_argument("a machine needs rows on both sides");
    data.labels = column;
    for (std::size_t k = 0; k < problem.n_splits; ++k) {
        const std::uint8_t* train = problem.train + k * problem.n_rows;
        const std::uint8_t* test = problem.test + k * problem.n_rows;
        for (std::size_t i = 0; i < n; ++i) column[i] = train[data.rows[i]] ? label[i] : T(0);
        if (!has_both(column)) continue;  // nothing to learn from
        for (std::size_t i = 0; i < n; ++i) {
            if (!test[data.rows[i]]) continue;
            data.held_rows.push_back(static_cast<std::uint32_t>(i));
            data.held_columns.push_back(static_cast<std::uint32_t>(data.n_columns));
            data.held_splits.push_back(static_cast<std::int32_t>(k));
        }
        data.labels.insert(data.labels.end(), column.begin(), column.end());
        data.splits.push_back(static_cast<std::int32_t>(k));
        ++data.n_columns;
    }
    bool has_side[2] = {};
    for (const std::uint32_t row : data.held_rows) has_side[label[row] > 0] = true;
    if (!has_side[0] || !has_side[1]) {  // nothing to judge stages by
        data.n_columns = 1;
        data.splits.resize(1);
        data.labels.resize(data.padded);
        data.held_rows.clear();
        data.held_columns.clear();
        data.held_splits.clear();
    }
    for (std::size_t r = 0; r < problem.n_shuffles; ++r) {
        shuffle_labels(problem, problem.shuffles + r * problem.n_rows, data.rows, label, column);
        if (!has_both(column)) continue;
        data.labels.insert(data.labels.end(), column.begin(), column.end());
        data.splits.push_back(static_cast<std::int32_t>(problem.n_splits + r));
        ++data.n_columns;
    }
    data.held_weights.assign(round_up(std::max<std::size_t>(data.held_rows.size(), 1), lanes<T>),
                             T(0));
    for (std::size_t p = 0; p < data.held_rows.size(); ++p) {
        data.held_weights[p] = data.weights[data.held_rows[p]];
        data.held_weight += static_cast<double>(data.held_weights[p]);
    }
    return data;
}

// Matrices whose memory is reused.
template <class T>
class MatrixPool {
  public:
    using Product = std::unique_ptr<KernelProduct<T>>;

    Product take() {
        const std::lock_guard lock(mutex_);
        if (free_.empty()) return std::make_unique<KernelProduct<T>>();
        Product last = std::move(free_.back());
        free_.pop_back();
        return last;
    }
    void give_back(Product product) {
        const std::lock_guard lock(mutex_);
        free_.push_back(std::move(product));
    }

  private:
    std::mutex mutex_;
    std::vector<Product> free_;
};

template <class T>
class Race {
  public:
    // `memory_bytes` is for the matrices of all kernels: if they fit, each is filled once.
    Race(const StagedVoteProblem<T>& problem, const MachineSpec& machine, MatrixPool<T>& pool,
         std::size_t memory_bytes)
        : problem_(problem), pool_(pool), data_(path_data(problem, machine)) {
        std::size_t needed = 0;
        for (std::size_t k = 0; k < problem.kernels.size(); ++k) {
            paths_.push_back(std::make_unique<Path<T>>(data_, problem.options));
            for (const std::size_t column : columns_of(k))
                needed += KernelProduct<T>::bytes(problem.kernels[k][column], data_.padded);
        }
        matrices_.resize(paths_.size());
        is_filled_.assign(paths_.size(), false);
        waits_for_.assign(paths_.size(), nobody);
        keep_ = needed <= memory_bytes;
        for (std::size_t k = 0; k < paths_.size(); ++k)
            if (source_of(k).kind == ValueSource::points)
                widths_[family_of(k)].kernels.push_back(k);
    }

    std::vector<std::size_t> running() const {
        std::vector<std::size_t> found;
        for (std::size_t k = 0; k < paths_.size(); ++k)
            if (paths_[k]->is_running() && waits_for_[k] == nobody) found.push_back(k);
        return found;
    }

    // Kernels of extreme width wait for their neighbour: of at least four that decay with the same
    // distances, the widest and the narrowest.
    void hold_back_extremes() {
        std::map<const T*, std::vector<std::size_t>> families;
        for (std::size_t k = 0; k < paths_.size(); ++k)
            if (source_of(k).kind == ValueSource::distances)
                families[source_of(k).data].push_back(k);
        for (auto& [distances, family] : families) {
            if (family.size() < 4) continue;
            std::stable_sort(family.begin(), family.end(), [&](std::size_t a, std::size_t b) {
                return source_of(a).gamma < source_of(b).gamma;
            });
            waits_for_[family.front()] = family[1];
            waits_for_[family.back()] = family[family.size() - 2];
        }
    }

    // Those whose neighbour is still in the race join it, the others never start.
    std::vector<std::size_t> let_in() {
        std::vector<std::size_t> joining;
        for (std::size_t k = 0; k < paths_.size(); ++k) {
            if (waits_for_[k] == nobody) continue;
            if (paths_[waits_for_[k]]->is_outrun()) paths_[k]->give_up(PathStop::outrun);
            else joining.push_back(k);
            waits_for_[k] = nobody;
        }
        return joining;
    }

    void run(std::size_t kernel, std::size_t until, Clock::time_point deadline, Meter& meter) {
        if (paths_[kernel]->n_stages() >= until) return;
        if (!fill(kernel, deadline, meter)) {  // too late for another kernel
            paths_[kernel]->give_up(PathStop::max_time);
            return;
        }
        has_begun_ = true;
        auto& matrices = matrices_[kernel];
        paths_[kernel]->run(matrices, until, deadline, meter);
        meter.control().report(paths_[kernel]->n_stages(), paths_[kernel]->loss());
        if (!keep_ || !paths_[kernel]->is_running()) give_back(matrices);
    }

    void stop_the_hopeless(const Round& round) {
        if (data_.held_rows.empty()) return;  // nothing tells them apart
        const auto leader =
            std::min_element(paths_.begin(), paths_.end(),
                             [](const auto& a, const auto& b) { return a->loss() < b->loss(); });
        const double sharpness = problem_.options.sharpness * data_.evidence;
        std::vector<std::pair<double, std::size_t>> hopes;  // loss and kernel
        for (const std::size_t k : running()) {
            const Path<T>& path = *paths_[k];
            const double fallen = path.loss_at(round.stage / 2) - path.loss();
            const double hoped = path.loss() - optimism * fallen;
            const double share = path.mass() / (*leader)->mass() *
                                 std::exp(-sharpness * (hoped - (*leader)->loss()));
            if (share < least_share) paths_[k]->stop(PathStop::outrun);
            else hopes.emplace_back(hoped, k);
        }
        std::sort(hopes.begin(), hopes.end());
        if (data_.evidence >= many_rows)
            for (std::size_t i = round.most_kernels; i < hopes.size(); ++i)
                paths_[hopes[i].second]->stop(PathStop::outrun);
        for (std::size_t k = 0; k < paths_.size(); ++k)
            if (!paths_[k]->is_running()) give_back(matrices_[k]);
    }

    StagedVoteResult result() const {
        StagedVoteResult r;
        r.rows = data_.rows;
        for (const std::uint32_t row : data_.held_rows) r.held_rows.push_back(data_.rows[row]);
        r.splits = data_.splits;
        r.held_splits = data_.held_splits;
        for (const auto& path : paths_) r.paths.push_back(path->result());
        return r;
    }

  private:
    const KernelSource<T>& source_of(std::size_t kernel) const {
        return problem_.kernels[kernel].front();
    }

    // Which sources of a kernel the machine uses: it may leave out splits.
    std::vector<std::size_t> columns_of(std::size_t kernel) const {
        if (problem_.kernels[kernel].size() == 1) return {0};
        std::vector<std::size_t> columns;
        for (const std::int32_t split : data_.splits)
            columns.push_back(static_cast<std::size_t>(split + 1));
        return columns;
    }

    // Kernels of the same points and metric, which differ in their widths.
    using Family = std::pair<const T*, KernelKind>;
    struct Widths {
        std::vector<std::size_t> kernels;
        std::mutex mutex;  // of what is filled
    };

    Family family_of(std::size_t kernel) const {
        return {source_of(kernel).data, source_of(kernel).metric};
    }

    // Fills the matrices of a kernel, unless it has them; returns false if it is too late.
    bool fill(std::size_t kernel, Clock::time_point deadline, Meter& meter) {
        const auto is_late = [&] { return has_begun_ && meter.is_over(deadline); };
        if (!keep_ || source_of(kernel).kind != ValueSource::points) {
            auto& matrices = matrices_[kernel];
            if (!matrices.empty()) return true;
            if (is_late()) return false;
            for (const std::size_t column : columns_of(kernel)) {
                matrices.push_back(pool_.take());
                matrices.back()->fill(problem_.kernels[kernel][column], data_.rows, meter);
            }
            return true;
        }
        Widths& widths = widths_.at(family_of(kernel));
        const std::lock_guard lock(widths.mutex);
        if (is_filled_[kernel]) return true;
        if (is_late()) return false;
        std::vector<std::size_t> empty;
        for (const std::size_t k : widths.kernels)
            if (!is_filled_[k]) empty.push_back(k);
        for (const std::size_t column : columns_of(kernel)) {
            std::vector<KernelSource<T>> sources;
            std::vector<KernelProduct<T>*> products;
            for (const std::size_t k : empty) {
                sources.push_back(problem_.kernels[k][column]);
                products.push_back(matrices_[k].emplace_back(pool_.take()).get());
            }
            KernelProduct<T>::fill_widths(sources, products, data_.rows, meter);
        }
        for (const std::size_t k : empty) is_filled_[k] = true;
        return true;
    }

    void give_back(Matrices<T>& matrices) {
        for (auto& matrix : matrices) pool_.give_back(std::move(matrix));
        matrices.clear();
    }

    const StagedVoteProblem<T>& problem_;
    MatrixPool<T>& pool_;
    const PathData<T> data_;
    std::vector<std::unique_ptr<Path<T>>> paths_;
    std::vector<Matrices<T>> matrices_;  // of the kernels that still run
    std::map<Family, Widths> widths_;
    std::vector<char> is_filled_;  // if matrices of points are kept, whether they were made
    static constexpr auto nobody = std::numeric_limits<std::size_t>::max();
    std::vector<std::size_t> waits_for_;  // the kernel that must survive the first round
    bool keep_ = false;
    std::atomic<bool> has_begun_{false};
};

// Calls each_round(running kernels, stage to run to) until all paths have ended.
template <class T, class EachRound>
void in_rounds(const StagedVoteProblem<T>& problem, Race<T>& race, EachRound&& each_round) {
    const bool is_race = problem.race && problem.options.n_stages == 0 &&
                         problem.kernels.size() > 1 && problem.n_splits > 0;
    if (is_race) {
        race.hold_back_extremes();
        each_round(race.running(), rounds.front().stage);
        race.stop_the_hopeless(rounds.front());
        each_round(race.let_in(), rounds.front().stage);
        for (const Round& round : rounds) {
            each_round(race.running(), round.stage);
            race.stop_the_hopeless(round);
        }
    }
    each_round(race.running(), std::numeric_limits<std::size_t>::max());
}

}  // namespace

template <class T>
std::vector<StagedVoteResult> staged_vote_machines(const StagedVoteProblem<T>& problem,
                                                   Control& control) {
    MatrixPool<T> pool;
    if (problem.machines.size() == 1) {
        const auto deadline = after(problem.max_seconds);
        Race<T> race(problem, problem.machines[0], pool, problem.memory_bytes);
        in_rounds(problem, race, [&](const std::vector<std::size_t>& kernels, std::size_t until) {
            parallel_for(
                kernels.size(), problem.n_threads, control,
                [&](std::size_t i, Meter& meter) { race.run(kernels[i], until, deadline, meter); });
        });
        return {race.result()};
    }
    const auto n_at_once = static_cast<std::size_t>(std::max(problem.n_threads, 1));
    MachineLoop loop(problem.machines.size(), problem.max_seconds, problem.n_threads, control);
    return loop.run([&](std::size_t m, Clock::time_point deadline, Meter& meter) {
        Race<T> race(problem, problem.machines[m], pool, problem.memory_bytes / n_at_once);
        in_rounds(problem, race, [&](const std::vector<std::size_t>& kernels, std::size_t until) {
            for (const std::size_t k : kernels) race.run(k, until, deadline, meter);
        });
        return race.result();
    });
}

template std::vector<StagedVoteResult> staged_vote_machines<float>(const StagedVoteProblem<float>&,
                                                                   Control&);
template std::vector<StagedVoteResult>
staged_vote_machines<double>(const StagedVoteProblem<double>&, Control&);

}  // namespace hardmargin
