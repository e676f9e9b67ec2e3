// All two-class machines of one greedy fit.
#pragma once

#include <vector>

#include "hardmargin/greedy.hpp"
#include "hardmargin/packed_classes.hpp"

namespace hardmargin {

struct GreedyProblem : MachineProblem {
    GreedyOptions options;
    bool need_bits = false;  // refuse to run without
};

struct GreedyMachines {
    std::vector<GreedyResult> results;
    bool bits = false;  // whether two-valued columns were packed
};

template <class T>
GreedyMachines greedy_machines(const GreedyProblem& problem, Control& control);

}  // namespace hardmargin
