// Kernel values that do not come from tiles: wide sparse rows, a stored matrix, a function.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "hardmargin/aligned.hpp"
#include "hardmargin/block_values.hpp"
#include "hardmargin/level.hpp"
#include "hardmargin/sparse.hpp"

namespace hardmargin {
namespace {

template <class T>
class SparseValues final : public BlockValues<T> {
  public:
    SparseValues(const KernelSpec& kernel, const Matrix& matrix)
        : kernel_(kernel), matrix_(matrix), norms_(row_norms(kernel, matrix)),
          lengths_(kernel, matrix), scattered_(matrix.n_cols, 0.0),
          exact_(kernel, matrix_, matrix_) {}

    void open(std::size_t, std::size_t, std::int32_t id) override { opened_.push_back(id); }

    void values(std::size_t, const std::int32_t* ids, std::size_t n_rows,
                const std::uint32_t* columns, int n_columns, T* out, std::size_t stride) override {
        for (int c = 0; c < n_columns; ++c) {
            const auto z = static_cast<std::size_t>(opened_[columns[c]]);
            scatter(z);
            T* v = out + static_cast<std::size_t>(c) * stride;
            for (std::size_t i = 0; i < n_rows; i += strip_rows)
                strip(ids + i, std::min(strip_rows, n_rows - i), z, v + i);
        }
    }

    std::size_t cost() const override {
        return 10 +
               4 * static_cast<std::size_t>(matrix_.row_starts[matrix_.n_rows]) / matrix_.n_rows;
    }

  private:
    // The values of a few rows and the current column, z.
    void strip(const std::int32_t* ids, std::size_t n, std::size_t z, T* out) {
        alignas(64) double values[strip_rows] = {}, norms[strip_rows] = {};
        for (std::size_t i = 0; i < n; ++i) {
            const auto x = static_cast<std::size_t>(ids[i]);
            double sum = 0;
            matrix_.each(x, [&](std::size_t k, double value) {
                sum += common(kernel_, value, scattered_[k]);
            });
            values[i] = sum / lengths_[x];
            norms[i] = norms_[x];
        }
        std::uint64_t is_rough = 0;
        const std::size_t padded = round_up(n, lanes<double>);
        table_.finish(kernel_, norms, &norms_[z], nullptr, 1, values, padded, padded, &is_rough);
        for (std::size_t i = 0; i < n; ++i) {
            const auto x = static_cast<std::size_t>(ids[i]);
            const bool is_exact = kernel_.is_distance() && (x == z || is_rough >> i & 1);
            out[i] = is_exact ? exact_.value<T>(x, z) : static_cast<T>(values[i]);
        }
    }

    void scatter(std::size_t row) {
        if (row == current_) return;
        if (current_ < matrix_.n_rows)
            matrix_.each(current_, [this](std::size_t k, double) { scattered_[k] = 0; });
        matrix_.each(row, [&, length = lengths_[row]](std::size_t k, double value) {
            scattered_[k] = value / length;
        });
        current_ = row;
    }

    const KernelSpec kernel_;
    const Matrix matrix_;
    const std::vector<double> norms_;
    const RowLengths lengths_;
    const LevelTable<double>& table_ = level().table<double>();
    std::vector<double> scattered_;  // the current column, dense
    std::size_t current_ = static_cast<std::size_t>(-1);
    ExactValues exact_;
    std::vector<std::int32_t> opened_;
};

template <class T>
class PrecomputedValues final : public BlockValues<T> {
  public:
    PrecomputedValues(const Matrix& matrix, std::optional<double> decay)
        : matrix_(matrix), decay_(decay) {}

    void open(std::size_t, std::size_t, std::int32_t id) override { opened_.push_back(id); }

    void values(std::size_t, const std::int32_t* ids, std::size_t n_rows,
                const std::uint32_t* columns, int n_columns, T* out, std::size_t stride) override {
        matrix_.is_double ? copy<double>(ids, n_rows, columns, n_columns, out, stride)
                          : copy<float>(ids, n_rows, columns, n_columns, out, stride);
        if (!decay_) return;
        const std::size_t n = round_up(n_rows, lanes<T>);
        for (int c = 0; c < n_columns; ++c) {
            T* v = out + static_cast<std::size_t>(c) * stride;
            std::fill(v + n_rows, v + n, T(0));
            level().paths<T>().decay(v, *decay_, v, n);
        }
    }

    std::size_t cost() const override { return decay_ ? 16 : 8; }

  private:
    template <class S>
    void copy(const std::int32_t* ids, std::size_t n_rows, const std::uint32_t* columns,
              int n_columns, T* out, std::size_t stride) const {
        for (int c = 0; c < n_columns; ++c) {
            const S* column =
                static_cast<const S*>(matrix_.data) + opened_[columns[c]] * matrix_.col_stride;
            for (std::size_t i = 0; i < n_rows; ++i)
                out[static_cast<std::size_t>(c) * stride + i] =
                    static_cast<T>(column[ids[i] * matrix_.row_stride]);
        }
    }

    const Matrix matrix_;
    const std::optional<double> decay_;
    std::vector<std::int32_t> opened_;
};

template <class T>
class FunctionValues final : public BlockValues<T> {
  public:
    FunctionValues(ColumnFunction column, std::size_t n_rows)
        : column_(std::move(column)), last_(n_rows) {}

    void open(std::size_t, std::size_t, std::int32_t id) override { opened_.push_back(id); }

    void values(std::size_t, const std::int32_t* ids, std::size_t n_rows,
                const std::uint32_t* columns, int n_columns, T* out, std::size_t stride) override {
        for (int c = 0; c < n_columns; ++c) {
            const std::int32_t id = opened_[columns[c]];
            if (id != last_id_) column_(last_id_ = id, last_.data());
            for (std::size_t i = 0; i < n_rows; ++i)
                out[static_cast<std::size_t>(c) * stride + i] =
                    static_cast<T>(last_[static_cast<std::size_t>(ids[i])]);
        }
    }

    // A call into the user's code may take any time: the control is checked after each.
    std::size_t cost() const override { return Meter::between_checks; }

  private:
    const ColumnFunction column_;
    std::vector<double> last_;  // a whole column, as blocks ask for it one after another
    std::int32_t last_id_ = -1;
    std::vector<std::int32_t> opened_;
};

}  // namespace

template <class T>
std::unique_ptr<BlockValues<T>> sparse_values(const KernelSpec& kernel, const Matrix& matrix) {
    return std::make_unique<SparseValues<T>>(kernel, matrix);
}

template <class T>
std::unique_ptr<BlockValues<T>> precomputed_values(const Matrix& matrix,
                                                   std::optional<double> decay) {
    return std::make_unique<PrecomputedValues<T>>(matrix, decay);
}

template <class T>
std::unique_ptr<BlockValues<T>> function_values(ColumnFunction column, std::size_t n_rows) {
    return std::make_unique<FunctionValues<T>>(std::move(column), n_rows);
}

template std::unique_ptr<BlockValues<float>> sparse_values(const KernelSpec&, const Matrix&);
template std::unique_ptr<BlockValues<double>> sparse_values(const KernelSpec&, const Matrix&);
template std::unique_ptr<BlockValues<float>> precomputed_values(const Matrix&,
                                                                std::optional<double>);
template std::unique_ptr<BlockValues<double>> precomputed_values(const Matrix&,
                                                                 std::optional<double>);
template std::unique_ptr<BlockValues<float>> function_values(ColumnFunction, std::size_t);
template std::unique_ptr<BlockValues<double>> function_values(ColumnFunction, std::size_t);

}  // namespace hardmargin
