// All two-class machines of one greedy fit: each class is packed once and shared by its machines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hardmargin/greedy.hpp"

namespace hardmargin {

struct MachineSpec {
    std::vector<std::int32_t> negative, positive;  // classes
};

enum class Source { rows, precomputed, function };

struct GreedyProblem {
    Source source = Source::rows;
    KernelSpec kernel;
    Matrix matrix;                          // rows, or the kernel matrix itself
    ColumnFunction column;                  // for Source::function
    const std::int32_t* classes = nullptr;  // of each row; negative: left out
    std::size_t n_classes = 0;
    std::vector<MachineSpec> machines;
    GreedyOptions options;
    bool use_bits = true;
    bool need_bits = false;  // refuse to run without
    std::size_t block_rows = 512;
    double max_seconds = 0;  // 0: no limit
    int n_threads = 1;
};

struct GreedyMachines {
    std::vector<GreedyResult> results;
    bool bits = false;  // whether two-valued columns were packed
};

template <class T>
GreedyMachines greedy_machines(const GreedyProblem& problem, Control& control);

}  // namespace hardmargin
