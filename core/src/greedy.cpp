#include "hardmargin/greedy.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "hardmargin/errors.hpp"
#include "hardmargin/greedy_state.hpp"
#include "hardmargin/level.hpp"

namespace hardmargin {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Bounds are widened by `slack` for the rounding of kernel values. Changes of a gradient below
// `negligible` are dropped (even 1e5 of them stay below the noise of the arithmetic).
template <class T>
constexpr double slack = sizeof(T) == 4 ? 1e-5 : 1e-12;
template <class T>
constexpr double negligible = sizeof(T) == 4 ? 1e-9 : 1e-18;

// Putting columns off pays for its bookkeeping if at most this share of the values is evaluated,
constexpr double largest_lazy_share = 0.6;
constexpr double fewest_lazy_columns = 1.5;  // or if at least this many columns are added at once
constexpr std::size_t stages_between_verdicts = 256;

// Blocks brought up to date one by one, best first, before all that may matter are updated at once.
constexpr int most_single_flushes = 4;

enum class Rule {
    least_gradient,  // constant diagonal, one visit: argmin g
    longest_step,    // constant diagonal, revisits
    largest_gain,    // any diagonal
};

template <class T>
class Greedy {
  public:
    Greedy(const std::vector<Part<T>>& parts, BlockValues<T>& values, const GreedyOptions& options,
           const Resumption& resumption, Clock::time_point deadline, Meter& meter)
        : values_(values), options_(options), resumption_(resumption), deadline_(deadline),
          meter_(meter) {
        revisits_ = options.max_visits > 1;
        rule_ = options.diagonal ? Rule::largest_gain
                : revisits_      ? Rule::longest_step
                                 : Rule::least_gradient;
        lazy_ = options.schedule != Schedule::eager && values.is_bounded() &&
                rule_ != Rule::largest_gain;
        add_blocks(parts);
        if (!resumption.state.empty()) go_on_from(resumption.state);
        next_keep_ = after(resumption.seconds);
    }

    GreedyResult run() {
        while (true) {
            // 1. Choose the row whose step lowers L most.
            const Choice choice = choose();
            result_.violation = choice.violation;
            // 4. Stop when no such row is left, or at a limit.
            if (choice.block == unknown) {
                result_.reason = StopReason::converged;
                if (!revisits_ && n_spent_ == n_rows_) result_.reason = StopReason::exhausted;
                break;
            }
            if (result_.rows.size() >= options_.max_stages) {
                result_.reason = StopReason::max_stages;
                break;
            }
            if (timed_out_) {
                result_.reason = StopReason::max_time;
                break;
            }
            // 2. Change its multiplier.
            const std::uint32_t stage = take_step(choice);
            // 3. Add its column to the gradient, at once or later.
            lazy_ ? put_off(stage, choice.block) : apply_to_all(stage);
            if (lazy_ && options_.schedule == Schedule::automatic) judge_laziness();
            tick(64);
            if (is_due_) keep_state();
        }
        check_finite();
        // States of short machines take longer to write than the machines to train again.
        const bool is_worth_it = timed_out_ ? !result_.rows.empty() : Clock::now() >= next_keep_;
        if (resumption_.keep && is_worth_it) keep_state();
        result_.lazy = lazy_;
        if (rule_ == Rule::largest_gain) result_.violation = largest_change();
        return std::move(result_);
    }

  private:
    struct Choice {
        std::size_t block = unknown;
        std::size_t lane = 0;
        double violation = 0;
    };

    void add_blocks(const std::vector<Part<T>>& parts) {
        std::size_t n_lanes = 0, widest = 0;
        for (const Part<T>& part : parts)
            for (const auto& b : part.rows->blocks) {
                const std::size_t block_lanes = b.n_tiles * lanes<T>;
                blocks_.push_back({n_lanes, b.n_rows, block_lanes, part.label});
                n_lanes += block_lanes;
                n_rows_ += b.n_rows;
                widest = std::max(widest, block_lanes);
            }
        gradient_.assign(n_lanes, infinity);  // for padding and for spent rows
        ids_.assign(n_lanes, -1);
        std::size_t b = 0;
        for (const Part<T>& part : parts)
            for (const auto& from : part.rows->blocks) {
                const GreedyBlock& block = blocks_[b++];
                std::copy_n(part.rows->ids.data() + from.first_tile * lanes<T>, block.n_lanes,
                            ids_.data() + block.begin);
                std::fill_n(gradient_.data() + block.begin, block.n_rows, -1.0);
            }
        buffer_.assign(widest * columns_at_once, T(0));
        reach_.assign(round_up(blocks_.size(), strip_rows), T(0));
        potential_.assign(round_up(blocks_.size(), 8), -infinity);
        rise_.assign(blocks_.size(), 0.0);
        fall_.assign(blocks_.size(), -infinity);
        counts_visits_ = revisits_ || options_.weights;
        if (counts_visits_) {
            visits_left_.assign(n_lanes, options_.max_visits);
            if (options_.weights)
                for (std::size_t i = 0; i < n_lanes; ++i)
                    if (ids_[i] >= 0) visits_left_[i] *= options_.weights[ids_[i]];
        }
        if (rule_ != Rule::least_gradient) {
            alpha_.assign(n_lanes, 0.0);
            up_.assign(n_lanes, infinity);
            down_.assign(n_lanes, 0.0);
        }
        if (options_.diagonal) {
            diagonal_.assign(n_lanes, 0.0);
            for (std::size_t i = 0; i < n_lanes; ++i)
                if (ids_[i] >= 0) diagonal_[i] = options_.diagonal[ids_[i]];
        }
        most_pending_ = std::max<std::size_t>(
            64, options_.memory_bytes / 4 / sizeof(std::uint32_t) / std::max<std::size_t>(b, 1));
        cache_left_ = options_.memory_bytes / 2;
        for (std::size_t i = 0; i < blocks_.size(); ++i) summarise(i);
    }

    // Only spent rows have infinite gradients, unless kernel values are not finite: a value that
    // overflows would pass for the mark of a spent row.
    void check_finite(const GreedyBlock& block) const {
        const double* g = gradient_.data() + block.begin;
        std::size_t n_finite = 0, n_marked = 0;
        for (std::size_t i = 0; i < block.n_rows; ++i) {
            n_finite += std::isfinite(g[i]);
            n_marked += g[i] == infinity;
        }
        if (n_marked != block.n_spent || n_finite + n_marked != block.n_rows) throw NotFinite();
    }
    void check_finite() const {
        for (const GreedyBlock& block : blocks_) check_finite(block);
        for (std::size_t b = 0; b < blocks_.size(); ++b)  // where columns were put off
            if (std::isnan(potential_[b])) throw NotFinite();
    }

    double diagonal(std::size_t lane) const {
        return options_.diagonal ? diagonal_[lane] : options_.constant_diagonal;
    }

    // How good the best step of this row is; the row with the largest score is chosen.
    double score(std::size_t lane) const {
        const double g = gradient_[lane];
        if (rule_ == Rule::least_gradient) return -g;
        if (rule_ == Rule::longest_step) return step_score(g, up_[lane], down_[lane]);
        const double k = diagonal_[lane];
        if (!(k > 0)) return 0;  // indefinite kernel: no minimum along this row
        const double t = clamped(-g / k, lane);
        return std::abs(t) * k > options_.step_tol ? -(t * g + 0.5 * t * t * k) : 0;
    }

    // Rule::largest_gain: the largest change that an open step of a row makes to its own gradient.
    double largest_change() const {
        double largest = 0;
        for (const GreedyBlock& block : blocks_)
            for (std::size_t i = block.begin; i < block.begin + block.n_rows; ++i)
                if (const double k = diagonal_[i]; k > 0)
                    largest = std::max(largest, std::abs(clamped(-gradient_[i] / k, i)) * k);
        return largest;
    }

    double clamped(double step, std::size_t lane) const {
        if (step > 0) return std::min(step, up_[lane]);
        return std::max(step, -alpha_[lane]);
    }

    // Called when block b is up to date: its potential becomes the best score of its rows.
    void summarise(std::size_t b, double least = -infinity) {
        GreedyBlock& block = blocks_[b];
        block.first_best = unknown;
        const double* g = gradient_.data() + block.begin;
        if (rule_ == Rule::least_gradient) {
            if (least == -infinity)
                least = block.n_lanes ? *std::min_element(g, g + block.n_lanes) : infinity;
            potential_[b] = -least;
        } else if (rule_ == Rule::longest_step) {
            const double* up = up_.data() + block.begin;
            const double* down = down_.data() + block.begin;
            potential_[b] = level().scan.longest_step(g, up, down, block.n_lanes);
            if (!lazy_) return;
            rise_[b] = fall_[b] = -infinity;
            for (std::size_t i = 0; i < block.n_rows; ++i) {
                if (up[i] > 0) rise_[b] = std::max(rise_[b], -g[i]);
                if (down[i] > 0) fall_[b] = std::max(fall_[b], std::min(g[i], down[i]));
            }
        } else {
            double best = 0;
            for (std::size_t i = block.begin; i < block.begin + block.n_rows; ++i) {
                const double s = score(i);
                if (s > best) {
                    best = s;
                    block.first_best = i;
                }
            }
            potential_[b] = best;
        }
    }

    std::size_t first_best(std::size_t b) {
        GreedyBlock& block = blocks_[b];
        if (block.first_best == unknown)
            for (std::size_t i = block.begin; i < block.begin + block.n_rows; ++i)
                if (score(i) == potential_[b] &&
                    (block.first_best == unknown || ids_[i] < ids_[block.first_best])) {
                    block.first_best = i;
                    if (!options_.next_copy) break;  // rows of a block are in order
                }
        return block.first_best;
    }

    // 1. The best row of all, the lowest among equals. Blocks whose bound reaches the best exact
    // score are brought up to date first, the most promising ones one by one.
    Choice choose() {
        const double enough = rule_ == Rule::largest_gain ? 0 : options_.step_tol;
        for (int n_flushed = 0;; ++n_flushed) {
            const double best = level().scan.largest(potential_.data(), potential_.size());
            if (!(best > enough)) return {unknown, 0, std::max(best, 0.0)};
            if (n_flushed == most_single_flushes) {
                flush_all_open();
                continue;
            }
            Choice choice{unknown, 0, best};
            bool exact = true;
            for (std::size_t b = 0; b < blocks_.size() && exact; ++b) {
                if (potential_[b] != best) continue;
                if (!blocks_[b].pending.empty()) {
                    flush(b);
                    exact = false;
                    continue;
                }
                const std::size_t lane = first_best(b);
                if (lane == unknown) throw NotFinite();
                if (choice.block == unknown || ids_[lane] < ids_[choice.lane])
                    choice = {b, lane, best};
            }
            if (exact) return choice;
        }
    }

    // Brings up to date every block whose bound reaches the best exact score.
    void flush_all_open() {
        double best_exact = -infinity;
        for (std::size_t b = 0; b < blocks_.size(); ++b)
            if (blocks_[b].pending.empty()) best_exact = std::max(best_exact, potential_[b]);
        for (std::size_t b = 0; b < blocks_.size(); ++b) {
            if (blocks_[b].pending.empty() || potential_[b] < best_exact) continue;
            flush(b);
            best_exact = std::max(best_exact, potential_[b]);
        }
    }

    // 2. Changes the chosen multiplier and records the stage; the gradients follow in step 3.
    std::uint32_t take_step(const Choice& choice) {
        const std::size_t i = choice.lane;
        GreedyBlock& block = blocks_[choice.block];
        const double g = gradient_[i], k = diagonal(i);
        double step = -g / k;
        if (rule_ != Rule::least_gradient) step = clamped(step, i);
        if (counts_visits_) {
            if (step > 0) step *= std::min(1.0, visits_left_[i]);
            visits_left_[i] -= 1;
        }
        result_.squared_norm += 2 * step * (1 + g) + step * step * k;
        loss_ += step * g + 0.5 * step * step * k;

        const auto [column, is_new] =
            column_of_.try_emplace(ids_[i], static_cast<std::uint32_t>(column_of_.size()));
        if (is_new) {
            values_.open(choice.block, i - block.begin, ids_[i]);
            result_.support.push_back(ids_[i]);
            result_.multipliers.push_back(0.0);
        }
        result_.multipliers[column->second] += step;
        stages_.push_back({column->second, block.label, step});
        result_.rows.push_back(ids_[i]);
        result_.steps.push_back(step);
        result_.losses.push_back(loss_);
        meter_.control().report(stages_.size(), choice.violation);

        bool spent = !counts_visits_ || visits_left_[i] <= 0;
        if (options_.next_copy && options_.next_copy[ids_[i]] >= 0) {
            ids_[i] = options_.next_copy[ids_[i]];  // its copy takes its place
            spent = false;
        }
        if (rule_ != Rule::least_gradient) {
            if (revisits_) alpha_[i] += step;
            if (spent) up_[i] = 0;
            down_[i] = revisits_ ? alpha_[i] * (options_.diagonal ? 1.0 : k) : 0.0;
        }
        if (spent && !revisits_) {
            gradient_[i] = infinity;
            ++block.n_spent;
            ++n_spent_;
        }
        return static_cast<std::uint32_t>(stages_.size() - 1);
    }

    // gradient of block b += the columns of these stages, one after another
    double add(std::size_t b, const std::uint32_t* stages, std::size_t n) {
        GreedyBlock& block = blocks_[b];
        std::uint32_t columns[columns_at_once];
        double signed_steps[columns_at_once], least = -infinity;
        for (std::size_t c = 0; c < n; ++c) {
            const GreedyStage& s = stages_[stages[c]];
            columns[c] = s.column;
            signed_steps[c] = s.step * s.label * block.label;
        }
        values_.values(b, ids_.data() + block.begin, block.n_rows, columns, static_cast<int>(n),
                       buffer_.data(), block.n_lanes);
        result_.n_values += block.n_rows * n;
        tick(block.n_rows * n * values_.cost());
        for (std::size_t c = 0; c < n; c += max_columns)
            least = level().table<T>().accumulate(
                gradient_.data() + block.begin, buffer_.data() + c * block.n_lanes, block.n_lanes,
                signed_steps + c, static_cast<int>(std::min<std::size_t>(max_columns, n - c)),
                block.n_lanes);
        return least;
    }

    void flush(std::size_t b) {
        GreedyBlock& block = blocks_[b];
        if (is_worn(block)) drop_spent(b);
        double least = -infinity;
        const std::size_t most = std::max<std::size_t>(values_.at_once(), max_columns);
        for (std::size_t done = 0; done < block.pending.size(); done += most)
            least =
                add(b, block.pending.data() + done, std::min(most, block.pending.size() - done));
        row_passes_ += block.n_rows;
        block.pending.clear();
        summarise(b, least);
    }

    // 3., lazy: notes the stage in every block it can reach, and raises those blocks' bounds.
    void put_off(std::uint32_t stage, std::size_t own_block) {
        const GreedyStage& s = stages_[stage];
        summarise(own_block);  // up to date except for the row just changed
        values_.reach(s.column, reach_.data());
        for (std::size_t b = 0; b < blocks_.size(); ++b) {
            const double change = std::abs(s.step) * static_cast<double>(reach_[b]);
            if (change < negligible<T> && b != own_block) continue;
            GreedyBlock& block = blocks_[b];
            block.pending.push_back(stage);
            const bool lowers = s.step * s.label * block.label < 0;
            if (rule_ == Rule::least_gradient) {
                if (lowers) potential_[b] += change * (1 + slack<T>);
            } else {
                (lowers ? rise_[b] : fall_[b]) += change * (1 + slack<T>);
                potential_[b] = std::max(rise_[b], fall_[b]);
            }
            if (block.pending.size() >= most_pending_) flush(b);
        }
    }

    // 3., eager: adds the stage's column to the gradients of all blocks at once.
    void apply_to_all(std::uint32_t stage) {
        const GreedyStage& s = stages_[stage];
        AlignedVector<T>* kept = column_cache(s.column);
        const bool filled = kept && !kept->empty();
        if (kept && !filled) kept->resize(gradient_.size());
        for (std::size_t b = 0; b < blocks_.size(); ++b) {
            GreedyBlock& block = blocks_[b];
            if (is_worn(block)) drop_spent(b);
            double least;
            if (filled) {
                const double step = s.step * s.label * block.label;
                least = level().table<T>().accumulate(gradient_.data() + block.begin,
                                                      kept->data() + block.begin, 0, &step, 1,
                                                      block.n_lanes);
                tick(block.n_rows * 4);
            } else {
                least = add(b, &stage, 1);
                if (kept) std::copy_n(buffer_.data(), block.n_lanes, kept->data() + block.begin);
            }
            summarise(b, least);
        }
    }

    // A column's place in the cache, or null if it is not to be cached.
    AlignedVector<T>* column_cache(std::uint32_t column) {
        if (!revisits_) return nullptr;
        if (column >= cache_.size()) cache_.resize(column + 1);
        const std::size_t bytes = gradient_.size() * sizeof(T);
        if (cache_[column].empty()) {
            if (cache_left_ < bytes) return nullptr;
            cache_left_ -= bytes;
        }
        return &cache_[column];
    }

    // Whether so many rows are spent that evaluating them is a waste.
    static bool is_worn(const GreedyBlock& block) {
        return block.n_spent >= lanes<T> && 8 * block.n_spent >= block.n_rows;
    }

    // Removes spent rows from their block; the others keep their order.
    void drop_spent(std::size_t b) {
        GreedyBlock& block = blocks_[b];
        check_finite(block);
        std::vector<std::uint32_t> kept;
        for (std::size_t i = 0; i < block.n_rows; ++i)
            if (gradient_[block.begin + i] != infinity)
                kept.push_back(static_cast<std::uint32_t>(i));
        const auto squeeze = [&](auto& v, auto padding) {
            if (v.empty()) return;
            for (std::size_t i = 0; i < kept.size(); ++i)
                v[block.begin + i] = v[block.begin + kept[i]];
            std::fill(v.begin() + static_cast<std::ptrdiff_t>(block.begin + kept.size()),
                      v.begin() + static_cast<std::ptrdiff_t>(block.begin + block.n_lanes),
                      padding);
        };
        squeeze(gradient_, infinity);
        squeeze(ids_, -1);
        squeeze(visits_left_, 0.0);
        squeeze(up_, 0.0);
        squeeze(down_, 0.0);
        squeeze(diagonal_, 0.0);
        values_.keep(b, kept);
        block.n_rows = kept.size();
        block.n_lanes = round_up(kept.size(), lanes<T>);
        block.n_spent = 0;
        block.first_best = unknown;
    }

    // Broad kernels reach every block, so that putting columns off saves nothing.
    void judge_laziness() {
        if (stages_.size() % stages_between_verdicts != 0) return;
        const auto possible = static_cast<double>((n_rows_ - n_spent_) * stages_between_verdicts);
        const auto evaluated = static_cast<double>(result_.n_values - values_at_verdict_);
        const auto passes = static_cast<double>(row_passes_ - passes_at_verdict_);
        values_at_verdict_ = result_.n_values;
        passes_at_verdict_ = row_passes_;
        if (evaluated <= largest_lazy_share * possible || evaluated >= fewest_lazy_columns * passes)
            return;
        for (std::size_t b = 0; b < blocks_.size(); ++b)
            if (!blocks_[b].pending.empty()) flush(b);
        lazy_ = false;
    }

    void tick(std::size_t work) {
        if (!meter_.tick(work)) return;
        timed_out_ = meter_.is_over(deadline_);
        is_due_ = resumption_.keep && Clock::now() >= next_keep_;
    }

    // All that the next stages depend on, except columns and rows that have been dropped.
    template <class Archive>
    void visit_state(Archive& archive) {
        archive(result_.rows);
        archive(result_.steps);
        archive(result_.losses);
        archive(result_.support);
        archive(result_.multipliers);
        archive(result_.squared_norm);
        archive(result_.n_values);
        archive(lazy_);
        archive(loss_);
        archive(n_spent_);
        for (GreedyBlock& block : blocks_) {
            archive(block.n_rows);
            archive(block.n_lanes);
            archive(block.n_spent);
            archive(block.first_best);
            archive(block.pending);
        }
        for (auto* by_lane : {&gradient_, &alpha_, &up_, &down_, &diagonal_, &visits_left_})
            archive(*by_lane);
        archive(ids_);
        archive(potential_);
        archive(rise_);
        archive(fall_);
        archive(stages_);
        archive(row_passes_);
        archive(values_at_verdict_);
        archive(passes_at_verdict_);
    }

    void keep_state() {
        StateWriter writer;
        writer(layout_hash());
        visit_state(writer);
        next_keep_ = after(resumption_.keep(writer.finish()));
        is_due_ = false;
    }

    // Takes over a state, unless it is that of other blocks or another rule, or is damaged.
    void go_on_from(const std::string& state) {
        StateReader reader(state);
        std::uint64_t layout = 0;
        if (!reader.has_more()) return;
        reader(layout);
        if (layout != layout_hash()) return;
        const Places places = places_of(blocks_, ids_, options_.next_copy);
        const std::vector<GreedyBlock> packed = blocks_;
        const auto sizes = fixed_sizes();
        const bool may_be_lazy = lazy_;
        StateWriter start;
        visit_state(start);
        visit_state(reader);
        const bool fits =
            reader.is_done() && fixed_sizes() == sizes && (may_be_lazy || !lazy_) &&
            are_blocks_sound(blocks_, ids_, packed, places, lanes<T>, stages_.size(), n_spent_) &&
            are_stages_sound(stages_, result_, places);
        if (!fits) {
            const std::string bytes = start.finish();
            StateReader from_start(bytes);
            visit_state(from_start);
            return;
        }

        for (const std::int32_t id : result_.support) {
            column_of_.emplace(id, static_cast<std::uint32_t>(column_of_.size()));
            values_.open(places.at(id).first, places.at(id).second, id);
        }
        for (std::size_t b = 0; b < blocks_.size(); ++b) {
            if (blocks_[b].n_rows == packed[b].n_rows) continue;
            std::vector<std::uint32_t> kept;
            for (std::size_t i = 0; i < blocks_[b].n_rows; ++i)
                kept.push_back(
                    static_cast<std::uint32_t>(places.at(ids_[blocks_[b].begin + i]).second));
            values_.keep(b, kept);
        }
    }

    // The sizes of all that does not grow with the stages.
    std::vector<std::size_t> fixed_sizes() const {
        return {gradient_.size(), alpha_.size(),       up_.size(),  down_.size(),
                diagonal_.size(), visits_left_.size(), ids_.size(), potential_.size(),
                rise_.size(),     fall_.size()};
    }

    // Distinguishes the blocks and the rule of this machine from those of rows that are packed
    // differently, or visited differently.
    std::uint64_t layout_hash() const {
        StateWriter writer;
        writer(sizeof(T));
        writer(values_.is_bounded());
        writer(rule_);
        writer(revisits_);
        writer(counts_visits_);
        writer(options_.next_copy != nullptr);
        for (const GreedyBlock& block : blocks_) writer(block.begin);
        writer(n_rows_);
        return hash_of(writer.finish());
    }

    BlockValues<T>& values_;
    const GreedyOptions options_;
    const Resumption& resumption_;
    const Clock::time_point deadline_;
    Clock::time_point next_keep_;
    Meter& meter_;
    GreedyResult result_;
    Rule rule_;
    bool revisits_, lazy_, counts_visits_ = false, timed_out_ = false, is_due_ = false;
    double loss_ = 0;

    std::vector<GreedyBlock> blocks_;
    std::size_t n_rows_ = 0, n_spent_ = 0;
    // by lane
    AlignedVector<double> gradient_, alpha_, up_, down_, diagonal_, visits_left_;
    std::vector<std::int32_t> ids_;
    // by block: no row scores more than potential; rise and fall are bounds for steps up and down
    AlignedVector<double> potential_;
    std::vector<double> rise_, fall_;
    // by stage, by column
    std::vector<GreedyStage> stages_;
    std::unordered_map<std::int32_t, std::uint32_t> column_of_;
    std::vector<AlignedVector<T>> cache_;
    std::size_t cache_left_ = 0, most_pending_ = 0;
    std::uint64_t row_passes_ = 0, values_at_verdict_ = 0, passes_at_verdict_ = 0;
    AlignedVector<T> buffer_, reach_;
};

}  // namespace

template <class T>
GreedyResult greedy_fit(const std::vector<Part<T>>& parts, BlockValues<T>& values,
                        const GreedyOptions& options, const Resumption& resumption,
                        Clock::time_point deadline, Meter& meter) {
    return Greedy<T>(parts, values, options, resumption, deadline, meter).run();
}

template GreedyResult greedy_fit(const std::vector<Part<float>>&, BlockValues<float>&,
                                 const GreedyOptions&, const Resumption&, Clock::time_point,
                                 Meter&);
template GreedyResult greedy_fit(const std::vector<Part<double>>&, BlockValues<double>&,
                                 const GreedyOptions&, const Resumption&, Clock::time_point,
                                 Meter&);

}  // namespace hardmargin
