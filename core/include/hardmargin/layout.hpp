// How the columns of a matrix are packed: which as numbers (around what centre), which as bytes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hardmargin/bundles.hpp"
#include "hardmargin/kernel.hpp"
#include "hardmargin/level.hpp"
#include "hardmargin/matrix.hpp"

namespace hardmargin {

class Layout {
  public:
    // Reads the rows of all `matrices` (only `rows` of the first, if given). Distance kernels drop
    // constant columns, centre dense ones, and pack two-valued columns into bytes if enough of them
    // have the same step; `use_bits = false` keeps those as numbers. Columns that are constant in
    // the first matrix, but not in others, become one number: the distance from these constants.
    Layout(const KernelSpec& kernel, const std::vector<Matrix>& matrices,
           const std::vector<std::int32_t>* rows, bool use_bits);

    TileShape shape() const {
        return {static_cast<int>(n_dense()), n_bytes_, groups_.data(),
                static_cast<int>(groups_.size())};
    }
    std::size_t n_dense() const { return columns_.size() + (fixed_.empty() ? 0 : 1); }
    std::size_t n_bytes() const { return static_cast<std::size_t>(n_bytes_); }
    bool has_bits() const { return n_bytes_ > 0; }

    // Whether values cost less from products and norms than from differences.
    bool is_wide() const { return !is_absolute_ && n_dense() >= fewest_wide; }
    bool has_norms() const { return is_wide() && is_squared_; }

    // Writes one row given as contiguous floats or doubles: feature k to dense[k * stride], byte w
    // to bytes[w * byte_stride].
    template <class T, class X>
    void pack_row(const X* row, T* dense, std::size_t stride, std::uint8_t* bytes,
                  std::size_t byte_stride) const {
        const auto number = [&](std::size_t k, std::size_t column) {
            return static_cast<T>(std::clamp(row[column] - centres_[k], -largest<T>, largest<T>));
        };
        const std::size_t d = columns_.size();
        if (is_whole_ && stride == 1)  // compilers make vectors of this
            for (std::size_t k = 0; k < d; ++k) dense[k] = number(k, k);
        else if (is_whole_)
            for (std::size_t k = 0; k < d; ++k) dense[k * stride] = number(k, k);
        else
            for (std::size_t k = 0; k < d; ++k) dense[k * stride] = number(k, columns_[k]);
        if (!fixed_.empty()) {
            double sum = 0;
            for (const Fixed& fixed : fixed_) sum += share(row[fixed.column] - fixed.value);
            dense[d * stride] = distance<T>(sum);
        }
        for (std::size_t w = 0; w < n_bytes(); ++w) bytes[w * byte_stride] = 0;
        for (const Flag& flag : flags_)
            if (row[flag.column] == flag.value) bytes[flag.byte * byte_stride] |= flag.mark;
    }

    // Whether a sparse row can be packed from its stored entries alone: zeros leave no mark.
    bool zeros_are_blank() const { return zeros_are_blank_; }

    // Whether rows are divided by their lengths before they are packed: then products are cosines.
    bool has_unit_rows() const { return has_unit_rows_; }

    // The same as pack_row, from the stored entries.
    template <class T>
    void pack_entries(const Matrix& matrix, std::size_t row, T* dense, std::size_t stride,
                      std::uint8_t* bytes, std::size_t byte_stride) const {
        for (std::size_t k = 0; k < n_dense(); ++k) dense[k * stride] = T(0);
        for (std::size_t w = 0; w < n_bytes(); ++w) bytes[w * byte_stride] = 0;
        double sum = 0;  // of the columns that are constant elsewhere, where they are 0
        matrix.each(row, [&](std::size_t column, double value) {
            const Slot& slot = slots_[column];
            if (slot.is_fixed) sum += share(value);
            if (slot.dense >= 0)
                dense[static_cast<std::size_t>(slot.dense) * stride] =
                    static_cast<T>(std::clamp(value, -largest<T>, largest<T>));
            if (slot.flag < 0) return;
            const Flag& flag = flags_[static_cast<std::size_t>(slot.flag)];
            if (value == flag.value) bytes[flag.byte * byte_stride] |= flag.mark;
        });
        if (!fixed_.empty()) dense[columns_.size() * stride] = distance<T>(sum);
    }

  private:
    static constexpr std::size_t fewest_wide = 64;

    // Squared differences of larger features would not be finite.
    template <class T>
    static constexpr double largest = sizeof(T) == 4 ? 1e18 : 1e150;

    struct Flag {  // a two-valued column: where it holds the value, the byte gets the mark
        std::size_t column;
        double value;
        std::uint32_t byte;
        std::uint8_t mark;
    };
    struct Fixed {  // a column that is constant in the first matrix
        std::size_t column;
        double value;
    };
    struct Slot {  // where a column goes: place in columns_ or flags_, or -1
        std::int32_t dense = -1, flag = -1;
        bool is_fixed = false;
    };

    // What a difference adds to the metric, and the one difference that adds as much as all.
    double share(double difference) const {
        return is_squared_ ? difference * difference : std::abs(difference);
    }
    template <class T>
    T distance(double sum) const {
        return static_cast<T>(std::min(is_squared_ ? std::sqrt(sum) : sum, largest<T>));
    }

    void make_slots(std::size_t n_cols);
    void add_group(const std::vector<std::size_t>& columns, const std::vector<double>& values,
                   const std::vector<Bundle>& bundles, double weight);

    std::vector<std::size_t> columns_;  // that are numbers,
    std::vector<double> centres_;       // and what is taken from them
    bool is_whole_ = false;             // whether these are all columns
    std::vector<Fixed> fixed_;
    bool is_squared_ = false, is_absolute_ = false, has_unit_rows_ = false;
    std::vector<Flag> flags_;
    std::vector<BitGroup> groups_;
    std::vector<Slot> slots_;
    bool zeros_are_blank_ = true;
    int n_bytes_ = 0;
};

// Packs rows of one matrix, from their stored entries alone if possible.
class RowPacker {
  public:
    RowPacker(const Layout& layout, const Matrix& matrix)
        : layout_(layout), matrix_(matrix), read_(matrix),
          by_entries_(matrix.is_sparse() && layout.zeros_are_blank()),
          unit_row_(layout.has_unit_rows() ? matrix.n_cols : 0) {}

    template <class T>
    void operator()(std::size_t row, T* dense, std::size_t stride, std::uint8_t* bytes,
                    std::size_t byte_stride) {
        if (layout_.has_unit_rows()) layout_.pack_row(unit(row), dense, stride, bytes, byte_stride);
        else if (by_entries_) layout_.pack_entries(matrix_, row, dense, stride, bytes, byte_stride);
        else if (const float* x = matrix_.floats(row))
            layout_.pack_row(x, dense, stride, bytes, byte_stride);
        else layout_.pack_row(read_(row), dense, stride, bytes, byte_stride);
    }

  private:
    const double* unit(std::size_t row) {
        const double length = length_of(matrix_, row);
        std::fill(unit_row_.begin(), unit_row_.end(), 0.0);
        matrix_.each(row, [&](std::size_t k, double x) { unit_row_[k] = x / length; });
        return unit_row_.data();
    }

    const Layout& layout_;
    const Matrix& matrix_;
    RowReader read_;
    bool by_entries_;
    std::vector<double> unit_row_;
};

}  // namespace hardmargin
