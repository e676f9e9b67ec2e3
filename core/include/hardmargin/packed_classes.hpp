// What all two-class machines of one fit share: each class is packed once, for every machine it
// takes part in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hardmargin/block_values.hpp"
#include "hardmargin/control.hpp"

namespace hardmargin {

struct MachineSpec {
    std::vector<std::int32_t> negative, positive;  // classes
};

enum class Source { rows, precomputed, function };

struct MachineProblem {
    Source source = Source::rows;
    KernelSpec kernel;
    Matrix matrix;                          // rows, or the kernel matrix itself
    std::optional<double> decay;            // for Source::precomputed: see precomputed_values
    ColumnFunction column;                  // for Source::function
    const std::int32_t* classes = nullptr;  // of each row; negative: left out
    std::size_t n_classes = 0;
    std::vector<MachineSpec> machines;
    bool use_bits = true;
    std::size_t block_rows = 512;
    double max_seconds = no_limit;
    int n_threads = 1;
    std::string folder;  // for packed rows in files; empty: they are in memory
};

template <class T>
class PackedClasses {
  public:
    // Settles the layout; `problem` must outlive this.
    explicit PackedClasses(const MachineProblem& problem);

    bool has_bits() const { return layout_ && layout_->has_bits(); }
    bool is_distance() const { return layout_ && problem_.kernel.is_distance(); }
    std::size_t largest_machine() const { return largest_machine_; }
    std::size_t packed_bytes() const;  // of all rows

    // The memory that packed rows and `states` bytes per row of a machine leave to each thread.
    // Throws MemoryTooSmall if these do not fit.
    std::size_t memory_left(std::size_t memory_bytes, std::size_t states) const;

    // See pack_rows; to be called once.
    void pack(BlockOrder order, std::int32_t* next_copy, Control& control);

    // Negative classes first.
    std::vector<Part<T>> parts(const MachineSpec& machine) const;
    std::unique_ptr<BlockValues<T>> values(const std::vector<Part<T>>& parts, bool bounded) const;

  private:
    const MachineProblem& problem_;
    std::vector<std::int32_t> rows_;
    std::vector<std::vector<std::int32_t>> rows_of_class_;
    std::size_t largest_machine_ = 0;
    std::unique_ptr<Layout> layout_;  // null: values do not come from tiles
    std::vector<std::shared_ptr<const PackedRows<T>>> packed_;  // by class
};

}  // namespace hardmargin
