// All two-class machines of one greedy fit.
#pragma once

#include <vector>

#include "hardmargin/greedy.hpp"
#include "hardmargin/packed_classes.hpp"

namespace hardmargin {

struct GreedyProblem : MachineProblem {
    GreedyOptions options;
    bool need_bits = false;               // throw NothingToPack if there are none
    std::vector<Resumption> resumptions;  // of each machine, or none
};

template <class T>
std::vector<GreedyResult> greedy_machines(const GreedyProblem& problem, Control& control);

}  // namespace hardmargin
