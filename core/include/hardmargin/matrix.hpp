// A view of the user's rows, in their own dtype and memory order: dense with strides, or CSR.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace hardmargin {

struct Matrix {
    std::size_t n_rows = 0;
    std::size_t n_cols = 0;
    bool is_double = true;
    const void* data = nullptr;
    // dense: distance between neighbours, in elements
    std::ptrdiff_t row_stride = 0;
    std::ptrdiff_t col_stride = 1;
    // CSR: null when dense
    const std::int32_t* indices = nullptr;
    const std::int64_t* row_starts = nullptr;

    bool is_sparse() const { return row_starts != nullptr; }

    // A row that is stored as contiguous floats, else null.
    const float* floats(std::size_t row) const {
        if (is_sparse() || is_double || col_stride != 1) return nullptr;
        return static_cast<const float*>(data) + static_cast<std::ptrdiff_t>(row) * row_stride;
    }

    // Calls visit(column, value) for every stored entry of a row (every entry when dense).
    template <class Visit>
    void each(std::size_t row, Visit&& visit) const {
        is_double ? each_as<double>(row, visit) : each_as<float>(row, visit);
    }

  private:
    template <class S, class Visit>
    void each_as(std::size_t row, Visit&& visit) const {
        const S* values = static_cast<const S*>(data);
        if (is_sparse()) {
            for (auto p = row_starts[row]; p < row_starts[row + 1]; ++p)
                visit(static_cast<std::size_t>(indices[p]), static_cast<double>(values[p]));
        } else {
            const S* first = values + static_cast<std::ptrdiff_t>(row) * row_stride;
            for (std::size_t k = 0; k < n_cols; ++k)
                visit(k, static_cast<double>(first[static_cast<std::ptrdiff_t>(k) * col_stride]));
        }
    }
};

// ||x|| of a row, or 1 if that is 0.
inline double length_of(const Matrix& matrix, std::size_t row) {
    double largest = 0, sum = 0;
    matrix.each(row, [&](std::size_t, double x) { largest = std::max(largest, std::abs(x)); });
    if (!(largest > 0)) return 1;
    matrix.each(row, [&](std::size_t, double x) {
        const double share = x / largest;  // its square neither overflows nor vanishes
        sum += share * share;
    });
    return std::min(largest * std::sqrt(sum), std::numeric_limits<double>::max());
}

// Rows as contiguous doubles, copied only if they are not stored like that.
class RowReader {
  public:
    explicit RowReader(const Matrix& matrix) : matrix_(matrix) {
        const bool direct = !matrix.is_sparse() && matrix.is_double && matrix.col_stride == 1;
        if (!direct) buffer_.resize(matrix.n_cols);
    }

    const double* operator()(std::size_t row) {
        if (buffer_.empty())
            return static_cast<const double*>(matrix_.data) +
                   static_cast<std::ptrdiff_t>(row) * matrix_.row_stride;
        if (const float* first = matrix_.floats(row)) {
            std::copy_n(first, matrix_.n_cols, buffer_.data());
            return buffer_.data();
        }
        if (matrix_.is_sparse()) buffer_.assign(matrix_.n_cols, 0.0);
        matrix_.each(row, [this](std::size_t col, double value) { buffer_[col] = value; });
        return buffer_.data();
    }

  private:
    const Matrix& matrix_;
    std::vector<double> buffer_;
};

}  // namespace hardmargin
