// Two-valued columns that never hold their rarer value together can share a byte.
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

// Bundles the columns first-fit; those that no bundle large enough to pay holds are left out.
// `values[j]` is the value whose presence is exclusive.
std::vector<Bundle> find_bundles(const std::vector<Matrix>& matrices,
                                 const std::vector<std::int32_t>* rows,
                                 const std::vector<std::size_t>& columns,
                                 const std::vector<double>& values);

}  // namespace hardmargin
