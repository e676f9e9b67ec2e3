#include "hardmargin/interpolation.hpp"

#include <cmath>

#include "convert.hpp"

using namespace hardmargin;

namespace {

void interpolation(nb::handle rows, nb::handle columns, nb::handle starts, nb::handle values,
                   nb::handle scores) {
    const Grid<double> grid(rows, "rows");
    const Vector<const std::int64_t> replaced(columns, "columns");
    check_indices("columns", replaced.data, replaced.size, grid.n_cols);
    const Vector<const double> from(values, "values"), to(scores, "scores", from.size);
    const Vector<const std::int64_t> of_columns(starts, "starts", replaced.size + 1);
    check_starts("starts", of_columns, from.size);
    for (std::size_t k = 0; k < replaced.size; ++k)
        if (of_columns.data[k] == of_columns.data[k + 1])
            refuse("starts[", k + 1, "] is ", of_columns.data[k + 1], ", expected more than ",
                   of_columns.data[k]);
    check_apart("rows", grid.array, "columns", replaced.array);
    check_apart("rows", grid.array, "starts", of_columns.array);
    check_apart("rows", grid.array, "values", from.array);
    check_apart("rows", grid.array, "scores", to.array);
    const Knots knots{replaced.size, replaced.data, of_columns.data, from.data, to.data};
    Control control(Monitor().poll());
    const nb::gil_scoped_release released;
    interpolate_columns(knots, grid.data, grid.n_rows, grid.stride, control);
}

}  // namespace

void bind_interpolation(nb::module_& module) {
    module.def("interpolate_columns", &interpolation, nb::arg("rows"), nb::arg("columns"),
               nb::arg("starts"), nb::arg("values"), nb::arg("scores"),
               "Replace the values of some columns by linear interpolation between knots, in "
               "place.");
}
