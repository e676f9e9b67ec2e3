#include "hardmargin/cells.hpp"

#include <algorithm>

#include "hardmargin/aligned.hpp"
#include "hardmargin/expansion.hpp"

namespace hardmargin {
namespace {

// One row at a time, in float32.
class FloatRow {
  public:
    explicit FloatRow(const Matrix& rows) : rows_(rows) {
        if (rows.is_sparse()) entries_.assign(rows.n_cols, 0.0f);
    }

    void load(std::size_t row) {
        if (rows_.is_sparse()) {
            // Only the entries of the last row are cleared: there may be many columns.
            rows_.each(row_, [this](std::size_t k, double) { entries_[k] = 0.0f; });
            rows_.each(row,
                       [this](std::size_t k, double x) { entries_[k] = static_cast<float>(x); });
        }
        row_ = row;
    }

    float operator[](std::size_t column) const {
        if (rows_.is_sparse()) return entries_[column];
        const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(row_) * rows_.row_stride +
                                  static_cast<std::ptrdiff_t>(column) * rows_.col_stride;
        if (rows_.is_double) return static_cast<float>(static_cast<const double*>(rows_.data)[at]);
        return static_cast<const float*>(rows_.data)[at];
    }

    // Doubles hold products of floats exactly, so fused multiply-adds change nothing.
    double along(const float* direction) const {
        double sum = 0;
        rows_.each(row_, [&](std::size_t k, double x) {
            sum += static_cast<double>(static_cast<float>(x)) * static_cast<double>(direction[k]);
        });
        return sum;
    }

  private:
    const Matrix& rows_;
    std::size_t row_ = 0;
    std::vector<float> entries_;  // of a sparse row
};

std::int32_t cell_of(const Cuts& cuts, const FloatRow& row, Meter& meter) {
    std::int32_t at = cuts.n_cuts > 0 ? 0 : ~0;
    while (at >= 0) {
        const auto cut = static_cast<std::size_t>(at);
        const std::int32_t column = cuts.columns[cut];
        const double value =
            column >= 0
                ? static_cast<double>(row[static_cast<std::size_t>(column)])
                : row.along(cuts.directions + static_cast<std::size_t>(~column) * cuts.n_features);
        const bool is_left = value <= static_cast<double>(cuts.thresholds[cut]);
        at = cuts.children[2 * cut + (is_left ? 0 : 1)];
        meter.tick(column >= 0 ? 1 : cuts.n_features);
    }
    return ~at;
}

// Queries of one cell: places `begin` to `end` of the order by cells.
struct Piece {
    std::size_t cell, begin, end;
};

// The queries in the order of their cells, cut into pieces.
struct SortedQueries {
    std::vector<std::size_t> order;
    std::vector<Piece> pieces;

    SortedQueries(const CellQueries& queries, std::size_t n_cells, std::size_t per_piece) {
        std::vector<std::size_t> ends(n_cells, 0);
        for (std::size_t q = 0; q < queries.n; ++q)
            if (queries.cells[q] >= 0) ++ends[static_cast<std::size_t>(queries.cells[q])];
        std::size_t n_placed = 0;
        for (std::size_t c = 0; c < n_cells; ++c) {
            const std::size_t end = n_placed + ends[c];
            for (std::size_t begin = n_placed; begin < end; begin += per_piece)
                pieces.push_back({c, begin, std::min(begin + per_piece, end)});
            ends[c] = n_placed;  // moves to the end as queries are placed
            n_placed = end;
        }
        order.resize(n_placed);
        for (std::size_t q = 0; q < queries.n; ++q)
            if (queries.cells[q] >= 0)
                order[ends[static_cast<std::size_t>(queries.cells[q])]++] = q;
    }
};

// Coefficients of one kernel in one cell.
struct CellCoefficients {
    std::vector<std::int64_t> starts{0};
    std::vector<std::int32_t> machines;
    std::vector<double> values;
};

class CellExpansion {
  public:
    CellExpansion(const CellMachines& cells, const CellQueries& queries, std::size_t cell)
        : cells_(cells), queries_(queries), cell_(cell),
          begin_(static_cast<std::size_t>(cells.starts[cell])),
          end_(static_cast<std::size_t>(cells.starts[cell + 1])) {
        for (std::size_t k = 0; k < cells.metrics.size(); ++k)
            for (auto p = starts_of(k)[begin_]; is_used(k) && p < starts_of(k)[end_]; ++p)
                n_machines_ =
                    std::max(n_machines_, static_cast<std::size_t>(cells.machines[p]) + 1);
    }

    // Fills the rows of out that belong to these queries.
    void fill(const std::size_t* order, std::size_t n, std::size_t n_machines, double* out,
              Meter& meter) const {
        std::vector<double> sums(n * n_machines_, 0.0);
        if (n_machines_ > 0) {
            const std::vector<float> rows = standardised(
                n, [&](std::size_t i) { return queries_.rows + order[i] * queries_.stride; });
            for (const KernelKind metric : {KernelKind::rbf, KernelKind::laplacian})
                add(metric, matrix_of(rows, n), sums.data(), meter);
        }
        for (std::size_t i = 0; i < n; ++i) {
            double* to = out + order[i] * n_machines;
            std::copy_n(sums.data() + i * n_machines_, n_machines_, to);
            std::fill(to + n_machines_, to + n_machines, 0.0);
        }
    }

  private:
    const std::int64_t* starts_of(std::size_t kernel) const {
        return cells_.coefficient_starts + kernel * (cells_.n_members + 1);
    }
    double gamma(std::size_t kernel) const {
        return cells_.gammas[cell_ * cells_.metrics.size() + kernel];
    }
    bool is_used(std::size_t kernel) const {
        return gamma(kernel) > 0 && starts_of(kernel)[begin_] < starts_of(kernel)[end_];
    }

    // Adds the kernels of one metric, which share their distances.
    void add(KernelKind metric, const Matrix& queries, double* sums, Meter& meter) const {
        std::vector<std::size_t> kernels;
        std::vector<double> gammas;
        for (std::size_t k = 0; k < cells_.metrics.size(); ++k)
            if (cells_.metrics[k] == metric && is_used(k)) {
                kernels.push_back(k);
                gammas.push_back(gamma(k));
            }
        if (kernels.empty()) return;

        std::vector<std::size_t> members;  // those with a coefficient
        for (std::size_t i = begin_; i < end_; ++i)
            if (std::any_of(kernels.begin(), kernels.end(),
                            [&](std::size_t k) { return starts_of(k)[i] < starts_of(k)[i + 1]; }))
                members.push_back(i);
        std::vector<CellCoefficients> held;
        std::vector<Coefficients> coefficients;
        for (const std::size_t k : kernels) {
            const CellCoefficients& own = held.emplace_back(coefficients_of(k, members));
            coefficients.push_back(
                {n_machines_, own.starts.data(), own.machines.data(), own.values.data()});
        }
        const std::vector<float> rows = standardised(members.size(), [&](std::size_t i) {
            const auto row = static_cast<std::size_t>(cells_.rows[members[i]]);
            return cells_.support + row * cells_.support_stride;
        });
        add_decays<float>(metric, gammas, queries, matrix_of(rows, members.size()), coefficients,
                          sums, meter);
    }

    CellCoefficients coefficients_of(std::size_t kernel,
                                     const std::vector<std::size_t>& members) const {
        CellCoefficients own;
        for (const std::size_t i : members) {
            for (auto p = starts_of(kernel)[i]; p < starts_of(kernel)[i + 1]; ++p) {
                own.machines.push_back(cells_.machines[p]);
                own.values.push_back(static_cast<double>(cells_.values[p]));
            }
            own.starts.push_back(static_cast<std::int64_t>(own.values.size()));
        }
        return own;
    }

    template <class RowOf>
    std::vector<float> standardised(std::size_t n, RowOf&& row_of) const {
        const std::size_t d = cells_.n_features;
        const float *mean = cells_.means + cell_ * d, *scale = cells_.scales + cell_ * d;
        std::vector<float> rows(n * d);
        for (std::size_t i = 0; i < n; ++i) {
            const float* x = row_of(i);
            float* z = rows.data() + i * d;
            for (std::size_t k = 0; k < d; ++k) z[k] = (x[k] - mean[k]) * scale[k];
        }
        return rows;
    }

    Matrix matrix_of(const std::vector<float>& rows, std::size_t n) const {
        Matrix matrix;
        matrix.n_rows = n;
        matrix.n_cols = cells_.n_features;
        matrix.is_double = false;
        matrix.data = rows.data();
        matrix.row_stride = static_cast<std::ptrdiff_t>(cells_.n_features);
        return matrix;
    }

    const CellMachines& cells_;
    const CellQueries& queries_;
    const std::size_t cell_, begin_, end_;  // the cell and its members
    std::size_t n_machines_ = 0;            // of this cell
};

// A piece is long enough to pay for its cell's members, and short enough to balance the threads.
std::size_t queries_per_piece(std::size_t n_queries, int n_threads) {
    constexpr std::size_t fewest = 128, most = 1024;
    if (n_threads <= 1) return most;
    const std::size_t even = n_queries / (4 * static_cast<std::size_t>(n_threads));
    return std::clamp(round_up(even, fewest), fewest, most);
}

}  // namespace

void route_cells(const Cuts& cuts, const Matrix& rows, std::int32_t* cells, int n_threads,
                 Control& control) {
    constexpr std::size_t per_task = 4096;
    parallel_for((rows.n_rows + per_task - 1) / per_task, n_threads, control,
                 [&](std::size_t task, Meter& meter) {
                     FloatRow row(rows);
                     const std::size_t end = std::min((task + 1) * per_task, rows.n_rows);
                     for (std::size_t i = task * per_task; i < end; ++i) {
                         row.load(i);
                         cells[i] = cell_of(cuts, row, meter);
                     }
                 });
}

void expand_cells(const CellMachines& cells, const CellQueries& queries, std::size_t n_machines,
                  double* out, int n_threads, Control& control) {
    const SortedQueries sorted(queries, cells.n_cells, queries_per_piece(queries.n, n_threads));
    parallel_for(sorted.pieces.size(), n_threads, control, [&](std::size_t task, Meter& meter) {
        const Piece& piece = sorted.pieces[task];
        CellExpansion(cells, queries, piece.cell)
            .fill(sorted.order.data() + piece.begin, piece.end - piece.begin, n_machines, out,
                  meter);
    });
}

}  // namespace hardmargin
