// Products of a kernel matrix with a few vectors at once, stage after stage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hardmargin/aligned.hpp"
#include "hardmargin/control.hpp"
#include "hardmargin/kernel.hpp"
#include "hardmargin/level.hpp"

namespace hardmargin {

enum class ValueSource { values, distances, points, factor, rows };

// What a kernel matrix is made from: kernel values (n x n), distances (n x n) for the kernel
// exp(-gamma * distance), points (n x width) for the same kernel of the distances between them, a
// factor Z (n x width) for the kernel ZZ', or sparse rows X (n x width) for the kernel gamma * XX'.
template <class T>
struct KernelSource {
    ValueSource kind = ValueSource::values;
    const T* data = nullptr;  // row after row; of sparse rows, what is stored
    std::size_t width = 0;
    double gamma = 0;
    bool compact = false;                      // store values in 16 bits: for kernels from 0 to 1
    KernelKind metric = KernelKind::rbf;       // whose distances points have
    const std::int32_t* indices = nullptr;     // of sparse rows: columns of what is stored ..
    const std::int64_t* row_starts = nullptr;  // .. and where each row starts
};

// The kernel matrix of some rows, stored in strips of columns; it can be refilled. Sparse rows are
// not stored again: their products go through one weight per column, for all vectors at once.
template <class T>
class KernelProduct {
  public:
    // `rows` must be ascending and, where the source has sparse rows, outlive the products.
    void fill(const KernelSource<T>& source, const std::vector<std::int32_t>& rows, Meter& meter);

    // Fills the matrices of several widths of one kernel of points; distances are computed once.
    static void fill_widths(const std::vector<KernelSource<T>>& sources,
                            const std::vector<KernelProduct*>& products,
                            const std::vector<std::int32_t>& rows, Meter& meter);

    // out[c * stride + i] = sum over the rows j of K(i, j) * vectors[c * stride + j]
    void operator()(const T* vectors, int n_vectors, T* out, std::size_t stride);

    // Work of one product with one vector, in elementary operations.
    std::size_t cost() const {
        return rows_ ? n_entries_ / 2 : n_rows_ * (rank_ ? 2 * rank_ : n_rows_) / 8;
    }

    // Bytes that the kernel matrix of a source takes for this many rows, a multiple of the lanes.
    static std::size_t bytes(const KernelSource<T>& source, std::size_t n_rows);

  private:
    void fill_square(const KernelSource<T>& source, const std::vector<std::int32_t>& rows,
                     Meter& meter);
    void resize_square(const KernelSource<T>& source, std::size_t n_rows);
    template <class RowOf>
    void fill_band(const KernelSource<T>& source, const std::vector<std::int32_t>& columns,
                   std::size_t first, std::size_t end, RowOf&& row_of, Meter& meter);
    void store_piece(const KernelSource<T>& source, const T* piece, std::size_t n, std::size_t at);
    void fill_factor(const KernelSource<T>& source, const std::vector<std::int32_t>& rows,
                     Meter& meter);
    void fill_rows(const KernelSource<T>& source, const std::vector<std::int32_t>& rows);
    void through_weights(const T* vectors, std::size_t n_vectors, T* out, std::size_t stride);

    const PathTable<T>& table_ = level().paths<T>();
    std::size_t n_rows_ = 0, n_strips_ = 0;
    std::size_t rank_ = 0;  // 0: not a factor
    bool compact_ = false;
    RawVector<T> strips_;  // [strip][row, or column of the factor][lane]
    RawVector<std::uint16_t> small_strips_;
    AlignedVector<T> right_;  // [row, or column of the factor or of sparse rows][vector]
    const std::vector<std::int32_t>* rows_ = nullptr;  // sparse rows: those of the matrix
    KernelSource<T> sparse_;
    std::size_t n_entries_ = 0;
};

}  // namespace hardmargin
