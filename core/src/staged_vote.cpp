#include "hardmargin/staged_vote.hpp"

#include <algorithm>
#include <cmath>

namespace hardmargin {
namespace {

// Damping factor of the steps: a larger one overshoots.
double damping(PathLoss loss) { return loss == PathLoss::logistic ? 0.2 / 1.2 : 0.1 / 1.1; }

constexpr double least_gain = 1e-12;
constexpr int bias_steps = 3, scale_steps = 8;
constexpr double largest_log_scale = 5;  // reached if held-out scores separate the classes
constexpr double least_vote = 1e-9;      // smaller votes of a stage are ignored
constexpr std::size_t least_patience = 12;

// Smaller multipliers become 0, as their products would be subnormal.
template <class T>
constexpr T least_step = sizeof(T) == 4 ? T(1e-20) : T(1e-200);

}  // namespace

template <class T>
Path<T>::Path(const PathData<T>& data, const PathOptions& options)
    : data_(data), options_(options) {
    const auto size = static_cast<std::size_t>(data.n_columns) * data.padded;
    for (auto* of_columns : {&scores_, &last_, &direction_, &steps_, &weights_})
        of_columns->assign(size, T(0));
    h_.assign(data.padded, T(0));
    margins_.assign(data.held_weights.size(), T(0));
    bias_.assign(static_cast<std::size_t>(data.n_columns), 0.0);
    judged_bias_ = bias_;
    const std::size_t n_kept = options.all_columns ? bias_.size() : 1;
    for (auto* of_rows : {&coefficients_, &last_coefficients_, &mix_})
        of_rows->assign(n_kept * data.rows.size(), 0.0);
    held_mix_.assign(data.held_rows.size(), 0.0);
    for (int c = 0; options.bias && c < data.n_columns; ++c) {
        double positive = 0, negative = 0;
        for (std::size_t i = 0; i < data.rows.size(); ++i) {
            const T y = data.labels[at(c) + i];
            if (y > 0) positive += static_cast<double>(data.weights[i]);
            if (y < 0) negative += static_cast<double>(data.weights[i]);
        }
        bias_[static_cast<std::size_t>(c)] = 0.5 * std::log(positive / negative);
    }
}

template <class T>
void Path<T>::run(const Matrices<T>& matrices, std::size_t until, Clock::time_point deadline,
                  Meter& meter) {
    const std::size_t n_shared = bias_.size() / matrices.size();  // columns of a matrix
    std::size_t cost = 0;
    for (const auto& matrix : matrices) cost += n_shared * matrix->cost();
    while (is_running() && stage_ < until) {
        if (stage_ > 0 && meter.is_over(deadline)) {
            reason_ = PathStop::max_time;
            break;
        }
        // 1. to 4. Weights, multipliers, product and step.
        step(matrices);
        meter.tick(cost);
        // 5. Judge the stage.
        if (is_running() && is_judged(stage_)) judge();
        // 6. Stop when the loss has not fallen for a while, or at a limit.
        if (is_running()) stop_when_due();
    }
    if (!is_running() && !is_any_judged_) judge();
}

template <class T>
void Path<T>::give_up(PathStop reason) {
    reason_ = reason;
    judge();
}

// 1. The weights of the rows; 2. the signed multipliers made of them, and the bias.
template <class T>
void Path<T>::weigh(int column) {
    const T* y = data_.labels.data() + at(column);
    T* w = weights_.data() + at(column);
    double& bias = bias_[static_cast<std::size_t>(column)];
    const LogisticSums sums = table_.logistic(y, data_.weights.data(), scores_.data() + at(column),
                                              bias, w, data_.padded);
    double positive = sums.positive, negative = sums.negative;
    if (options_.loss == PathLoss::exponential) {
        weigh_exponentially(column);
        positive = negative = 0;
        for (std::size_t i = 0; i < data_.rows.size(); ++i)
            (y[i] > 0 ? positive : negative) += static_cast<double>(w[i]);
    }
    if (!options_.bias) positive = negative = (positive + negative) / 2;
    const T up = static_cast<T>(0.5 / positive), down = static_cast<T>(0.5 / negative);
    T* steps = steps_.data() + at(column);
    for (std::size_t i = 0; i < data_.rows.size(); ++i) {
        const T a = y[i] * w[i] * (y[i] > 0 ? up : down);
        steps[i] = std::abs(a) < least_step<T> ? T(0) : a;
    }
    if (options_.bias) bias += shift_of(sums);
}

template <class T>
void Path<T>::weigh_exponentially(int column) {
    const T* y = data_.labels.data() + at(column);
    const T* scores = scores_.data() + at(column);
    T* w = weights_.data() + at(column);
    // The largest weight is one in each class, or among all rows if there is no bias.
    double top[2] = {-std::numeric_limits<double>::infinity(),
                     -std::numeric_limits<double>::infinity()};
    for (std::size_t i = 0; i < data_.rows.size(); ++i)
        if (y[i] != 0)
            top[y[i] > 0] = std::max(top[y[i] > 0], -static_cast<double>(y[i] * scores[i]));
    if (!options_.bias) top[0] = top[1] = std::max(top[0], top[1]);
    for (std::size_t i = 0; i < data_.rows.size(); ++i)
        w[i] = y[i] == 0 ? T(0)
                         : data_.weights[i] *
                               static_cast<T>(std::exp(-static_cast<double>(y[i] * scores[i]) -
                                                       top[y[i] > 0]));
}

template <class T>
double Path<T>::shift_of(const LogisticSums& sums) const {
    if (!(sums.curvature > 0)) return 0;
    return std::clamp((sums.positive - sums.negative) / (2 * sums.curvature), -1.0, 1.0);
}

template <class T>
void Path<T>::multiply(const Matrices<T>& matrices) {
    const int n_shared = data_.n_columns / static_cast<int>(matrices.size());
    for (int c = 0; c < data_.n_columns; c += n_shared)
        (*matrices[static_cast<std::size_t>(c / n_shared)])(
            steps_.data() + at(c), n_shared, direction_.data() + at(c), data_.padded);
}

template <class T>
void Path<T>::step(const Matrices<T>& matrices) {
    // 1. and 2. Weights and multipliers of every column.
    for (int c = 0; c < data_.n_columns; ++c) weigh(c);
    // 3. Multiply.
    multiply(matrices);

    // 4. Move the scores by the Newton step of column 0, with momentum.
    for (std::size_t i = 0; i < data_.rows.size(); ++i) {
        const T v = data_.weights[i];
        h_[i] = v > 0 ? std::abs(steps_[i]) * (T(1) - weights_[i] / v) : T(0);
    }
    const StepSums sums = table_.step(steps_.data(), h_.data(), direction_.data(), scores_.data(),
                                      last_.data(), data_.padded);
    if (!(sums.gain > least_gain)) {
        reason_ = PathStop::rho_zero;
        return;
    }
    const double rate = step_length(sums);
    double next = (1 + std::sqrt(1 + 4 * momentum_ * momentum_)) / 2;
    double carry = (momentum_ - 1) / next;
    if (sums.along + rate * sums.gain < 0) {  // the momentum points the wrong way: restart
        next = 1;
        carry = 0;
    }
    momentum_ = next;
    table_.advance(scores_.data(), last_.data(), direction_.data(), rate, carry, scores_.size());
    const std::size_t n = data_.rows.size();
    for (std::size_t p = 0; p < coefficients_.size(); ++p) {
        const T a = steps_[p / n * data_.padded + p % n];
        const double moved = coefficients_[p] + rate * static_cast<double>(a);
        coefficients_[p] = moved + carry * (moved - last_coefficients_[p]);
        last_coefficients_[p] = moved;
    }
    ++stage_;
}

template <class T>
double Path<T>::step_length(const StepSums& sums) const {
    double curvature = 2 * sums.second;
    if (options_.loss == PathLoss::exponential) curvature = spread_in_classes();
    else if (options_.bias) curvature -= 2 * sums.first * sums.first / sums.mass;
    const double longest = 1 / sums.gain;
    if (!(curvature > 0)) return longest;
    return std::min(damping(options_.loss) * sums.gain / curvature, longest);
}

// Variance of the direction under the multipliers: the mean over both classes or, without bias, the
// variance of label times direction over all rows.
template <class T>
double Path<T>::spread_in_classes() const {
    double mass[2] = {}, first[2] = {}, second[2] = {};
    for (std::size_t i = 0; i < data_.rows.size(); ++i) {
        const double y = static_cast<double>(data_.labels[i]);
        const double a = std::abs(static_cast<double>(steps_[i]));
        const double d = (options_.bias ? 1.0 : y) * static_cast<double>(direction_[i]);
        const bool side = options_.bias && y > 0;
        mass[side] += a;
        first[side] += a * d;
        second[side] += a * d * d;
    }
    double sum = 0;
    const int n_sides = options_.bias ? 2 : 1;
    for (int side = 0; side < n_sides; ++side)
        sum += second[side] / mass[side] - std::pow(first[side] / mass[side], 2);
    return sum / n_sides;
}

// 5. The held-out loss of the stage, and its vote.
template <class T>
void Path<T>::judge() {
    is_any_judged_ = true;
    judged_bias_ = bias_;
    for (int c = 0; options_.bias && c < data_.n_columns; ++c)
        for (int i = 0; i < bias_steps; ++i) {
            double& bias = judged_bias_[static_cast<std::size_t>(c)];
            bias += shift_of(table_.logistic(data_.labels.data() + at(c), data_.weights.data(),
                                             last_.data() + at(c), bias, nullptr, data_.padded));
        }
    for (std::size_t p = 0; p < data_.held_rows.size(); ++p) {
        const std::size_t row = data_.held_rows[p], column = data_.held_columns[p];
        margins_[p] = data_.labels[row] *
                      (last_[column * data_.padded + row] + static_cast<T>(judged_bias_[column]));
    }
    fit_scale();
    const double loss = held_loss(), scale = std::exp(log_scale_);
    stages_.push_back(static_cast<std::int64_t>(stage_));
    losses_.push_back(loss);
    const double sharpness = options_.sharpness * data_.evidence;
    if (loss < loss_) {
        const double fade = mass_ > 0 ? std::exp(-sharpness * (loss_ - loss)) : 0.0;
        for (double& c : mix_) c *= fade;
        for (double& h : held_mix_) h *= fade;
        mix_intercept_ *= fade;
        mass_ *= fade;
        loss_ = loss;
        best_stage_ = stage_;
    }
    const double vote = std::exp(-sharpness * (loss - loss_));
    if (vote < least_vote) return;
    for (std::size_t i = 0; i < mix_.size(); ++i) mix_[i] += vote * scale * last_coefficients_[i];
    for (std::size_t p = 0; p < held_mix_.size(); ++p)
        held_mix_[p] +=
            vote * scale * static_cast<double>(data_.labels[data_.held_rows[p]] * margins_[p]);
    mix_intercept_ += vote * scale * judged_bias_[0];
    mass_ += vote;
}

// The scale of the held-out margins with the least logistic loss, by Newton's method on its
// logarithm.
template <class T>
void Path<T>::fit_scale() {
    if (data_.held_rows.empty()) return;
    for (int i = 0; i < scale_steps; ++i) {
        const TemperSums sums = table_.temper(margins_.data(), data_.held_weights.data(),
                                              std::exp(log_scale_), margins_.size());
        if (!(sums.curvature > 0)) return;
        const double change = std::clamp(sums.slope / sums.curvature, -1.0, 1.0);
        const double next = std::clamp(log_scale_ + change, -largest_log_scale, largest_log_scale);
        const bool settled = std::abs(next - log_scale_) < 1e-5;
        log_scale_ = next;
        if (settled) return;
    }
}

template <class T>
double Path<T>::held_loss() const {
    if (data_.held_rows.empty()) return 0;
    return table_.log_loss(margins_.data(), data_.held_weights.data(), std::exp(log_scale_),
                           margins_.size()) /
           data_.held_weight;
}

template <class T>
bool Path<T>::is_judged(std::size_t stage) const {
    if (options_.n_stages > 0) return stage == options_.n_stages;
    return stage <= 16 || stage % (stage < 48 ? 2 : 4) == 0;
}

template <class T>
void Path<T>::stop_when_due() {
    if (options_.n_stages > 0) {
        if (stage_ >= options_.n_stages) reason_ = PathStop::n_stages;
    } else if (stage_ - best_stage_ >= std::max(least_patience, best_stage_ / 2)) {
        reason_ = PathStop::patience;
    } else if (stage_ >= options_.max_stages) {
        reason_ = PathStop::max_stages;
    }
}

template <class T>
double Path<T>::loss_at(std::size_t stage) const {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < stages_.size(); ++i)
        if (stages_[i] <= static_cast<std::int64_t>(stage)) least = std::min(least, losses_[i]);
    return least;
}

template <class T>
StagedVotePath Path<T>::result() const {
    StagedVotePath r;
    r.coefficients = mix_;
    for (double& c : r.coefficients) c /= mass_;
    r.intercept = mix_intercept_ / mass_;
    r.held_scores = held_mix_;
    for (double& h : r.held_scores) h /= mass_;
    r.mass = mass_;
    r.loss = loss_;
    r.stages = stages_;
    r.losses = losses_;
    r.n_stages = stage_;
    r.reason = reason_;
    return r;
}

template class Path<float>;
template class Path<double>;

}  // namespace hardmargin
