// Where the engines get their kernel values: one block of rows against a few columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "hardmargin/kernel.hpp"
#include "hardmargin/layout.hpp"
#include "hardmargin/matrix.hpp"
#include "hardmargin/rows.hpp"

namespace hardmargin {

inline constexpr std::size_t columns_at_once = 8;  // in one call

template <class T>
class BlockValues {
  public:
    virtual ~BlockValues() = default;

    // Makes the row at `lane` of `block` (original row `id`) the next column; columns are numbered
    // in the order they are opened.
    virtual void open(std::size_t block, std::size_t lane, std::int32_t id) = 0;

    // out[c * stride + i] = kernel(row ids[i], columns[c]); at most columns_at_once.
    virtual void values(std::size_t block, const std::int32_t* ids, std::size_t n_rows,
                        const std::uint32_t* columns, int n_columns, T* out,
                        std::size_t stride) = 0;

    // Whether reach() works: out[b] bounds the kernel between a column and all rows of block b.
    virtual bool is_bounded() const { return false; }
    virtual void reach(std::uint32_t /*column*/, T* /*out*/) const {}

    // The rows at other lanes of the block are no longer needed.
    virtual void keep(std::size_t /*block*/, const std::vector<std::uint32_t>& /*lanes*/) {}

    // So many columns cost much less in one call than in several.
    virtual std::size_t at_once() const { return 1; }

    // Work of one value, in elementary operations.
    virtual std::size_t cost() const = 0;
};

// One part of a problem: the packed rows of a class, shared by all machines it takes part in.
template <class T>
struct Part {
    std::shared_ptr<const PackedRows<T>> rows;
    double label;
};

template <class T>
std::unique_ptr<BlockValues<T>> tile_values(const KernelSpec& kernel, const Layout& layout,
                                            const std::vector<Part<T>>& parts, bool bounded);
template <class T>
std::unique_ptr<BlockValues<T>> sparse_values(const KernelSpec& kernel, const Matrix& matrix);

// The matrix holds the values or, with `decay`, distances: the values are exp(-decay * distance).
template <class T>
std::unique_ptr<BlockValues<T>> precomputed_values(const Matrix& matrix,
                                                   std::optional<double> decay);

// `column(id, out)` fills out[row] for all rows of the matrix.
using ColumnFunction = std::function<void(std::int32_t id, double* out)>;

template <class T>
std::unique_ptr<BlockValues<T>> function_values(ColumnFunction column, std::size_t n_rows);

}  // namespace hardmargin
