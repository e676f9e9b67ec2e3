#include "hardmargin/core_set.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "hardmargin/aligned.hpp"
#include "hardmargin/errors.hpp"
#include "hardmargin/level.hpp"

namespace hardmargin {
namespace {

// Relative to both diagonals: a smaller determinant of two rows is only rounding of kernel values.
template <class T>
constexpr double least_determinant = sizeof(T) == 4 ? 1e-6 : 1e-12;

// Two multipliers, and the slopes and the curvature of the objective in them.
struct Two {
    double a, b;              // multipliers
    double slope_a, slope_b;  // 1 - gradient
    double q_aa, q_bb, q_ab;

    struct Step {
        double a = 0, b = 0;
    };

    double gain(const Step& s) const {
        return slope_a * s.a + slope_b * s.b -
               (q_aa * s.a * s.a + 2 * q_ab * s.a * s.b + q_bb * s.b * s.b) / 2;
    }

    // The minimum over both; if one would become negative, the better of the two edges.
    Step best(double least) const {
        const double determinant = std::max(q_aa * q_bb - q_ab * q_ab, least * q_aa * q_bb);
        const Step free{(q_bb * slope_a - q_ab * slope_b) / determinant,
                        (q_aa * slope_b - q_ab * slope_a) / determinant};
        const Step a_is_zero{-a, std::max((slope_b + q_ab * a) / q_bb, -b)};
        const Step b_is_zero{std::max((slope_a + q_ab * b) / q_aa, -a), -b};
        Step chosen = gain(a_is_zero) > gain(b_is_zero) ? a_is_zero : b_is_zero;
        if (a + free.a >= 0 && b + free.b >= 0 && !(gain(chosen) > gain(free))) chosen = free;
        return chosen;
    }
};

}  // namespace

template <class T>
CoreSetResult core_set_steps(const T* q, std::size_t stride, std::size_t n, double* alpha,
                             double* gradient, double tol, double largest_mass,
                             std::size_t max_steps, Clock::time_point deadline, Control& control) {
    const std::size_t padded = round_up(n, pair_rows);
    AlignedVector<double> a(padded, 0.0), diagonal(padded, 1.0);
    AlignedVector<double> g(padded, std::numeric_limits<double>::infinity());
    std::copy_n(alpha, n, a.begin());
    std::copy_n(gradient, n, g.begin());
    double trace = 0, mass = 0;
    for (std::size_t i = 0; i < n; ++i) mass += alpha[i];
    for (std::size_t i = 0; i < n; ++i) trace += std::abs(static_cast<double>(q[i * stride + i]));
    for (std::size_t i = 0; i < n; ++i)
        diagonal[i] = std::max(static_cast<double>(q[i * stride + i]),
                               least_determinant<T> * trace / static_cast<double>(n));
    const LevelTable<T>& table = level().table<T>();

    CoreSetResult result;
    Meter meter(control, true);
    // 1. Choose the row i whose gradient is furthest from 1.
    Best first = table.adjust(g.data(), a.data(), q, 0, q, 0, padded);
    // 5. Stop when it is within the tolerance, or at a limit.
    while (first.value > tol && result.n_steps < max_steps && !result.timed_out &&
           !result.diverged) {
        const std::size_t i = first.at;
        const T* column = q + i * stride;
        // 2. Choose the row j that gains most together with it.
        const Best other = table.companion({1 - g[i], diagonal[i], least_determinant<T>}, g.data(),
                                           a.data(), diagonal.data(), column, padded);
        const std::size_t j = other.at;
        // 3. Move both multipliers to the minimum over the two; without a j, only that of i.
        Two::Step step;
        if (other.value > 0 && j != i) {
            step = Two{a[i],
                       a[j],
                       1 - g[i],
                       1 - g[j],
                       diagonal[i],
                       diagonal[j],
                       static_cast<double>(column[j])}
                       .best(least_determinant<T>);
        } else {
            step.a = std::max((1 - g[i]) / diagonal[i], -a[i]);
        }
        a[i] = std::max(a[i] + step.a, 0.0);
        if (step.b != 0) a[j] = std::max(a[j] + step.b, 0.0);
        // 4. Add both columns to the gradient; 1. choose the next row i.
        first = table.adjust(g.data(), a.data(), column, step.a, q + j * stride, step.b, padded);
        mass += step.a + step.b;
        result.diverged = mass > largest_mass;
        ++result.n_steps;
        if (meter.tick(8 * padded)) {
            control.report(result.n_steps, first.value);
            result.timed_out = meter.is_over(deadline);
        }
    }
    // Values that are not finite are never chosen, but spread to the gradients.
    if (!std::all_of(g.begin(), g.begin() + static_cast<std::ptrdiff_t>(n),
                     [](double v) { return std::isfinite(v); }))
        throw NotFinite();
    result.violation = std::max(first.value, 0.0);
    std::copy_n(a.begin(), n, alpha);
    std::copy_n(g.begin(), n, gradient);
    return result;
}

template <class T>
void join_core_set(const CoreSetRows& rows, const T* values, std::size_t stride,
                   const std::int64_t* slots, const std::int64_t* places, T* q,
                   std::size_t q_stride) {
    for (std::size_t i = rows.n; i < rows.total; ++i) {
        const T* column = values + static_cast<std::size_t>(slots[i - rows.n]) * stride;
        const double* own = rows.projections + i * rows.n_directions;
        T* to = q + i * q_stride;
        for (std::size_t j = 0; j < rows.total; ++j) {
            double value = static_cast<double>(column[places[j]]) + rows.bias;
            for (std::size_t d = 0; d < rows.n_directions; ++d)
                value -= own[d] * rows.projections[j * rows.n_directions + d];
            to[j] = static_cast<T>(rows.labels[i] * rows.labels[j] * value);
        }
        to[i] = static_cast<T>(rows.diagonal[i - rows.n]);
    }
    constexpr std::size_t side = 64;  // tiles that stay in the L1 cache
    for (std::size_t begin = 0; begin < rows.n; begin += side)
        for (std::size_t first = rows.n; first < rows.total; first += side)
            for (std::size_t j = begin; j < std::min(begin + side, rows.n); ++j)
                for (std::size_t i = first; i < std::min(first + side, rows.total); ++i)
                    q[j * q_stride + i] = q[i * q_stride + j];
}

template <class T>
void sum_columns(const T* values, std::size_t stride, const std::int64_t* slots, const double* coef,
                 std::size_t n_columns, std::size_t n, double* out, Control& control) {
    constexpr std::size_t block = 2048;  // sums that stay in the L1 cache
    alignas(64) double sums[block];
    Meter meter(control, true);
    for (std::size_t begin = 0; begin < n; begin += block) {
        const std::size_t size = std::min(block, n - begin);
        std::fill(sums, sums + block, 0.0);
        const std::size_t whole = size / 8 * 8;
        for (std::size_t c = 0; c < n_columns; ++c) {
            const T* column = values + static_cast<std::size_t>(slots[c]) * stride + begin;
            level().table<T>().accumulate(sums, column, 0, coef + c, 1, whole);
            if (whole == size) continue;
            alignas(64) T rest[8] = {};  // the memory after the last row may not be ours to read
            std::copy(column + whole, column + size, rest);
            level().table<T>().accumulate(sums + whole, rest, 0, coef + c, 1, 8);
        }
        std::copy_n(sums, size, out + begin);
        meter.tick(n_columns * size);
    }
}

template <class T>
void sum_columns_at(const T* values, std::size_t stride, const std::int64_t* slots,
                    const double* coef, std::size_t n_columns, const std::int64_t* rows,
                    std::size_t n, double* out) {
    std::fill(out, out + n, 0.0);
    for (std::size_t c = 0; c < n_columns; ++c) {
        const T* column = values + static_cast<std::size_t>(slots[c]) * stride;
        for (std::size_t i = 0; i < n; ++i)
            out[i] += coef[c] * static_cast<double>(column[rows[i]]);
    }
}

template CoreSetResult core_set_steps(const float*, std::size_t, std::size_t, double*, double*,
                                      double, double, std::size_t, Clock::time_point, Control&);
template CoreSetResult core_set_steps(const double*, std::size_t, std::size_t, double*, double*,
                                      double, double, std::size_t, Clock::time_point, Control&);
template void join_core_set(const CoreSetRows&, const float*, std::size_t, const std::int64_t*,
                            const std::int64_t*, float*, std::size_t);
template void join_core_set(const CoreSetRows&, const double*, std::size_t, const std::int64_t*,
                            const std::int64_t*, double*, std::size_t);
template void sum_columns(const float*, std::size_t, const std::int64_t*, const double*,
                          std::size_t, std::size_t, double*, Control&);
template void sum_columns(const double*, std::size_t, const std::int64_t*, const double*,
                          std::size_t, std::size_t, double*, Control&);
template void sum_columns_at(const float*, std::size_t, const std::int64_t*, const double*,
                             std::size_t, const std::int64_t*, std::size_t, double*);
template void sum_columns_at(const double*, std::size_t, const std::int64_t*, const double*,
                             std::size_t, const std::int64_t*, std::size_t, double*);

}  // namespace hardmargin
