// All two-class machines of one exact fit.
#pragma once

#include <vector>

#include "hardmargin/exact.hpp"
#include "hardmargin/packed_classes.hpp"

namespace hardmargin {

struct ExactProblem : MachineProblem {
    ExactOptions options;
};

template <class T>
std::vector<ExactResult> exact_machines(const ExactProblem& problem, Control& control);

}  // namespace hardmargin
