// Kernel values of packed rows, for training and for predictions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hardmargin/aligned.hpp"
#include "hardmargin/kernel.hpp"
#include "hardmargin/layout.hpp"
#include "hardmargin/level.hpp"

namespace hardmargin {

// Rows in tiles, or columns one after another; their norms if the layout has them.
template <class T>
struct PackedView {
    const T* dense;
    const std::uint8_t* bytes;
    const T* norms;
};

// Values of tiles and columns: from differences or, where rows are wide, from products and norms,
// at half the work per feature. No value depends on the rows and columns beside it.
template <class T>
class TileKernel {
  public:
    TileKernel(const KernelSpec& kernel, const Layout& layout);

    // out[c * stride + i] = kernel(row i, column c); the first row is that of a strip.
    void values(PackedView<T> rows, std::size_t n_tiles, const PackedView<T>& columns,
                std::size_t n_columns, T* out, std::size_t stride);

    static constexpr std::size_t most_columns = 64;

  private:
    void from_differences(const KernelSpec& kernel, const TileShape& shape,
                          const PackedView<T>& rows, std::size_t n_tiles,
                          const PackedView<T>& columns, std::size_t n_columns, T* out,
                          std::size_t stride) const;
    void from_products(const PackedView<T>& rows, std::size_t n_tiles, const PackedView<T>& columns,
                       std::size_t n_columns, T* out, std::size_t stride);
    void evaluate_again(const PackedView<T>& rows, std::size_t n_tiles, const PackedView<T>& column,
                        std::uint64_t chosen, T* out) const;

    // Row `i`, the first of a tile or, where there are bytes, of a strip; or column `i`.
    PackedView<T> at(const PackedView<T>& first, std::size_t i) const {
        return {first.dense + i * d_, first.bytes + i * w_,
                first.norms ? first.norms + i : nullptr};
    }

    const KernelSpec kernel_;
    KernelSpec distance_ = kernel_;
    const TileShape shape_;
    TileShape bytes_only_ = shape_;
    const std::size_t d_, w_;
    const bool is_wide_;
    const LevelTable<T>& table_ = level().table<T>();
    AlignedVector<T> shares_;  // of the bytes, in the distances
};

}  // namespace hardmargin
