// Columns whose values are replaced by linear interpolation between knots.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hardmargin/control.hpp"

namespace hardmargin {

// The knots of all columns, one column after another; the values of each ascend.
struct Knots {
    std::size_t n_columns;
    const std::int64_t* columns;  // which ones are replaced
    const std::int64_t* starts;   // of their knots, and one more; each has at least one
    const double *values, *scores;
};

// Replaces values by scores, in place. Values beyond the knots have the score of the nearest one.
void interpolate_columns(const Knots& knots, double* rows, std::size_t n_rows, std::size_t stride,
                         Control& control);

}  // namespace hardmargin
