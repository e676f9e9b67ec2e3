// Linear interpolation between knots: on them, between them and beyond them.
#include "hardmargin/interpolation.hpp"

#include <vector>

#include "check.hpp"

using namespace hardmargin;
using namespace hardmargin::test;

int main() {
    const std::vector<std::int64_t> columns{2, 0}, starts{0, 3, 4};
    const std::vector<double> values{0, 1, 3, 7}, scores{-1, 0, 4, 9};
    const Knots knots{2, columns.data(), starts.data(), values.data(), scores.data()};
    const std::vector<double> seen{-5, 0, 0.5, 1, 2, 3, 8}, expected{-1, -1, -0.5, 0, 2, 4, 4};
    const std::size_t n = 300, stride = 4;  // more rows than are replaced at once
    std::vector<double> rows(n * stride, 6.0);
    for (std::size_t i = 0; i < n; ++i) rows[i * stride + 2] = seen[i % seen.size()];
    Control control;
    interpolate_columns(knots, rows.data(), n, stride, control);
    for (std::size_t i = 0; i < n; ++i) {
        CHECK_CLOSE(rows[i * stride], 9, 1e-15);  // one knot: everything has its score
        CHECK_CLOSE(rows[i * stride + 1], 6, 1e-15);
        CHECK_CLOSE(rows[i * stride + 2], expected[i % expected.size()], 1e-15);
        CHECK_CLOSE(rows[i * stride + 3], 6, 1e-15);
    }
}
