// The paths of several kernels for all two-class machines of one fit. The kernels of a machine are
// raced: all advance in rounds, and one whose held-out loss can no longer catch up is stopped.
// Where a machine has many rows, only the best few go on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hardmargin/packed_classes.hpp"
#include "hardmargin/staged_vote.hpp"

namespace hardmargin {

template <class T>
struct StagedVoteProblem {
    // One source per kernel or, where splits have kernels of their own, one for all rows and one
    // for each split.
    std::vector<std::vector<KernelSource<T>>> kernels;
    std::size_t n_rows = 0;
    const std::int32_t* classes = nullptr;  // of each row; negative: left out
    const double* weights = nullptr;        // of each row
    std::vector<MachineSpec> machines;
    std::size_t n_splits = 0;
    const std::uint8_t* train = nullptr;  // [split][row]: whether it trains ..
    const std::uint8_t* test = nullptr;   // .. and whether it is held out
    std::size_t n_shuffles = 0;
    const std::int32_t* shuffles = nullptr;  // [shuffle][row]: its place; copies share one
    PathOptions options;
    bool race = true;
    std::size_t memory_bytes = std::size_t{1} << 30;  // for kernel matrices
    double max_seconds = no_limit;
    int n_threads = 1;
};

struct StagedVoteResult {
    std::vector<std::int32_t> rows;
    std::vector<std::int32_t> splits;  // of the columns, see PathData
    std::vector<std::int32_t> held_rows, held_splits;
    std::vector<StagedVotePath> paths;  // one per kernel
};

// Threads share the machines, or the kernels if there is only one machine. Throws
// std::invalid_argument if a side of a machine has no rows.
template <class T>
std::vector<StagedVoteResult> staged_vote_machines(const StagedVoteProblem<T>& problem,
                                                   Control& control);

}  // namespace hardmargin
