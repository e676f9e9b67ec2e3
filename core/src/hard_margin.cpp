// Steps run on a working set: all rows with mass, and the worst violators without. Its columns are
// short and close together. Every so often the gradients of all rows catch up, and a new set is
// chosen. Only the gradients of all rows can end the training. The numbered steps are those of
// hard_margin.hpp.
#include "hardmargin/hard_margin.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "hardmargin/column_cache.hpp"
#include "hardmargin/errors.hpp"
#include "hardmargin/kernel_columns.hpp"
#include "hardmargin/level.hpp"
#include "hardmargin/working_set.hpp"

namespace hardmargin {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Relative to the mean of |K_ii|: smaller curvatures and rho are only rounding of kernel values.
template <class T>
constexpr double least_curvature = sizeof(T) == 4 ? 1e-7 : 1e-12;
template <class T>
constexpr double least_rho = sizeof(T) == 4 ? 1e-7 : 1e-10;

// A side of the working set gets at least this many rows without mass, if that many violate.
constexpr std::size_t fewest_open_rows = 256;

// A working set is left when its violation has fallen by this factor, or to a little below the
// tolerance.
constexpr double round_target = 0.1, last_target = 0.9;

// It is also left when the multipliers have grown by this factor: if no plane separates the
// classes, they grow without end.
constexpr double largest_growth = 4;

template <class T>
class HardMargin {
  public:
    HardMargin(const std::vector<Part<T>>& parts, BlockValues<T>& values,
               const HardMarginOptions& options, Clock::time_point deadline, Meter& meter)
        : options_(options), deadline_(deadline), meter_(meter),
          columns_(parts, values, options.memory_bytes / 2) {
        std::size_t at = 0;
        for (const Part<T>& part : parts) {
            at += part.rows->ids.size();
            sides_[part.label < 0 ? 0 : 1].end = at;
        }
        sides_[0].label = -1;
        sides_[1].label = 1;
        sides_[1].begin = sides_[0].end;
        if (options.bias) {
            sides_[1].group = 1;
            sides_[0].direction = -1;
        }
        if (sides_[0].end == 0 || sides_[1].end <= sides_[1].begin)
            throw std::invalid_argument("a machine needs rows on both of its sides");
        n_groups_ = options.bias ? 2 : 1;

        alpha_.assign(at, 0.0);
        gradient_.assign(at, infinity);  // of padding
        diagonal_.assign(at, 1.0);
        double sum = 0, n = 0;
        for (std::size_t i = 0; i < at; ++i) {
            if (columns_.id(i) < 0) continue;
            gradient_[i] = 0;
            if (options.diagonal) diagonal_[i] = options.diagonal[columns_.id(i)];
            sum += std::abs(diagonal_[i]);
            n += 1;
        }
        mean_diagonal_ = sum / n;
    }

    HardMarginResult run() {
        start();
        while (true) {
            // 4. Stop when the gradients of all rows meet the tolerance, or at a limit.
            measure();
            if (!(result_.rho > least_rho<T> * mean_diagonal_)) {
                result_.reason = HardMarginStop::rho_zero;
                break;
            }
            if (result_.violation <= options_.tol) {
                result_.reason = HardMarginStop::converged;
                if (is_fresh_) break;
                refresh();
                continue;
            }
            if (result_.n_stages >= options_.max_stages) {
                result_.reason = HardMarginStop::max_stages;
                break;
            }
            if (timed_out_) {
                result_.reason = HardMarginStop::max_time;
                break;
            }
            // Steps 1. to 3. on a working set.
            rescale();
            choose_set();
            const AlignedVector<double> before = set_.alpha;
            improve();
            catch_up(before);
        }
        finish();
        return std::move(result_);
    }

  private:
    struct Pair {
        std::size_t first = 0, second = 0;  // places in the working set
        double gain = 0;
        double violation = 0;  // of the working set
    };

    template <class Likely>
    const T* column(std::size_t lane, Likely&& likely) {
        std::size_t n_new;
        const T* values = columns_.get(lane, n_new, likely);
        if (n_new) tick(n_new * columns_.work());
        return values;
    }
    const T* column(std::size_t lane) {
        return column(lane, [](std::size_t) { return std::vector<std::size_t>(); });
    }

    // At first, two rows of opposite labels that are near each other share the mass.
    void start() {
        const auto nearest = [&](std::size_t lane, const Side& side) {
            const T* k = column(lane);
            std::size_t best = side.begin;
            double least = infinity;
            for (std::size_t i = side.begin; i < side.end; ++i) {
                const double distance = diagonal_[i] - 2 * static_cast<double>(k[i]);
                if (columns_.id(i) < 0 || !(distance < least)) continue;
                least = distance;
                best = i;
            }
            return best;
        };
        const std::size_t positive = nearest(sides_[0].begin, sides_[1]);
        const std::size_t negative = nearest(positive, sides_[0]);
        for (const std::size_t lane : {negative, positive}) {
            alpha_[lane] = 0.5;
            add_column(lane, 0.5);
        }
        is_fresh_ = true;
    }

    // Adds `change` times this lane's column of Kt to the gradients.
    void add_column(std::size_t lane, double change) {
        const T* k = column(lane);
        const double label = sides_[side_at(sides_, lane)].label;
        for (const Side& side : sides_) {
            const double step = change * label * side.label;
            level().table<T>().accumulate(gradient_.data() + side.begin, k + side.begin, 0, &step,
                                          1, side.end - side.begin);
        }
        tick(4 * gradient_.size());
    }

    // rho, the violation and the extremes of the gradients over all rows.
    void measure() {
        least_ = {infinity, infinity};
        greatest_ = {-infinity, -infinity};
        least_of_side_ = {infinity, infinity};
        double product = 0;
        mass_ = 0;
        for (std::size_t s = 0; s < sides_.size(); ++s) {
            const Side& side = sides_[s];
            for (std::size_t i = side.begin; i < side.end; ++i) {
                if (columns_.id(i) < 0) continue;
                const double g = gradient_[i];
                if (!std::isfinite(g)) throw NotFinite();
                least_of_side_[s] = std::min(least_of_side_[s], g);
                if (!(alpha_[i] > 0)) continue;
                product += alpha_[i] * g;
                mass_ += alpha_[i];
                greatest_[side.group] = std::max(greatest_[side.group], g);
            }
            least_[side.group] = std::min(least_[side.group], least_of_side_[s]);
        }
        result_.rho = product / (mass_ * mass_);
        violation_ = 0;
        for (std::size_t k = 0; k < n_groups_; ++k)
            violation_ = std::max(violation_, greatest_[k] - least_[k]);
        result_.violation = product > 0 ? violation_ * mass_ / product : infinity;
    }

    // To the scale on which the mean gradient weighted by alpha, the margin at the optimum, is 1.
    void rescale() {
        const double factor = 1 / (result_.rho * mass_);
        for (double& a : alpha_) a *= factor;
        for (double& g : gradient_) g *= factor;
        for (double& g : greatest_) g *= factor;
        violation_ *= factor;
        mass_ *= factor;
    }

    // All rows with mass, and the worst violators without.
    void choose_set() {
        const auto n_support = static_cast<std::size_t>(
            std::count_if(alpha_.begin(), alpha_.end(), [](double a) { return a > 0; }));
        const std::size_t room = std::max(fewest_open_rows, n_support);
        set_.clear();
        for (std::size_t s = 0; s < sides_.size(); ++s) {
            const Side& side = sides_[s];
            std::vector<std::uint32_t> chosen, open;
            for (std::size_t i = side.begin; i < side.end; ++i)
                if (alpha_[i] > 0) chosen.push_back(static_cast<std::uint32_t>(i));
                else if (gradient_[i] < greatest_[side.group])
                    open.push_back(static_cast<std::uint32_t>(i));
            if (open.size() > room) {
                const auto worst = open.begin() + static_cast<std::ptrdiff_t>(room);
                std::nth_element(open.begin(), worst, open.end(), [&](auto a, auto b) {
                    return gradient_[a] < gradient_[b] || (gradient_[a] == gradient_[b] && a < b);
                });
                open.erase(worst, open.end());
            }
            chosen.insert(chosen.end(), open.begin(), open.end());
            std::sort(chosen.begin(), chosen.end());

            set_.sides[s] = side;
            set_.sides[s].begin = set_.size();
            for (const std::uint32_t i : chosen)
                set_.add(i, gradient_[i] - 1, alpha_[i], diagonal_[i]);
            while (set_.size() % pair_rows != 0) set_.add(chosen[0], infinity, 0, 1);
            set_.sides[s].end = set_.size();
        }
        short_columns_.reset(set_.size(), set_.size(), options_.memory_bytes / 2);
    }

    // The column of a row of the working set, restricted to the working set.
    const T* short_column(std::size_t place) {
        if (const T* kept = short_columns_.find(place)) return kept;
        const T* k = column(set_.lanes[place], [&](std::size_t n) { return likely(n, place); });
        T* values = short_columns_.add(place);
        for (std::size_t p = 0; p < set_.size(); ++p) values[p] = k[set_.lanes[p]];
        tick(2 * set_.size());
        return values;
    }

    // At most n other rows of the working set that are likely to move soon: the worst violators
    // among those whose columns are missing.
    std::vector<std::size_t> likely(std::size_t n, std::size_t place) const {
        WorstFirst missing;
        for (std::size_t p = 0; p < set_.size() && n > 0; ++p)
            if (p != place && set_.gradient[p] < 0 && !columns_.has(set_.lanes[p]))
                missing.add(set_.gradient[p], set_.lanes[p]);
        return missing.first(n);
    }

    // Steps within the working set.
    void improve() {
        const double target = std::max(last_target * options_.tol, round_target * violation_);
        for (std::size_t s = 0; s < sides_.size(); ++s) find_first(s);
        const double most_mass = largest_growth * mass_;
        while (true) {
            // 1. Choose the rows i and j.
            const Pair pair = best_pair();
            // 4. Leave the working set when its violation is small enough, or at a limit.
            const bool decides = options_.bias || set_.sides[0].direction > 0;
            const bool is_done = !(pair.violation > target);
            if (decides) meter_.control().report(result_.n_stages, pair.violation);
            if (decides && is_done) return;
            if (mass_ > most_mass || result_.n_stages >= options_.max_stages || timed_out_) return;
            if (!is_done && pair.gain > 0) {
                // 2. Change both multipliers; 3. add both columns to the gradients.
                move(pair);
            } else if (decides) {
                throw NotFinite();  // finite curvatures would give a gain
            } else {
                turn();
                for (std::size_t s = 0; s < sides_.size(); ++s) find_first(s);
            }
            tick(4 * set_.size());
        }
    }

    // Without bias, only steps with u = 1 decide when to stop, as they keep the sum of all
    // multipliers. Every other step uses u = y, so that close rows of opposite labels don't zigzag.
    void turn() {
        if (!options_.bias) set_.sides[0].direction = -set_.sides[0].direction;
    }

    void find_first(std::size_t s) {
        const Side& side = set_.sides[s];
        first_[s] = {infinity, side.begin};
        for (std::size_t p = side.begin; p < side.end; ++p) {
            const double value = side.direction * set_.gradient[p];
            if (set_.alpha[p] > side.forward().least_alpha && value < first_[s].value)
                first_[s] = {value, p};
        }
    }

    // 1. Row i promises most to first order; row j gains most together with it. The step will
    // change alpha_i by u_i t and alpha_j by -u_j t; with bias, u = y keeps y'alpha = 0.
    Pair best_pair() {
        Pair best;
        const std::size_t first = first_[1].value < first_[0].value ? 1 : 0;
        best.first = first_[first].at;
        const T* values = short_column(best.first);
        for (const Side& side : set_.sides) {
            const PartnerSearch search{
                side.backward(), -first_[first].value, set_.diagonal[best.first],
                2 * sign_between(set_.sides[first], side), least_curvature<T> * mean_diagonal_};
            const Partner found = level().table<T>().partner(
                search, set_.gradient.data() + side.begin, set_.alpha.data() + side.begin,
                set_.diagonal.data() + side.begin, values + side.begin, side.end - side.begin);
            best.violation = std::max(best.violation, found.furthest);
            if (!(found.gain.value > best.gain)) continue;
            best.gain = found.gain.value;
            best.second = side.begin + found.gain.at;
        }
        return best;
    }

    // u_i u_j y_i y_j
    static double sign_between(const Side& a, const Side& b) {
        return a.direction * b.direction * a.label * b.label;
    }

    void move(const Pair& pair) {
        const T* first = short_column(pair.first);
        const T* second = short_column(pair.second);
        const Side& first_side = set_.sides[side_at(set_.sides, pair.first)];
        const Side& second_side = set_.sides[side_at(set_.sides, pair.second)];
        const double curvature = std::max(set_.diagonal[pair.first] + set_.diagonal[pair.second] -
                                              2 * sign_between(first_side, second_side) *
                                                  static_cast<double>(first[pair.second]),
                                          least_curvature<T> * mean_diagonal_);
        const double difference = second_side.direction * set_.gradient[pair.second] -
                                  first_side.direction * set_.gradient[pair.first];
        // 2. Change both multipliers, to the minimum or until one of them is 0.
        double step = difference / curvature;
        if (first_side.direction < 0) step = std::min(step, set_.alpha[pair.first]);
        if (second_side.direction > 0) step = std::min(step, set_.alpha[pair.second]);
        const double first_change = first_side.direction * step;
        const double second_change = -second_side.direction * step;
        set_.alpha[pair.first] += first_change;
        set_.alpha[pair.second] += second_change;
        mass_ += first_change + second_change;
        turn();
        // 3. Add both columns to the gradients, and find the next candidates for row i.
        for (std::size_t s = 0; s < sides_.size(); ++s) {
            const Side& side = set_.sides[s];
            first_[s] = level().table<T>().exchange(
                side.forward(), set_.gradient.data() + side.begin, set_.alpha.data() + side.begin,
                first + side.begin, first_change * first_side.label * side.label,
                second + side.begin, second_change * second_side.label * side.label,
                side.end - side.begin);
            first_[s].at += side.begin;
        }
        ++result_.n_stages;
    }

    // Applies the changes within the working set to the gradients of all rows.
    void catch_up(const AlignedVector<double>& before) {
        for (std::size_t p = 0; p < set_.size(); ++p) {
            if (set_.alpha[p] == before[p]) continue;
            alpha_[set_.lanes[p]] = set_.alpha[p];
            add_column(set_.lanes[p], set_.alpha[p] - before[p]);
        }
        is_fresh_ = false;
    }

    // Normalises alpha and recomputes the gradients, free of accumulated rounding.
    void refresh() {
        std::array<double, 2> mass{};
        for (const Side& side : sides_)
            for (std::size_t i = side.begin; i < side.end; ++i) mass[side.group] += alpha_[i];
        for (std::size_t i = 0; i < gradient_.size(); ++i)
            if (columns_.id(i) >= 0) gradient_[i] = 0;
        for (const Side& side : sides_)
            for (std::size_t i = side.begin; i < side.end; ++i) {
                if (!(alpha_[i] > 0)) continue;
                alpha_[i] /= mass[side.group] * static_cast<double>(n_groups_);
                add_column(i, alpha_[i]);
            }
        is_fresh_ = true;
    }

    void finish() {
        std::vector<std::size_t> support;
        for (std::size_t i = 0; i < alpha_.size(); ++i)
            if (alpha_[i] > 0) support.push_back(i);
        std::sort(support.begin(), support.end(),
                  [&](std::size_t a, std::size_t b) { return columns_.id(a) < columns_.id(b); });
        for (const std::size_t i : support) {
            result_.support.push_back(columns_.id(i));
            result_.multipliers.push_back(alpha_[i] / mass_);
        }
        if (options_.bias)
            result_.intercept = (least_of_side_[0] - least_of_side_[1]) / (2 * mass_);
        const double margin = (options_.bias ? (least_[0] + least_[1]) / 2 : least_[0]) / mass_;
        result_.rho = std::max(result_.rho, 0.0);
        if (margin > 0)
            result_.rho_lower_bound = std::min(margin * margin / result_.rho, result_.rho);
        result_.n_values = columns_.n_values();
    }

    void tick(std::size_t work) {
        if (meter_.tick(work)) timed_out_ = meter_.is_over(deadline_);
    }

    const HardMarginOptions options_;
    const Clock::time_point deadline_;
    Meter& meter_;
    HardMarginResult result_;
    KernelColumns<T> columns_;
    Sides sides_;
    std::size_t n_groups_ = 0;
    double mean_diagonal_ = 0;
    bool timed_out_ = false;

    AlignedVector<double> alpha_, gradient_, diagonal_;  // by lane
    bool is_fresh_ = false;                              // the gradients were just recomputed
    double mass_ = 0;
    double violation_ = 0;
    std::array<double, 2> least_{}, greatest_{};  // by group: min g, and max g where alpha > 0
    std::array<double, 2> least_of_side_{};

    WorkingSet set_;
    std::array<Best, 2> first_{};   // by side: the row that promises most
    ColumnCache<T> short_columns_;  // by place in the working set
};

}  // namespace

template <class T>
HardMarginResult hard_margin_fit(const std::vector<Part<T>>& parts, BlockValues<T>& values,
                                 const HardMarginOptions& options, Clock::time_point deadline,
                                 Meter& meter) {
    return HardMargin<T>(parts, values, options, deadline, meter).run();
}

template HardMarginResult hard_margin_fit(const std::vector<Part<float>>&, BlockValues<float>&,
                                          const HardMarginOptions&, Clock::time_point, Meter&);
template HardMarginResult hard_margin_fit(const std::vector<Part<double>>&, BlockValues<double>&,
                                          const HardMarginOptions&, Clock::time_point, Meter&);

}  // namespace hardmargin
