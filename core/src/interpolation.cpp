#include "hardmargin/interpolation.hpp"

#include <algorithm>

namespace hardmargin {

namespace {

// Rows that stay in the cache while one column after another is replaced.
constexpr std::size_t rows_at_once = 256;

// The last of n ascending values that is at most x, or the first. The number of steps depends on n
// alone and no step is a branch, which is what makes it fast.
std::size_t last_at_most(const double* values, std::size_t n, double x) {
    const double* first = values;
    while (n > 1) {
        const std::size_t half = n / 2;
        first += first[half] <= x ? half : 0;
        n -= half;
    }
    return static_cast<std::size_t>(first - values);
}

double interpolated(const double* values, const double* scores, std::size_t n, double x) {
    const std::size_t at = last_at_most(values, n, x);
    if (at + 1 == n || x < values[0]) return scores[at];
    const double slope = (scores[at + 1] - scores[at]) / (values[at + 1] - values[at]);
    return slope * (x - values[at]) + scores[at];
}

}  // namespace

void interpolate_columns(const Knots& knots, double* rows, std::size_t n_rows, std::size_t stride,
                         Control& control) {
    Meter meter(control, true);
    for (std::size_t begin = 0; begin < n_rows; begin += rows_at_once) {
        const std::size_t end = std::min(begin + rows_at_once, n_rows);
        for (std::size_t k = 0; k < knots.n_columns; ++k) {
            const double* values = knots.values + knots.starts[k];
            const double* scores = knots.scores + knots.starts[k];
            const auto n = static_cast<std::size_t>(knots.starts[k + 1] - knots.starts[k]);
            for (std::size_t i = begin; i < end; ++i) {
                double& x = rows[i * stride + static_cast<std::size_t>(knots.columns[k])];
                x = interpolated(values, scores, n, x);
            }
        }
        meter.tick((end - begin) * knots.n_columns * 16);
    }
}

}  // namespace hardmargin
