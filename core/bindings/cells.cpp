#include "hardmargin/cells.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <vector>

#include "convert.hpp"

using namespace hardmargin;

namespace {

template <class T>
Grid<const T> to_table(nb::handle source, const std::string& name, std::size_t n_rows,
                       std::size_t n_cols) {
    Grid<const T> table(source, name, n_rows, n_cols);
    table.check_has_no_gaps(name);
    return table;
}

// Raises ValueError unless is_right(number) for all of them.
template <class T, class IsRight>
void check_numbers(const std::string& name, const Grid<const T>& table, const char* expected,
                   IsRight&& is_right) {
    for (std::size_t i = 0; i < table.n_rows * table.n_cols; ++i)
        if (!is_right(table.data[i]))
            refuse(name, "[", i / table.n_cols, ", ", i % table.n_cols, "] is ", table.data[i],
                   ", expected ", expected);
}

void check_finite(const std::string& name, const Grid<const float>& table) {
    check_numbers(name, table, "a finite number", [](float x) { return std::isfinite(x); });
}

// Children come after their parents, so that every row arrives in a cell.
void check_children(const Grid<const std::int32_t>& children) {
    const auto n_cuts = static_cast<std::int64_t>(children.n_rows);
    for (std::int64_t cut = 0; cut < n_cuts; ++cut)
        for (const std::int64_t side : {0, 1}) {
            const std::int64_t child = children.data[2 * cut + side];
            if (child >= 0 ? child <= cut || child >= n_cuts : child < -n_cuts - 1)
                throw std::out_of_range(text("children[", cut, ", ", side, "] is ", child,
                                             ", expected ", cut, " < cut < ", n_cuts, " or ",
                                             -n_cuts - 1, " <= cell < 0"));
        }
}

void routing(nb::handle columns, nb::handle directions, nb::handle thresholds, nb::handle children,
             nb::handle rows, nb::handle out, std::int64_t n_threads) {
    const HeldMatrix matrix = to_matrix(rows, "rows");
    const std::size_t n_features = matrix.matrix.n_cols;
    if (n_features == 0) refuse("rows has 0 columns, expected at least 1");
    const Vector<const std::int32_t> of_cuts(columns, "columns");
    const Grid<const float> along(directions, "directions");
    along.check_has_no_gaps("directions");
    if (along.n_cols != n_features)
        refuse("directions has ", along.n_cols, " columns, but rows has ", n_features);
    check_finite("directions", along);
    constexpr std::size_t most_directions = std::numeric_limits<std::int32_t>::max();
    check_indices("columns", of_cuts.data, of_cuts.size, n_features,
                  -static_cast<std::int32_t>(std::min(along.n_rows, most_directions)));
    const Vector<const float> limits(thresholds, "thresholds", of_cuts.size);
    for (std::size_t i = 0; i < limits.size; ++i)
        if (std::isnan(limits.data[i])) refuse("thresholds[", i, "] is nan, expected a number");
    const auto next = to_table<std::int32_t>(children, "children", of_cuts.size, 2);
    check_children(next);
    const Vector<std::int32_t> cells(out, "out", matrix.matrix.n_rows);
    matrix.check_apart_from("out", cells.array, "rows");
    check_apart("out", cells.array, "columns", of_cuts.array);
    check_apart("out", cells.array, "directions", along.array);
    check_apart("out", cells.array, "thresholds", limits.array);
    check_apart("out", cells.array, "children", next.array);
    const int threads = to_n_threads(n_threads);
    const Cuts cuts{of_cuts.size, n_features, of_cuts.data, along.data, limits.data, next.data};
    Control control(Monitor().poll());
    const nb::gil_scoped_release released;
    route_cells(cuts, matrix.matrix, cells.data, threads, control);
}

// For every kernel, offsets of the members' coefficients.
void check_coefficient_starts(const Grid<const std::int64_t>& starts, std::size_t n_values) {
    for (std::size_t k = 0; k < starts.n_rows; ++k) {
        const std::int64_t* own = starts.data + k * starts.n_cols;
        if (own[0] < 0)
            refuse("coefficient_starts[", k, ", 0] is ", own[0], ", expected at least 0");
        for (std::size_t i = 1; i < starts.n_cols; ++i)
            if (own[i] < own[i - 1])
                refuse("coefficient_starts[", k, ", ", i, "] is ", own[i], ", less than ",
                       own[i - 1], " before it");
        if (own[starts.n_cols - 1] > static_cast<std::int64_t>(n_values))
            refuse("coefficient_starts[", k, ", ", starts.n_cols - 1, "] is ",
                   own[starts.n_cols - 1], ", but there are ", n_values, " entries");
    }
}

void expansion(const std::vector<std::string>& metrics, nb::handle gammas, nb::handle queries,
               nb::handle cells, nb::handle support, nb::handle rows, nb::handle starts,
               nb::handle means, nb::handle scales, nb::handle coefficient_starts,
               nb::handle machines, nb::handle values, nb::handle out, std::int64_t n_threads) {
    if (metrics.empty()) refuse("metrics is empty, expected one per kernel");
    std::vector<KernelKind> kinds;
    for (std::size_t k = 0; k < metrics.size(); ++k)
        kinds.push_back(to_metric(metrics[k], text("metrics[", k, "]")));
    const Grid<const double> rates(gammas, "gammas");
    const std::size_t n_cells = rates.n_rows;
    if (rates.n_cols != metrics.size())
        refuse("gammas has ", rates.n_cols, " columns, but metrics has ", metrics.size(),
               " entries");
    rates.check_has_no_gaps("gammas");
    check_numbers("gammas", rates, "a number of at least 0", [](double x) { return x >= 0; });

    const Grid<const float> q(queries, "queries"), s(support, "support");
    const std::size_t n_features = q.n_cols;
    if (n_features == 0) refuse("queries has 0 columns, expected at least 1");
    if (s.n_cols != n_features)
        refuse("support has ", s.n_cols, " columns, but queries has ", n_features);
    const Vector<const std::int32_t> cell_of(cells, "cells", q.n_rows);
    check_indices("cells", cell_of.data, cell_of.size, n_cells, std::int32_t{-1});
    const Vector<const std::int32_t> members(rows, "rows");
    check_indices("rows", members.data, members.size, s.n_rows);
    const Vector<const std::int64_t> of_cells(starts, "starts", n_cells + 1);
    check_starts("starts", of_cells, members.size);
    const auto mean = to_table<float>(means, "means", n_cells, n_features);
    const auto scale = to_table<float>(scales, "scales", n_cells, n_features);
    check_finite("means", mean);
    check_finite("scales", scale);

    const Grid<double> sums(out, "out");
    sums.check_has_no_gaps("out");
    if (sums.n_rows != q.n_rows)
        refuse("out has ", sums.n_rows, " rows, but queries has ", q.n_rows);
    const Vector<const std::int16_t> of_values(machines, "machines");
    const Vector<const float> coefficients(values, "values", of_values.size);
    check_indices("machines", of_values.data, of_values.size, sums.n_cols);
    const auto of_members = to_table<std::int64_t>(coefficient_starts, "coefficient_starts",
                                                   metrics.size(), members.size + 1);
    check_coefficient_starts(of_members, of_values.size);

    const std::pair<const char*, const Array*> read[] = {
        {"gammas", &rates.array},
        {"queries", &q.array},
        {"cells", &cell_of.array},
        {"support", &s.array},
        {"rows", &members.array},
        {"starts", &of_cells.array},
        {"means", &mean.array},
        {"scales", &scale.array},
        {"coefficient_starts", &of_members.array},
        {"machines", &of_values.array},
        {"values", &coefficients.array},
    };
    for (const auto& [name, array] : read) check_apart("out", sums.array, name, *array);
    const int threads = to_n_threads(n_threads);
    const CellMachines of_all{
        .n_cells = n_cells,
        .n_features = n_features,
        .n_members = members.size,
        .support = s.data,
        .support_stride = s.stride,
        .rows = members.data,
        .starts = of_cells.data,
        .means = mean.data,
        .scales = scale.data,
        .metrics = kinds,
        .gammas = rates.data,
        .coefficient_starts = of_members.data,
        .machines = of_values.data,
        .values = coefficients.data,
    };
    Control control(Monitor().poll());
    const nb::gil_scoped_release released;
    expand_cells(of_all, {q.n_rows, q.data, q.stride, cell_of.data}, sums.n_cols, sums.data,
                 threads, control);
}

}  // namespace

void bind_cells(nb::module_& module) {
    module.def("route_cells", &routing, nb::arg("columns"), nb::arg("directions"),
               nb::arg("thresholds"), nb::arg("children"), nb::arg("rows"), nb::arg("out"),
               nb::arg("n_threads"),
               "Fill out[i] with the cell in which row i arrives, cut after cut: left if its value "
               "is at most the threshold.");
    module.def("expand_cells", &expansion, nb::arg("metrics"), nb::arg("gammas"),
               nb::arg("queries"), nb::arg("cells"), nb::arg("support"), nb::arg("rows"),
               nb::arg("starts"), nb::arg("means"), nb::arg("scales"),
               nb::arg("coefficient_starts"), nb::arg("machines"), nb::arg("values"),
               nb::arg("out"), nb::arg("n_threads"),
               "Fill out[q, m] with the sums of kernels exp(-gamma * distance) that machine m of "
               "the cell of queries[q] is made of; leave rows of cell -1 alone.");
}
