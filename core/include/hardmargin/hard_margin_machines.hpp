// All two-class machines of one hard-margin fit.
#pragma once

#include <vector>

#include "hardmargin/hard_margin.hpp"
#include "hardmargin/packed_classes.hpp"

namespace hardmargin {

struct HardMarginProblem : MachineProblem {
    HardMarginOptions options;
};

template <class T>
std::vector<HardMarginResult> hard_margin_machines(const HardMarginProblem& problem,
                                                   Control& control);

}  // namespace hardmargin
