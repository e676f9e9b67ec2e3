// Two-valued columns that are never set in the same row can share a byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hardmargin/matrix.hpp"

namespace hardmargin {

struct Bundle {
    std::vector<std::size_t> members;  // positions in the list of columns
    bool is_complete;                  // every row has exactly one of them
};

// Bundles the columns first-fit, and leaves out bundles too small to pay off. Column j is set where
// it holds `values[j]`.
std::vector<Bundle> find_bundles(const std::vector<Matrix>& matrices,
                                 const std::vector<std::int32_t>* rows,
                                 const std::vector<std::size_t>& columns,
                                 const std::vector<double>& values);

}  // namespace hardmargin
