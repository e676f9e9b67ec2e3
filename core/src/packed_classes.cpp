#include "hardmargin/packed_classes.hpp"

#include <algorithm>

#include "hardmargin/errors.hpp"
#include "hardmargin/expansion.hpp"

namespace hardmargin {
namespace {

// Blocks of row numbers alone, for kernels whose values do not come from tiles.
template <class T>
PackedRows<T> number_rows(const std::vector<std::int32_t>& rows, std::size_t block_rows) {
    PackedRows<T> numbered(rows.size(), block_rows, 0, 0, {});
    for (std::size_t b = 0; b < numbered.blocks.size(); ++b)
        std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(b * block_rows),
                    numbered.blocks[b].n_rows,
                    numbered.ids.begin() +
                        static_cast<std::ptrdiff_t>(numbered.blocks[b].first_tile * lanes<T>));
    return numbered;
}

}  // namespace

template <class T>
PackedClasses<T>::PackedClasses(const MachineProblem& problem)
    : problem_(problem), rows_of_class_(problem.n_classes) {
    for (std::size_t i = 0; i < problem.matrix.n_rows; ++i) {
        if (problem.classes[i] < 0) continue;
        rows_.push_back(static_cast<std::int32_t>(i));
        rows_of_class_[static_cast<std::size_t>(problem.classes[i])].push_back(
            static_cast<std::int32_t>(i));
    }
    for (const MachineSpec& machine : problem.machines) {
        std::size_t n = 0;
        for (const auto* side : {&machine.negative, &machine.positive})
            for (const std::int32_t c : *side)
                n += rows_of_class_[static_cast<std::size_t>(c)].size();
        largest_machine_ = std::max(largest_machine_, n);
    }
    if (problem.source == Source::rows && is_packable(problem.matrix))
        layout_ = std::make_unique<Layout>(problem.kernel, std::vector<Matrix>{problem.matrix},
                                           &rows_, problem.use_bits);
}

template <class T>
std::size_t PackedClasses<T>::packed_bytes() const {
    return layout_ ? rows_.size() * (layout_->n_dense() * sizeof(T) + layout_->n_bytes()) : 0;
}

template <class T>
std::size_t PackedClasses<T>::memory_left(std::size_t memory_bytes, std::size_t states) const {
    const auto threads = static_cast<std::size_t>(std::max(problem_.n_threads, 1));
    const std::size_t packed = problem_.folder.empty() ? packed_bytes() : 0;
    const std::size_t needed = packed + largest_machine_ * states * threads;
    if (needed > memory_bytes) throw MemoryTooSmall(memory_bytes, needed);
    return (memory_bytes - needed) / threads;
}

template <class T>
void PackedClasses<T>::pack(BlockOrder order, std::int32_t* next_copy, Control& control) {
    packed_.resize(problem_.n_classes);
    parallel_for(problem_.n_classes, problem_.n_threads, control, [&](std::size_t c, Meter& meter) {
        packed_[c] = std::make_shared<const PackedRows<T>>(
            layout_ ? pack_rows<T>(*layout_, problem_.matrix, rows_of_class_[c], order,
                                   problem_.block_rows, next_copy, problem_.folder, meter)
                    : number_rows<T>(rows_of_class_[c], problem_.block_rows));
    });
}

template <class T>
std::vector<Part<T>> PackedClasses<T>::parts(const MachineSpec& machine) const {
    std::vector<Part<T>> parts;
    for (const std::int32_t c : machine.negative)
        parts.push_back({packed_[static_cast<std::size_t>(c)], -1.0});
    for (const std::int32_t c : machine.positive)
        parts.push_back({packed_[static_cast<std::size_t>(c)], 1.0});
    return parts;
}

template <class T>
std::unique_ptr<BlockValues<T>> PackedClasses<T>::values(const std::vector<Part<T>>& parts,
                                                         bool bounded) const {
    if (problem_.source == Source::precomputed)
        return precomputed_values<T>(problem_.matrix, problem_.decay);
    if (problem_.source == Source::function)
        return function_values<T>(problem_.column, problem_.matrix.n_rows);
    if (layout_) return tile_values<T>(problem_.kernel, *layout_, parts, bounded);
    return sparse_values<T>(problem_.kernel, problem_.matrix);
}

template class PackedClasses<float>;
template class PackedClasses<double>;

}  // namespace hardmargin
