#include "convert.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <stdexcept>
#include <tuple>

using namespace hardmargin;

namespace {

bool is_double(const Array& array) {
    if (array.dtype() == nb::dtype<double>()) return true;
    if (array.dtype() == nb::dtype<float>()) return false;
    throw nb::type_error("expected a float32 or float64 array");
}

}  // namespace

HeldMatrix to_matrix(nb::handle source) {
    HeldMatrix held;
    Matrix& m = held.matrix;
    if (nb::isinstance<nb::tuple>(source)) {
        const auto parts = nb::cast<nb::tuple>(source);
        held.data = nb::cast<Array>(parts[0]);
        held.indices = nb::cast<Vector<std::int32_t>>(parts[1]);
        held.row_starts = nb::cast<Vector<std::int64_t>>(parts[2]);
        m.n_rows = held.row_starts.shape(0) - 1;
        m.n_cols = nb::cast<std::size_t>(parts[3]);
        m.indices = held.indices.data();
        m.row_starts = held.row_starts.data();
    } else {
        held.data = nb::cast<Array>(source);
        if (held.data.ndim() != 2) throw nb::type_error("expected a 2-d array");
        m.n_rows = held.data.shape(0);
        m.n_cols = held.data.shape(1);
        m.row_stride = held.data.stride(0);
        m.col_stride = held.data.stride(1);
    }
    m.data = held.data.data();
    m.is_double = is_double(held.data);
    return held;
}

KernelSpec to_kernel(const std::tuple<std::string, double, double, double>& spec) {
    const auto& [name, gamma, coef0, degree] = spec;
    KernelSpec kernel{KernelKind::rbf, gamma, coef0, degree};
    if (name == "rbf") kernel.kind = KernelKind::rbf;
    else if (name == "laplacian") kernel.kind = KernelKind::laplacian;
    else if (name == "sqeuclidean") kernel.metric_only = true;
    else if (name == "cityblock") {
        kernel.kind = KernelKind::laplacian;
        kernel.metric_only = true;
    } else if (name == "linear") kernel.kind = KernelKind::linear;
    else if (name == "poly") kernel.kind = KernelKind::poly;
    else if (name == "sigmoid") kernel.kind = KernelKind::sigmoid;
    else throw std::invalid_argument("unknown kernel " + name);
    return kernel;
}

Control::Poll polling(const nb::object& report) {
    const nb::handle callback = report;
    return [callback](const Progress& progress) {
        const nb::gil_scoped_acquire gil;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (!callback.is_none())
            callback(progress.machines_done, progress.stage, progress.violation);
        return true;
    };
}
