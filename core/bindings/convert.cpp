#include "convert.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cmath>
#include <tuple>

using namespace hardmargin;

namespace {

using Spec = std::tuple<std::string, double, double, double>;

// Rows are numbered in 32 bits.
constexpr std::size_t most_rows = std::numeric_limits<std::int32_t>::max();

void set_sparse(HeldMatrix& held, const nb::tuple& parts, const std::string& name) {
    if (parts.size() != 4)
        throw nb::type_error(
            text(name, " has ", parts.size(), " parts, expected (data, indices, indptr, n_cols)")
                .c_str());
    held.data = to_float_array(parts[0], name + "[0]", 1);
    if (held.data.size() > 1 && held.data.stride(0) != 1) refuse(name, "[0] must be contiguous");
    held.indices = {parts[1], name + "[1]", held.data.size()};
    held.row_starts = {parts[2], name + "[2]"};
    held.indices.copy();
    held.row_starts.copy();
    check_starts(name + "[2]", held.row_starts, held.indices.size);
    std::int64_t n_cols = 0;
    if (!nb::try_cast<std::int64_t>(parts[3], n_cols, false))
        throw nb::type_error(text(name, "[3] must be a number of columns").c_str());
    Matrix& m = held.matrix;
    m.n_rows = held.row_starts.size - 1;
    m.n_cols = to_count(name + "[3]", n_cols);
    m.indices = held.indices.data;
    m.row_starts = held.row_starts.data;
    const auto n_stored = static_cast<std::size_t>(m.row_starts[m.n_rows]);
    check_indices(name + "[1]", m.indices, n_stored, m.n_cols);
}

}  // namespace

HeldMatrix to_matrix(nb::handle source, const std::string& name) {
    HeldMatrix held;
    Matrix& m = held.matrix;
    if (nb::isinstance<nb::tuple>(source)) {
        set_sparse(held, nb::cast<nb::tuple>(source), name);
    } else {
        held.data = to_float_array(source, name, 2);
        m.n_rows = held.data.shape(0);
        m.n_cols = held.data.shape(1);
        m.row_stride = held.data.stride(0);
        m.col_stride = held.data.stride(1);
    }
    if (m.n_rows > most_rows)
        refuse(name, " has ", m.n_rows, " rows, expected at most ", most_rows);
    m.data = held.data.data();
    m.is_double = held.data.dtype() == nb::dtype<double>();
    return held;
}

void HeldMatrix::check_apart_from(const std::string& name, const Array& written,
                                  const std::string& own_name) const {
    check_apart(name, written, own_name, data);
    if (!matrix.is_sparse()) return;
    check_apart(name, written, own_name, indices.array);
    check_apart(name, written, own_name, row_starts.array);
}

std::pair<HeldMatrix, HeldMatrix> to_matrices(nb::handle queries, nb::handle support) {
    const HeldMatrix held = to_matrix(queries, "queries");
    const HeldMatrix other = support.is(queries) ? held : to_matrix(support, "support");
    const std::size_t n_cols = held.matrix.n_cols;
    if (n_cols == 0) refuse("queries has 0 columns, expected at least 1");
    if (other.matrix.n_cols != n_cols)
        refuse("support has ", other.matrix.n_cols, " columns, but queries has ", n_cols);
    return {held, other};
}

KernelSpec to_kernel(nb::handle spec) {
    Spec parts;
    if (!nb::try_cast<Spec>(spec, parts))
        throw nb::type_error("kernel must be (name, gamma, coef0, degree)");
    const auto& [name, gamma, coef0, degree] = parts;
    const auto [kind, metric_only] =
        to_choice<std::pair<KernelKind, bool>>("kernel[0]", name,
                                               {{"rbf", {KernelKind::rbf, false}},
                                                {"laplacian", {KernelKind::laplacian, false}},
                                                {"matern32", {KernelKind::matern32, false}},
                                                {"matern52", {KernelKind::matern52, false}},
                                                {"linear", {KernelKind::linear, false}},
                                                {"cosine", {KernelKind::cosine, false}},
                                                {"poly", {KernelKind::poly, false}},
                                                {"sigmoid", {KernelKind::sigmoid, false}},
                                                {"sqeuclidean", {KernelKind::rbf, true}},
                                                {"cityblock", {KernelKind::laplacian, true}}});
    KernelSpec kernel{kind, gamma, coef0, degree, metric_only};
    to_number("kernel[1] (gamma)", gamma, kernel.is_distance() ? 0.0 : -no_limit, true);
    to_number("kernel[2] (coef0)", coef0, -no_limit, true);
    to_number("kernel[3] (degree)", degree, -no_limit, true);
    return kernel;
}

KernelKind to_metric(const std::string& name, const std::string& argument) {
    return to_choice<KernelKind>(
        argument, name, {{"sqeuclidean", KernelKind::rbf}, {"cityblock", KernelKind::laplacian}});
}

Monitor::Monitor(const nb::object& monitor) {
    if (monitor.is_none()) return;
    if (!nb::hasattr(monitor, "seconds_left") || !nb::hasattr(monitor, "report"))
        throw nb::type_error(text("monitor must have seconds_left and report, got ",
                                  nb::type_name(monitor.type()).c_str())
                                 .c_str());
    if (!nb::try_cast<double>(monitor.attr("seconds_left"), seconds_left_))
        throw nb::type_error("monitor.seconds_left must be a number");
    to_number("monitor.seconds_left", seconds_left_, -no_limit, true);
    report_ = monitor.attr("report");
    if (!PyCallable_Check(report_.ptr())) throw nb::type_error("monitor.report must be a function");
}

Control::Poll Monitor::poll() const {
    const nb::handle report = report_;
    return [report](const Progress& progress) {
        const nb::gil_scoped_acquire gil;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (report.is_none()) return true;
        const nb::object answer =
            report(progress.machines_done, progress.stage, progress.violation);
        if (!PyBool_Check(answer.ptr()))
            throw nb::type_error(text("monitor.report must return True or False, got ",
                                      nb::type_name(answer.type()).c_str())
                                     .c_str());
        return answer.is(nb::bool_(true));
    };
}

Control::Poll to_poll(const nb::object& check) {
    if (!check.is_none() && !PyCallable_Check(check.ptr()))
        throw nb::type_error(
            text("check must be a function or None, got ", nb::type_name(check.type()).c_str())
                .c_str());
    const nb::handle called = check;
    return [called](const Progress&) {
        const nb::gil_scoped_acquire gil;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (!called.is_none()) called();
        return true;
    };
}
