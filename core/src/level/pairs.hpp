// Steps that move mass from one row to another, and the choice of rows. Part of level.cpp.
#pragma once

#include "sums.hpp"

namespace hardmargin {
namespace {

// The first place of the largest value seen, lane by lane.
struct BestLanes {
    Vec<double> value = spread(-__builtin_inf());
    Vec<double> at = {};

    void see(Vec<double> v, Vec<double> places) {
        const auto is_better = v > value;
        value = is_better ? v : value;
        at = is_better ? places : at;
    }
    void see(const BestLanes& other) {
        const auto is_better = (other.value > value) | ((other.value == value) & (other.at < at));
        value = is_better ? other.value : value;
        at = is_better ? other.at : at;
    }
    Best best() const {
        double v = value[0], place = at[0];
        for (std::size_t i = 1; i < sizeof(value) / sizeof(double); ++i)
            if (value[i] > v || (value[i] == v && at[i] < place)) {
                v = value[i];
                place = at[i];
            }
        return {v, static_cast<std::size_t>(place)};
    }
};

constexpr std::size_t pair_width = vector_bytes / sizeof(double);

[[gnu::always_inline]] inline Vec<double> first_places() {
    Vec<double> places = {};
    for (std::size_t i = 0; i < pair_width; ++i) places[i] = static_cast<double>(i);
    return places;
}

template <class T>
Best exchange(const Role& role, double* gradient, const double* alpha, const T* first,
              double first_step, const T* second, double second_step, std::size_t n) {
    constexpr int chains = 2;
    static_assert(pair_rows % (chains * pair_width) == 0);
    const Vec<double> least_alpha = spread(role.least_alpha), none = spread(-__builtin_inf());
    BestLanes best[chains];
    Vec<double> places = first_places();
    for (std::size_t i = 0; i < n; i += chains * pair_width)
        for (int j = 0; j < chains; ++j) {
            const std::size_t at = i + static_cast<std::size_t>(j) * pair_width;
            const Vec<double> g = load<Vec<double>>(gradient + at) +
                                  first_step * widen(first + at) + second_step * widen(second + at);
            store<Vec<double>>(gradient + at, g);
            best[j].see(load<Vec<double>>(alpha + at) > least_alpha ? -role.sign * g : none,
                        places);
            places += static_cast<double>(pair_width);
        }
    best[0].see(best[1]);
    const Best least = best[0].best();
    return {-least.value, least.at};
}

template <class T>
Partner partner(const PartnerSearch& search, const double* gradient, const double* alpha,
                const double* diagonal, const T* column, std::size_t n) {
    const Vec<double> least_alpha = spread(search.role.least_alpha), none = {};
    BestLanes best;
    Vec<double> furthest = {};
    Vec<double> places = first_places();
    for (std::size_t i = 0; i < n; i += pair_width) {
        const Vec<double> ahead =
            larger(search.level + search.role.sign * load<Vec<double>>(gradient + i), none);
        const Vec<double> open = load<Vec<double>>(alpha + i) > least_alpha ? ahead : none;
        const Vec<double> curvature = search.diagonal + load<Vec<double>>(diagonal + i) -
                                      search.twice_sign * widen(column + i);
        best.see(open * open / larger(curvature, spread(search.least_curvature)), places);
        furthest = larger(open, furthest);
        places += static_cast<double>(pair_width);
    }
    return {best.best(), largest_lane(furthest)};
}

template <class T>
Best adjust(double* gradient, const double* alpha, const T* first, double first_step,
            const T* second, double second_step, std::size_t n) {
    constexpr int chains = 2;
    static_assert(pair_rows % (chains * pair_width) == 0);
    const Vec<double> none = {};
    BestLanes best[chains];
    Vec<double> places = first_places();
    for (std::size_t i = 0; i < n; i += chains * pair_width)
        for (int j = 0; j < chains; ++j) {
            const std::size_t at = i + static_cast<std::size_t>(j) * pair_width;
            const Vec<double> g = load<Vec<double>>(gradient + at) +
                                  first_step * widen(first + at) + second_step * widen(second + at);
            store<Vec<double>>(gradient + at, g);
            const Vec<double> below = 1.0 - g;
            best[j].see(load<Vec<double>>(alpha + at) > none ? larger(below, -below) : below,
                        places);
            places += static_cast<double>(pair_width);
        }
    best[0].see(best[1]);
    return best[0].best();
}

template <class T>
Best companion(const CompanionSearch& search, const double* gradient, const double* alpha,
               const double* diagonal, const T* column, std::size_t n) {
    const Vec<double> none = {};
    BestLanes best;
    Vec<double> places = first_places();
    for (std::size_t i = 0; i < n; i += pair_width) {
        const Vec<double> q = widen(column + i);
        const Vec<double> both = search.diagonal * load<Vec<double>>(diagonal + i);
        const Vec<double> determinant = larger(both - q * q, search.least_determinant * both);
        // The step of this row is `step` / determinant.
        const Vec<double> step =
            search.diagonal * (1.0 - load<Vec<double>>(gradient + i)) - q * search.slope;
        const auto may_change = (step > none) | (load<Vec<double>>(alpha + i) > none);
        best.see(may_change ? step * step / determinant : none, places);
        places += static_cast<double>(pair_width);
    }
    return best.best();
}

}  // namespace
}  // namespace hardmargin
