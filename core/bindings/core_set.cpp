#include "hardmargin/core_set.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cmath>
#include <string>
#include <tuple>

#include "convert.hpp"
#include "hardmargin/aligned.hpp"
#include "hardmargin/level.hpp"

using namespace hardmargin;

namespace {

template <class T>
std::tuple<std::size_t, double, std::string>
steps(nb::handle q, nb::handle alpha, nb::handle gradient, double tol, double largest_mass,
      std::int64_t max_steps, const nb::object& monitor) {
    const Vector<double> a(alpha, "alpha");
    const std::size_t n = a.size;
    if (n == 0) refuse("alpha is empty");
    const Vector<double> g(gradient, "gradient", n);
    const Grid<const T> matrix(q, "Q");
    const std::size_t padded = round_up(n, pair_rows);
    if (matrix.n_rows < n || matrix.n_cols < padded)
        refuse("Q has shape (", matrix.n_rows, ", ", matrix.n_cols, "), expected at least (", n,
               ", ", padded, ")");
    matrix.check_lines("Q");
    check_apart("alpha", a.array, "gradient", g.array);
    check_apart("alpha", a.array, "Q", matrix.array);
    check_apart("gradient", g.array, "Q", matrix.array);
    for (std::size_t i = 0; i < n; ++i) {
        if (!(a.data[i] >= 0) || std::isinf(a.data[i]))
            refuse("alpha[", i, "] is ", a.data[i], ", expected a finite number of at least 0");
        if (!std::isfinite(g.data[i]))
            refuse("gradient[", i, "] is ", g.data[i], ", expected a finite number");
    }
    to_number("tol", tol, 0.0);
    to_number("largest_mass", largest_mass, -no_limit, true);
    const std::size_t most = to_count("max_steps", max_steps);
    const Monitor heard(monitor);
    const auto deadline = after(heard.seconds_left());
    Control control(heard.poll());
    const nb::gil_scoped_release released;
    const CoreSetResult r = core_set_steps<T>(matrix.data, matrix.stride, n, a.data, g.data, tol,
                                              largest_mass, most, deadline, control);
    return {r.n_steps, r.violation,
            r.diverged          ? "diverged"
            : r.timed_out       ? "max_time"
            : r.violation > tol ? "max_steps"
                                : "converged"};
}

template <class T>
void join(nb::handle values, nb::handle slots, nb::handle places, nb::handle labels,
          nb::handle projections, double bias, nb::handle diagonal, nb::handle q) {
    const Grid<const T> from(values, "values");
    const Vector<const std::int64_t> joining(slots, "slots"), columns(places, "places");
    const std::size_t total = columns.size;
    if (joining.size > total)
        refuse("slots has ", joining.size, " entries, but places has only ", total);
    check_indices("slots", joining.data, joining.size, from.n_rows);
    check_indices("places", columns.data, total, from.n_cols);
    const Vector<const double> y(labels, "labels", total);
    const Grid<const double> directions(projections, "projections");
    directions.check_has_no_gaps("projections");
    if (directions.n_rows != total)
        refuse("projections has ", directions.n_rows, " rows, expected ", total);
    const Vector<const double> own(diagonal, "diagonal", joining.size);
    const Grid<T> to(q, "Q");
    if (to.n_rows < total || to.n_cols < total)
        refuse("Q has shape (", to.n_rows, ", ", to.n_cols, "), expected at least (", total, ", ",
               total, ")");
    check_apart("Q", to.array, "values", from.array);
    check_apart("Q", to.array, "labels", y.array);
    check_apart("Q", to.array, "projections", directions.array);
    check_apart("Q", to.array, "diagonal", own.array);
    check_apart("Q", to.array, "slots", joining.array);
    check_apart("Q", to.array, "places", columns.array);
    const CoreSetRows rows{.n = total - joining.size,
                           .total = total,
                           .labels = y.data,
                           .projections = directions.data,
                           .n_directions = directions.n_cols,
                           .bias = to_number("bias", bias),
                           .diagonal = own.data};
    const nb::gil_scoped_release released;
    join_core_set<T>(rows, from.data, from.stride, joining.data, columns.data, to.data, to.stride);
}

template <class T>
void sums(nb::handle values, nb::handle slots, nb::handle coef, nb::handle rows, nb::handle out) {
    const Grid<const T> from(values, "values");
    from.check_lines("values");
    const Vector<const std::int64_t> columns(slots, "slots");
    check_indices("slots", columns.data, columns.size, from.n_rows);
    const Vector<const double> factors(coef, "coef", columns.size);
    const Vector<double> to(out, "out");
    check_apart("out", to.array, "values", from.array);
    check_apart("out", to.array, "coef", factors.array);
    check_apart("out", to.array, "slots", columns.array);
    if (!rows.is_none()) {
        const Vector<const std::int64_t> chosen(rows, "rows", to.size);
        check_indices("rows", chosen.data, chosen.size, from.n_cols);
        check_apart("out", to.array, "rows", chosen.array);
        const nb::gil_scoped_release released;
        sum_columns_at<T>(from.data, from.stride, columns.data, factors.data, columns.size,
                          chosen.data, chosen.size, to.data);
        return;
    }
    if (to.size > from.n_cols)
        refuse("out has ", to.size, " entries, but values has only ", from.n_cols, " columns");
    Control control(Monitor().poll());
    const nb::gil_scoped_release released;
    sum_columns<T>(from.data, from.stride, columns.data, factors.data, columns.size, to.size,
                   to.data, control);
}

template <class T>
void define(nb::module_& module, const std::string& dtype) {
    module.def(("core_set_steps_" + dtype).c_str(), &steps<T>, nb::arg("Q"), nb::arg("alpha"),
               nb::arg("gradient"), nb::kw_only(), nb::arg("tol"), nb::arg("largest_mass"),
               nb::arg("max_steps"), nb::arg("monitor").none(),
               "Minimise alpha' Q alpha / 2 - sum(alpha) over alpha >= 0, in place, on the first "
               "rows and columns of Q; return the number of steps, the remaining violation, and "
               "'converged', 'diverged', 'max_steps' or 'max_time'.");
    module.def(("join_core_set_" + dtype).c_str(), &join<T>, nb::arg("values"), nb::arg("slots"),
               nb::arg("places"), nb::kw_only(), nb::arg("labels"), nb::arg("projections"),
               nb::arg("bias"), nb::arg("diagonal"), nb::arg("Q"),
               "Fill the last rows and columns of Q for rows that join a core set; their kernel "
               "values are values[slots][:, places].");
    module.def(("sum_columns_" + dtype).c_str(), &sums<T>, nb::arg("values"), nb::arg("slots"),
               nb::arg("coef"), nb::arg("rows").none(), nb::arg("out"),
               "Fill out with the sum of coef[c] * values[slots[c]], at all places or at `rows`.");
}

}  // namespace

void bind_core_set(nb::module_& module) {
    define<float>(module, "float32");
    define<double>(module, "float64");
}
