// Rows find their cells, and the machines of cells are summed, as in plain loops.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "hardmargin/cells.hpp"

using namespace hardmargin;
using namespace hardmargin::test;

namespace {

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();

std::vector<float> floats(std::size_t n, Random& random) {
    std::vector<float> values(n);
    for (float& x : values) x = static_cast<float>(random.normal());
    return values;
}

// A full tree; every other cut is along a direction.
struct Tree {
    std::size_t n_cuts, n_features;
    std::vector<std::int32_t> columns, children;
    std::vector<float> directions, thresholds;

    Tree(std::size_t n, std::size_t width, Random& random)
        : n_cuts(n), n_features(width), directions(floats(n * width, random)),
          thresholds(floats(n, random)) {
        const auto last = static_cast<std::int32_t>(n);
        for (std::int32_t i = 0; i < last; ++i) {
            columns.push_back(i % 2 ? -i - 1 : static_cast<std::int32_t>(random.below(width)));
            for (const std::int32_t child : {2 * i + 1, 2 * i + 2})
                children.push_back(child < last ? child : -(child - last) - 1);
        }
    }

    Cuts cuts() const {
        return {n_cuts,         n_features, columns.data(), directions.data(), thresholds.data(),
                children.data()};
    }

    std::int32_t cell_of(const float* row) const {
        std::int32_t at = n_cuts > 0 ? 0 : -1;
        while (at >= 0) {
            const auto cut = static_cast<std::size_t>(at);
            double value = 0;
            if (columns[cut] >= 0) value = row[columns[cut]];
            else
                for (std::size_t k = 0; k < n_features; ++k)
                    value += static_cast<double>(row[k]) * directions[cut * n_features + k];
            at = children[2 * cut + (value <= thresholds[cut] ? 0 : 1)];
        }
        return -at - 1;
    }
};

Matrix dense_matrix(const std::vector<float>& rows, std::size_t n_cols) {
    Matrix m;
    m.n_rows = rows.size() / n_cols;
    m.n_cols = n_cols;
    m.is_double = false;
    m.data = rows.data();
    m.row_stride = static_cast<std::ptrdiff_t>(n_cols);
    return m;
}

std::vector<std::int32_t> routed(const Tree& tree, const Matrix& rows, int n_threads) {
    std::vector<std::int32_t> cells(rows.n_rows, -7);
    Control control;
    route_cells(tree.cuts(), rows, cells.data(), n_threads, control);
    return cells;
}

void test_rows_are_routed(std::size_t n_cuts, std::size_t n_features) {
    Random random(1);
    const Tree tree(n_cuts, n_features, random);
    std::vector<float> rows = floats(9000 * n_features, random);
    for (float& x : rows) {
        if (random.below(3) == 0) x = 0;
        if (random.below(1000) == 0) x = nan_value;
    }
    const Matrix dense = dense_matrix(rows, n_features);
    const auto cells = routed(tree, dense, 1);
    for (std::size_t i = 0; i < cells.size(); ++i)
        CHECK(cells[i] == tree.cell_of(rows.data() + i * n_features));
    CHECK(cells == routed(tree, dense, 3));

    const std::vector<double> wide(rows.begin(), rows.end());
    Matrix doubles = dense;
    doubles.is_double = true;
    doubles.data = wide.data();
    CHECK(cells == routed(tree, doubles, 2));

    std::vector<double> entries;
    std::vector<std::int32_t> indices;
    std::vector<std::int64_t> starts{0};
    for (std::size_t i = 0; i < dense.n_rows; ++i) {
        for (std::size_t k = 0; k < n_features; ++k)
            if (const double x = wide[i * n_features + k]; x != 0) {
                entries.push_back(x);
                indices.push_back(static_cast<std::int32_t>(k));
            }
        starts.push_back(static_cast<std::int64_t>(entries.size()));
    }
    Matrix sparse = doubles;
    sparse.data = entries.data();
    sparse.indices = indices.data();
    sparse.row_starts = starts.data();
    CHECK(cells == routed(tree, sparse, 2));
}

void test_no_rows_are_routed() {
    Random random(2);
    CHECK(routed(Tree(3, 2, random), dense_matrix({}, 2), 2).empty());
}

// Cell c has 70 * c members, and c machines; its last kernel is not used in odd cells.
struct Model {
    static constexpr std::size_t n_cells = 4, n_features = 7, n_support = 300, n_kernels = 3;
    static constexpr std::size_t n_machines = n_cells - 1;
    std::vector<float> support, means, scales, values;
    std::vector<std::int32_t> rows;
    std::vector<std::int64_t> starts{0}, coefficient_starts;
    std::vector<std::int16_t> machines;
    std::vector<double> gammas;
    std::vector<KernelKind> metrics{KernelKind::rbf, KernelKind::laplacian, KernelKind::rbf};

    explicit Model(Random& random)
        : support(floats(n_support * n_features, random)),
          means(floats(n_cells * n_features, random)),
          scales(floats(n_cells * n_features, random)) {
        for (std::size_t c = 0; c < n_cells; ++c) {
            for (std::size_t i = 0; i < 70 * c; ++i)
                rows.push_back(static_cast<std::int32_t>(random.below(n_support)));
            starts.push_back(static_cast<std::int64_t>(rows.size()));
            for (const double gamma : {0.1, 0.2, c % 2 ? 0.0 : 0.3}) gammas.push_back(gamma);
        }
        for (std::size_t k = 0; k < n_kernels; ++k) {
            coefficient_starts.push_back(static_cast<std::int64_t>(values.size()));
            for (std::size_t c = 0; c < n_cells; ++c)
                for (std::size_t i = 0; i < 70 * c; ++i) {
                    for (std::size_t m = 0; m < c && i % 3 != 0; ++m)  // some have none
                        if (random.below(2)) {
                            machines.push_back(static_cast<std::int16_t>(m));
                            values.push_back(static_cast<float>(random.normal()));
                        }
                    coefficient_starts.push_back(static_cast<std::int64_t>(values.size()));
                }
        }
    }

    CellMachines cells() const {
        return {n_cells,         n_features,   rows.size(),   support.data(),
                n_features,      rows.data(),  starts.data(), means.data(),
                scales.data(),   metrics,      gammas.data(), coefficient_starts.data(),
                machines.data(), values.data()};
    }

    double distance(std::size_t kernel, std::size_t cell, const float* x, const float* s) const {
        double sum = 0;
        for (std::size_t k = 0; k < n_features; ++k) {
            const double step = (static_cast<double>(x[k]) - s[k]) * scales[cell * n_features + k];
            sum += metrics[kernel] == KernelKind::rbf ? step * step : std::abs(step);
        }
        return sum;
    }

    std::vector<double> sums_of(std::size_t cell, const float* x) const {
        std::vector<double> sums(n_machines, 0.0);
        for (std::size_t k = 0; k < n_kernels; ++k) {
            const double gamma = gammas[cell * n_kernels + k];
            for (auto i = starts[cell]; i < starts[cell + 1] && gamma > 0; ++i) {
                const auto member = static_cast<std::size_t>(i);
                const auto row = static_cast<std::size_t>(rows[member]);
                const double value =
                    std::exp(-gamma * distance(k, cell, x, support.data() + row * n_features));
                const auto at = k * (rows.size() + 1) + member;
                for (auto p = coefficient_starts[at]; p < coefficient_starts[at + 1]; ++p)
                    sums[static_cast<std::size_t>(machines[static_cast<std::size_t>(p)])] +=
                        static_cast<double>(values[static_cast<std::size_t>(p)]) * value;
            }
        }
        return sums;
    }
};

std::vector<double> expanded(const Model& model, const std::vector<float>& queries,
                             const std::vector<std::int32_t>& cells, int n_threads) {
    std::vector<double> out(cells.size() * Model::n_machines, -7.0);
    Control control;
    expand_cells(model.cells(), {cells.size(), queries.data(), Model::n_features, cells.data()},
                 Model::n_machines, out.data(), n_threads, control);
    return out;
}

void test_machines_are_summed(std::size_t n_queries) {
    Random random(3);
    const Model model(random);
    const std::vector<float> queries = floats(n_queries * Model::n_features, random);
    std::vector<std::int32_t> cells;
    for (std::size_t q = 0; q < n_queries; ++q)
        cells.push_back(static_cast<std::int32_t>(random.below(Model::n_cells + 1)) - 1);
    const auto sums = expanded(model, queries, cells, 1);
    for (std::size_t q = 0; q < n_queries; ++q) {
        const std::vector<double> expected =
            cells[q] < 0 ? std::vector<double>(Model::n_machines, -7.0)
                         : model.sums_of(static_cast<std::size_t>(cells[q]),
                                         queries.data() + q * Model::n_features);
        for (std::size_t m = 0; m < Model::n_machines; ++m)
            CHECK_CLOSE(sums[q * Model::n_machines + m], expected[m], 5e-5);
    }
    CHECK(sums == expanded(model, queries, cells, 3));
    if (n_queries == 0) return;

    // Alone, the last query gets the same.
    const std::vector<float> last(queries.end() - Model::n_features, queries.end());
    const auto alone = expanded(model, last, {cells.back()}, 1);
    CHECK(std::equal(alone.begin(), alone.end(), sums.end() - Model::n_machines));
}

void test_caller_can_interrupt() {
    Random random(4);
    const Control::Poll poll = [](const Progress&) -> bool { throw std::domain_error("Ctrl-C"); };
    const Tree tree(15, 3, random);
    const std::vector<float> rows = floats(300, random);
    std::vector<std::int32_t> cells(100);
    Control routing(poll);
    CHECK_THROWS(std::domain_error,
                 route_cells(tree.cuts(), dense_matrix(rows, 3), cells.data(), 1, routing));

    const Model model(random);
    const std::vector<float> queries = floats(100 * Model::n_features, random);
    std::fill(cells.begin(), cells.end(), 2);
    std::vector<double> out(100 * Model::n_machines);
    Control expansion(poll);
    CHECK_THROWS(std::domain_error,
                 expand_cells(model.cells(), {100, queries.data(), Model::n_features, cells.data()},
                              Model::n_machines, out.data(), 1, expansion));
}

}  // namespace

int main() {
    for (const std::size_t n_cuts : {0, 1, 2, 31}) test_rows_are_routed(n_cuts, 5);
    test_rows_are_routed(8, 1);
    test_no_rows_are_routed();
    for (const std::size_t n_queries : {0, 1, 40, 1500}) test_machines_are_summed(n_queries);
    test_caller_can_interrupt();
}
