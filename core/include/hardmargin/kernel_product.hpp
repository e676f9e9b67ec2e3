// Products of a kernel matrix with a few vectors at once, stage after stage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hardmargin/aligned.hpp"
#include "hardmargin/control.hpp"
#include "hardmargin/level.hpp"

namespace hardmargin {

enum class ValueSource { values, distances, factor };

// What a kernel matrix is made from: kernel values (n x n), distances (n x n) for the kernel
// exp(-gamma * distance), or a factor Z (n x width) for the kernel ZZ'.
template <class T>
struct KernelSource {
    ValueSource kind = ValueSource::values;
    const T* data = nullptr;  // row after row
    std::size_t width = 0;
    double gamma = 0;
    bool compact = false;  // store values in 16 bits: for kernels from 0 to 1
};

// The kernel matrix of some rows, stored in strips of columns; it can be refilled.
template <class T>
class KernelProduct {
  public:
    // `rows` must be ascending.
    void fill(const KernelSource<T>& source, const std::vector<std::int32_t>& rows, Meter& meter);

    // out[c * stride + i] = sum over the rows j of K(i, j) * vectors[c * stride + j]
    void operator()(const T* vectors, int n_vectors, T* out, std::size_t stride);

    // Work of one product with one vector, in elementary operations.
    std::size_t cost() const { return n_rows_ * (rank_ ? 2 * rank_ : n_rows_) / 8; }

  private:
    void fill_square(const KernelSource<T>& source, const std::vector<std::int32_t>& rows,
                     Meter& meter);
    void store_piece(const KernelSource<T>& source, const T* piece, std::size_t n, std::size_t at);
    void fill_factor(const KernelSource<T>& source, const std::vector<std::int32_t>& rows,
                     Meter& meter);

    const PathTable<T>& table_ = level().paths<T>();
    std::size_t n_rows_ = 0, n_strips_ = 0;
    std::size_t rank_ = 0;  // 0: not a factor
    bool compact_ = false;
    RawVector<T> strips_;  // [strip][row, or column of the factor][lane]
    RawVector<std::uint16_t> small_strips_;
    AlignedVector<T> right_;  // [row, or column of the factor][vector]
};

}  // namespace hardmargin
