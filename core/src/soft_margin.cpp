// The numbered steps are those of soft_margin.hpp.
#include "hardmargin/soft_margin.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "hardmargin/errors.hpp"
#include "hardmargin/kernel_columns.hpp"
#include "hardmargin/machine_loop.hpp"

namespace hardmargin {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Memory per row of a machine, not counting columns.
constexpr std::size_t state_bytes = 64;

// Smaller curvatures, relative to the mean of |K_ii|, are only rounding of kernel values.
template <class T>
constexpr double least_curvature = sizeof(T) == 4 ? 1e-7 : 1e-12;

// Errors below this part of the multipliers' sum times the largest |K_ii| are only rounding.
constexpr double rounding = 16 * std::numeric_limits<double>::epsilon();

template <class T>
class SoftMargin {
  public:
    SoftMargin(const std::vector<Part<T>>& parts, BlockValues<T>& values,
               const SoftMarginProblem& problem, std::size_t memory_bytes,
               Clock::time_point deadline, Meter& meter)
        : problem_(problem), deadline_(deadline), meter_(meter),
          columns_(parts, values, memory_bytes) {
        for (const Part<T>& part : parts)
            label_.insert(label_.end(), part.rows->ids.size(), part.label);
        const std::size_t n = label_.size();
        alpha_.assign(n, 0.0);
        upper_.assign(n, 0.0);  // of padding: its multipliers can neither grow nor fall
        diagonal_.assign(n, 1.0);
        error_ = label_;
        double sum = 0, n_rows = 0;
        bool has_side[2] = {false, false};
        for (std::size_t i = 0; i < n; ++i) {
            const std::int32_t id = columns_.id(i);
            if (id < 0) continue;
            has_side[label_[i] > 0] = true;
            upper_[i] = problem.C * (problem.weights ? problem.weights[id] : 1.0);
            if (problem.diagonal) diagonal_[i] = problem.diagonal[id];
            sum += std::abs(diagonal_[i]);
            largest_ = std::max(largest_, std::abs(diagonal_[i]));
            n_rows += 1;
        }
        if (!has_side[0] || !has_side[1])
            throw std::invalid_argument("a machine needs rows on both of its sides");
        least_curvature_ =
            std::max(least_curvature<T> * sum / n_rows, std::numeric_limits<double>::min());
    }

    SoftMarginResult run() {
        find_first();
        while (true) {
            // 1. Choose the rows i and j.
            const T* first = column(first_);
            const std::size_t second = best_partner(first);
            // 4. Stop when the errors differ by little, or at a limit.
            result_.violation = most_ - least_;
            meter_.control().report(result_.n_stages, result_.violation);
            if (!std::isfinite(result_.violation)) break;  // which finish() refuses
            if (result_.violation <= std::max(problem_.tol, rounding * mass_ * largest_)) break;
            if (result_.n_stages >= problem_.max_stages) {
                result_.reason = SoftMarginStop::max_stages;
                break;
            }
            if (timed_out_) {
                result_.reason = SoftMarginStop::max_time;
                break;
            }
            move(first, second);
            tick(4 * alpha_.size());
        }
        finish();
        return std::move(result_);
    }

  private:
    bool may_grow(std::size_t i) const {  // alpha * y
        return label_[i] > 0 ? alpha_[i] < upper_[i] : alpha_[i] > 0;
    }
    bool may_fall(std::size_t i) const {
        return label_[i] > 0 ? alpha_[i] > 0 : alpha_[i] < upper_[i];
    }
    double room_to_grow(std::size_t i) const {
        return label_[i] > 0 ? upper_[i] - alpha_[i] : alpha_[i];
    }
    double room_to_fall(std::size_t i) const {
        return label_[i] > 0 ? alpha_[i] : upper_[i] - alpha_[i];
    }

    const T* column(std::size_t lane) {
        std::size_t n_new;
        const T* values = columns_.get(lane, n_new, [&](std::size_t n) { return likely(n, lane); });
        if (n_new) tick(n_new * columns_.work());
        return values;
    }

    // At most n other rows that are likely to move soon: those whose errors are furthest from the
    // middle, among those whose columns are missing.
    std::vector<std::size_t> likely(std::size_t n, std::size_t lane) const {
        const double middle = std::isfinite(least_) ? (most_ + least_) / 2 : 0.0;
        WorstFirst missing;
        for (std::size_t i = 0; i < alpha_.size() && n > 0; ++i) {
            const double e = error_[i] - middle;
            if (i != lane && !columns_.has(i) && ((e > 0 && may_grow(i)) || (e < 0 && may_fall(i))))
                missing.add(-std::abs(e), i);
        }
        return missing.first(n);
    }

    void find_first() {
        most_ = -infinity;
        for (std::size_t i = 0; i < alpha_.size(); ++i)
            if (error_[i] > most_ && may_grow(i)) {
                most_ = error_[i];
                first_ = i;
            }
    }

    std::size_t best_partner(const T* values) {
        std::size_t best = first_;
        double most_gain = -infinity;
        least_ = infinity;
        for (std::size_t j = 0; j < alpha_.size(); ++j) {
            if (!may_fall(j)) continue;
            least_ = std::min(least_, error_[j]);
            const double difference = most_ - error_[j];
            if (!(difference > 0)) continue;
            const double gain = difference * difference / curvature(values, j);
            if (gain > most_gain) {
                most_gain = gain;
                best = j;
            }
        }
        return best;
    }

    double curvature(const T* values, std::size_t j) const {
        return std::max(diagonal_[first_] + diagonal_[j] - 2 * static_cast<double>(values[j]),
                        least_curvature_);
    }

    void move(const T* first, std::size_t j) {
        // 2. Change both multipliers.
        const std::size_t i = first_;
        const double grow = room_to_grow(i), fall = room_to_fall(j);
        const double step = std::min({(most_ - error_[j]) / curvature(first, j), grow, fall});
        const double before = alpha_[i] + alpha_[j];
        change(i, step, step == grow);
        change(j, -step, step == fall);
        mass_ = std::max(mass_ + alpha_[i] + alpha_[j] - before, 0.0);
        // 3. Add both columns to f, and find the next row i.
        const T* second = column(j);
        most_ = -infinity;
        for (std::size_t k = 0; k < alpha_.size(); ++k) {
            error_[k] -= step * (static_cast<double>(first[k]) - static_cast<double>(second[k]));
            if (error_[k] > most_ && may_grow(k)) {
                most_ = error_[k];
                first_ = k;
            }
        }
        ++result_.n_stages;
    }

    // Adds to alpha * y; one that reaches its bound is put there exactly.
    void change(std::size_t i, double by, bool to_bound) {
        const double grown = label_[i] * by;
        if (to_bound) alpha_[i] = grown > 0 ? upper_[i] : 0.0;
        else alpha_[i] = std::clamp(alpha_[i] + grown, 0.0, upper_[i]);
    }

    // The intercept puts the rows between their bounds on the margin, on average.
    void finish() {
        double sum = 0, n_free = 0;
        std::vector<std::size_t> support;
        for (std::size_t i = 0; i < alpha_.size(); ++i) {
            if (columns_.id(i) >= 0 && !std::isfinite(error_[i])) throw NotFinite();
            if (!(alpha_[i] > 0)) continue;
            support.push_back(i);
            if (!(alpha_[i] < upper_[i])) continue;
            sum += error_[i];
            n_free += 1;
        }
        std::sort(support.begin(), support.end(),
                  [&](std::size_t a, std::size_t b) { return columns_.id(a) < columns_.id(b); });
        for (const std::size_t i : support) {
            result_.support.push_back(columns_.id(i));
            result_.multipliers.push_back(alpha_[i]);
        }
        result_.intercept = n_free > 0 ? sum / n_free : (most_ + least_) / 2;
        result_.n_values = columns_.n_values();
    }

    void tick(std::size_t work) {
        if (meter_.tick(work)) timed_out_ = meter_.is_over(deadline_);
    }

    const SoftMarginProblem& problem_;
    const Clock::time_point deadline_;
    Meter& meter_;
    SoftMarginResult result_;
    KernelColumns<T> columns_;
    std::vector<double> label_, alpha_, upper_, diagonal_, error_;  // by lane
    double largest_ = 0;                                            // |K_ii|
    double least_curvature_ = 0;
    double mass_ = 0;              // sum of alpha
    double most_ = 0, least_ = 0;  // the largest e that may grow, the least that may fall
    std::size_t first_ = 0;        // row i
    bool timed_out_ = false;
};

}  // namespace

template <class T>
std::vector<SoftMarginResult> soft_margin_machines(const SoftMarginProblem& problem,
                                                   Control& control) {
    return train_in_order<T>(
        problem, problem.memory_bytes, state_bytes, control,
        [&](const std::vector<Part<T>>& parts, BlockValues<T>& values, std::size_t memory,
            Clock::time_point deadline, Meter& meter) {
            return SoftMargin<T>(parts, values, problem, memory, deadline, meter).run();
        });
}

template std::vector<SoftMarginResult> soft_margin_machines<float>(const SoftMarginProblem&,
                                                                   Control&);
template std::vector<SoftMarginResult> soft_margin_machines<double>(const SoftMarginProblem&,
                                                                    Control&);

}  // namespace hardmargin
